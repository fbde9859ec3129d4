"""Modules under watch: what they do wrong costs neither pages nor links, and what they do right is durable in time."""

import asyncio
import errno
import logging
import os
import threading
import time
from collections.abc import Awaitable
from pathlib import Path

import pytest

from gossamer import CrawlInfo, Module, Page
from gossamer.clock import SystemClock
from gossamer.errors import ModuleFailed, SettingsError
from gossamer.outcomes import Flag
from gossamer.pauses import Pauses
from services.worker.visit import FAILURES_MAX, HANGS_MAX, Visitor
from tests.a_module import a_crawl, a_page, loaded

FINE: frozenset[Flag] = frozenset()
FAILED = frozenset({Flag.MODULE_FAILED})


def a_visitor(*classes: type[Module], timeout_s: float = 5.0) -> Visitor:
    return Visitor([loaded(cls, cls.__name__) for cls in classes], timeout_s=timeout_s, pauses=Pauses(SystemClock()))


class Recording(Module):
    """Remembers its calls, for all instances."""

    calls: list[str]

    def __init_subclass__(cls) -> None:
        cls.calls = []

    async def open(self, crawl: CrawlInfo) -> None:
        self.calls.append("open")

    def visit(self, page: Page) -> Awaitable[None] | None:
        self.calls.append(f"visit {page.title}")
        return None

    async def flush(self) -> None:
        self.calls.append("flush")

    async def close(self) -> None:
        self.calls.append("close")


# --- The order of things ----------------------------------------------------------------------------------------------


async def test_a_module_is_opened_visited_flushed_and_closed() -> None:
    class Plain(Recording): ...

    visitor = a_visitor(Plain)

    await visitor.open(a_crawl())
    assert await visitor.visit(a_page(1)) == FINE
    assert await visitor.visit(a_page(2)) == FINE
    assert await visitor.flush() == FINE
    await visitor.close()

    assert Plain.calls == ["open", "visit Title 1", "visit Title 2", "flush", "close"]
    assert visitor.failures["Plain"].count == 0


async def test_modules_come_in_order_page_by_page() -> None:
    order: list[str] = []

    class First(Module):
        def visit(self, page: Page) -> None:
            order.append(f"first {page.title}")

    class Second(Module):
        async def visit(self, page: Page) -> None:
            order.append(f"second {page.title}")

    visitor = a_visitor(First, Second)
    await visitor.visit(a_page(1))
    await visitor.visit(a_page(2))

    assert order == ["first Title 1", "second Title 1", "first Title 2", "second Title 2"]


async def test_flush_is_called_only_for_what_was_visited_since() -> None:
    class Plain(Recording): ...

    visitor = a_visitor(Plain)
    await visitor.open(a_crawl())

    await visitor.flush()
    await visitor.visit(a_page())
    await visitor.flush()
    await visitor.flush()
    await visitor.visit(a_page())
    await visitor.close()

    assert Plain.calls == ["open", "visit Title 1", "flush", "visit Title 1", "flush", "close"]


async def test_a_module_that_wants_no_pages_costs_no_thread_and_no_page() -> None:
    class Idle(Recording):
        wants_pages = False

    visitor = a_visitor(Idle)
    await visitor.open(a_crawl())

    assert not visitor.wants_pages
    assert await visitor.visit(a_page()) == FINE
    assert await visitor.flush() == FINE
    await visitor.close()

    assert Idle.calls == ["open", "close"]
    assert "module Idle" not in [thread.name for thread in threading.enumerate()]


async def test_one_module_that_wants_pages_is_enough_to_make_them() -> None:
    class Idle(Recording):
        wants_pages = False

    class Plain(Recording): ...

    visitor = a_visitor(Idle, Plain)

    assert visitor.wants_pages


async def test_a_module_asked_for_twice_is_two_in_the_summary() -> None:
    class Plain(Recording): ...

    assert list(a_visitor(Plain, Plain).failures) == ["Plain", "Plain (2)"]


# --- Isolation --------------------------------------------------------------------------------------------------------


async def test_what_one_module_does_to_its_page_reaches_nobody_else() -> None:
    seen: list[Page] = []

    class Vandal(Module):
        def visit(self, page: Page) -> None:
            seen.append(page)
            object.__setattr__(page, "html", "changed")
            object.__setattr__(page, "links", ())

    class Honest(Module):
        def visit(self, page: Page) -> None:
            seen.append(page)

    page = a_page()
    await a_visitor(Vandal, Honest).visit(page)

    assert page == a_page()
    assert seen[1] == a_page()
    assert seen[0] is not seen[1]
    assert seen[0].tree is not seen[1].tree


async def test_a_plain_visit_is_for_one_page_at_a_time_and_in_a_thread() -> None:
    class Counting(Module):
        inside = most = 0
        threads: set[str] = set()  # noqa: RUF012

        def visit(self, page: Page) -> None:
            self.threads.add(threading.current_thread().name)
            self.inside += 1
            Counting.most = max(self.most, self.inside)
            time.sleep(0.001)
            self.inside -= 1

    visitor = a_visitor(Counting)
    await asyncio.gather(*(visitor.visit(a_page(n)) for n in range(20)))

    assert Counting.most == 1
    assert Counting.threads == {"module Counting"}


async def test_async_visits_of_several_pages_are_under_way_at_once() -> None:
    class Meeting(Module):
        def __init__(self) -> None:
            self.barrier = asyncio.Barrier(8)

        async def visit(self, page: Page) -> None:
            await self.barrier.wait()

    visitor = a_visitor(Meeting)

    assert set(await asyncio.gather(*(visitor.visit(a_page(n)) for n in range(8)))) == {FINE}


async def test_a_plain_visit_may_return_something_to_await() -> None:
    done: list[str] = []

    class Wrapped(Module):
        def visit(self, page: Page) -> Awaitable[None]:
            return self._visit(page)

        async def _visit(self, page: Page) -> None:
            done.append(page.title)

    assert await a_visitor(Wrapped).visit(a_page()) == FINE
    assert done == ["Title 1"]


# --- Failures ---------------------------------------------------------------------------------------------------------

RAISED = [ValueError("x"), SystemExit(1), KeyboardInterrupt(), GeneratorExit(), StopIteration(), asyncio.CancelledError()]


@pytest.mark.parametrize("error", RAISED, ids=lambda error: type(error).__name__)
@pytest.mark.parametrize("form", ["plain", "async"])
async def test_whatever_a_module_raises_is_a_failure_and_the_next_one_runs(error: BaseException, form: str) -> None:
    class Failing(Module):
        def visit(self, page: Page) -> None:
            raise error

    class AsyncFailing(Module):
        async def visit(self, page: Page) -> None:
            raise error

    class Next(Recording): ...

    failing = Failing if form == "plain" else AsyncFailing
    visitor = a_visitor(failing, Next)

    assert await visitor.visit(a_page()) == FAILED
    assert Next.calls == ["visit Title 1"]
    failures = visitor.failures[failing.__name__]
    assert failures.count == 1
    # Inside a coroutine Python itself turns a StopIteration into a RuntimeError.
    assert type(error).__name__ in failures.last or "RuntimeError" in failures.last


async def test_what_a_module_returns_is_nobodys_business() -> None:
    class Chatty(Module):
        def visit(self, page: Page) -> None:
            return float("nan"), "x" * 50_000_000, "\ud800"  # type: ignore[return-value]

    assert await a_visitor(Chatty).visit(a_page()) == FINE


async def test_a_failure_is_logged_with_its_page_and_steers_no_terminal(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Module):
        def visit(self, page: Page) -> None:
            raise ValueError(page.title)

    await a_visitor(Failing).visit(a_page(url="http://h/\x1b[31m\n", title="\x1b]0;x\x07\nINFO all is well"))

    (record,) = caplog.records
    assert (record.name, record.levelno) == ("gossamer.modules", logging.WARNING)
    message = record.getMessage()
    assert message.startswith(
        r"module Failing failed on 'http://h/\x1b[31m\n': ValueError: \x1b]0;x\x07\nINFO all is well (test_visit"
    )
    assert message.isprintable()
    assert record.exc_info is None, "a traceback would show the text as it is"


async def test_after_many_failures_in_a_row_a_module_is_switched_off_loudly(caplog: pytest.LogCaptureFixture) -> None:
    class Failing(Module):
        seen = 0

        def visit(self, page: Page) -> None:
            Failing.seen += 1
            raise ValueError

    visitor = a_visitor(Failing)
    flags = [await visitor.visit(a_page(n)) for n in range(FAILURES_MAX + 5)]

    assert Failing.seen == FAILURES_MAX
    assert set(flags) == {FAILED}, "also the pages that it was not shown: they are missing in its output"
    failures = visitor.failures["Failing"]
    assert (failures.count, failures.missed, failures.off) == (FAILURES_MAX, 5, f"{FAILURES_MAX} failures in a row")
    loud = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    why = f"{FAILURES_MAX} failures in a row"
    assert loud == [f"module Failing is switched off after {why}; it sees no further page of this worker"]


async def test_failures_that_are_not_in_a_row_switch_nothing_off() -> None:
    class Sometimes(Module):
        def visit(self, page: Page) -> None:
            if page.depth:
                raise ValueError

    visitor = a_visitor(Sometimes)
    for _ in range(3):
        for _ in range(FAILURES_MAX - 1):
            await visitor.visit(a_page(depth=1))
        await visitor.visit(a_page(depth=0))

    failures = visitor.failures["Sometimes"]
    assert (failures.count, failures.off) == (3 * (FAILURES_MAX - 1), "")


# --- Hangs ------------------------------------------------------------------------------------------------------------


class Sleeping(Module):
    """Hangs in a C function until it is let go."""

    release = threading.Event()

    def visit(self, page: Page) -> None:
        if page.depth:
            self.release.wait()


class Spinning(Module):
    def visit(self, page: Page) -> None:
        while page.depth:
            pass


class Waiting(Module):
    async def visit(self, page: Page) -> None:
        if page.depth:
            await asyncio.Event().wait()


class Stubborn(Module):
    """Swallows its cancellation."""

    async def visit(self, page: Page) -> None:
        while page.depth:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                continue


@pytest.fixture
def _released() -> object:
    """So that nothing outlives the test."""
    Sleeping.release.clear()
    yield
    Sleeping.release.set()


@pytest.mark.usefixtures("_released")
@pytest.mark.parametrize("kind", [Sleeping, Spinning, Waiting, Stubborn])
async def test_a_module_that_hangs_costs_its_deadline_and_not_the_page(kind: type[Module]) -> None:
    class Next(Recording): ...

    visitor = a_visitor(kind, Next, timeout_s=0.2)

    async with asyncio.timeout(5):
        assert await visitor.visit(a_page(1, depth=1)) == FAILED
        assert await visitor.visit(a_page(2, depth=0)) == FINE, "the next page finds it ready"

    assert visitor.failures[kind.__name__].last == "on 'http://host/1': took longer than 0.2 s"
    assert Next.calls == ["visit Title 1", "visit Title 2"]


@pytest.mark.usefixtures("_released")
@pytest.mark.parametrize("kind", [Sleeping, Spinning, Waiting, Stubborn])
async def test_after_three_hangs_in_a_row_a_module_is_switched_off(kind: type[Module]) -> None:
    visitor = a_visitor(kind, timeout_s=0.2)

    async with asyncio.timeout(5):
        await visitor.visit(a_page(depth=1))
        await visitor.visit(a_page(depth=0))
        for _ in range(HANGS_MAX):
            assert not visitor.failures[kind.__name__].off
            await visitor.visit(a_page(depth=1))

    assert visitor.failures[kind.__name__].off == f"{HANGS_MAX} hangs in a row"


@pytest.mark.usefixtures("_released")
async def test_pages_that_wait_for_a_module_that_hangs_wait_no_longer_than_until_it_is_switched_off() -> None:
    visitor = a_visitor(Sleeping, timeout_s=0.2)

    async with asyncio.timeout(5):
        flags = await asyncio.gather(*(visitor.visit(a_page(n, depth=1)) for n in range(16)))

    assert set(flags) == {FAILED}
    assert visitor.failures["Sleeping"].count == HANGS_MAX
    assert visitor.failures["Sleeping"].missed == 16 - HANGS_MAX


async def test_waiting_for_ones_turn_is_no_hang() -> None:
    class Slow(Module):
        def visit(self, page: Page) -> None:
            time.sleep(0.04)

    visitor = a_visitor(Slow, timeout_s=0.5)

    assert set(await asyncio.gather(*(visitor.visit(a_page(n)) for n in range(15)))) == {FINE}


# --- Cancellation -----------------------------------------------------------------------------------------------------


async def test_our_own_cancellation_passes_through_an_async_visit_and_ends_it() -> None:
    cancelled = asyncio.Event()

    class Long(Module):
        async def visit(self, page: Page) -> None:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                cancelled.set()
                raise

    visitor = a_visitor(Long)
    walk = asyncio.create_task(visitor.visit(a_page()))
    await asyncio.sleep(0.01)
    walk.cancel()

    with pytest.raises(asyncio.CancelledError):
        await walk
    await asyncio.wait_for(cancelled.wait(), 5)
    assert visitor.failures["Long"].count == 0


async def test_a_cancelled_walk_lets_nobody_in_beside_its_page() -> None:
    first, release = threading.Event(), threading.Event()
    order: list[str] = []

    class Long(Module):
        def visit(self, page: Page) -> None:
            if page.depth:
                first.set()
                release.wait()
            order.append(page.title)

        async def flush(self) -> None:
            order.append("flush")

    visitor = a_visitor(Long)
    await visitor.visit(a_page(0, depth=0))
    walk = asyncio.create_task(visitor.visit(a_page(1, depth=1)))
    await asyncio.to_thread(first.wait)
    walk.cancel()
    with pytest.raises(asyncio.CancelledError):
        await walk

    flush = asyncio.create_task(visitor.flush())
    second = asyncio.create_task(visitor.visit(a_page(2, depth=0)))
    await asyncio.sleep(0.02)
    release.set()

    assert (await flush, await second) == (FINE, FINE)
    assert order == ["Title 0", "Title 1", "flush", "Title 2"]


async def test_a_walk_cancelled_while_it_waits_for_its_turn_gives_the_turn_on() -> None:
    release = threading.Event()
    seen: list[str] = []

    class Long(Module):
        def visit(self, page: Page) -> None:
            seen.append(page.title)
            release.wait()

    visitor = a_visitor(Long)
    walks = [asyncio.create_task(visitor.visit(a_page(n))) for n in range(3)]
    await asyncio.sleep(0.01)
    walks[1].cancel()
    release.set()

    assert await walks[2] == FINE
    assert seen == ["Title 0", "Title 2"]


# --- A full disk ------------------------------------------------------------------------------------------------------


class QuickClock(SystemClock):
    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(0)


class Full(Recording):
    """Its disk is full for the next so many calls."""

    left = 0

    def _write(self, what: str) -> None:
        self.calls.append(what)
        if Full.left:
            Full.left -= 1
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    async def open(self, crawl: CrawlInfo) -> None:
        self._write("open")

    def visit(self, page: Page) -> None:
        self._write(f"visit {page.title}")

    async def flush(self) -> None:
        self._write("flush")


def on_a_full_disk(calls: int) -> tuple[Visitor, Pauses]:
    Full.calls, Full.left = [], calls
    pauses = Pauses(QuickClock())
    return Visitor([loaded(Full, "Full")], timeout_s=5.0, pauses=pauses), pauses


async def test_a_module_without_room_is_called_again_until_there_is_and_nothing_is_held_against_it() -> None:
    visitor, pauses = on_a_full_disk(3)
    await visitor.open(a_crawl())
    Full.left = 2 * FAILURES_MAX
    assert await visitor.visit(a_page()) == FINE
    Full.left = 2 * FAILURES_MAX
    assert await visitor.flush_with_room() == FINE

    assert Full.calls == ["open"] * 4 + ["visit Title 1"] * (2 * FAILURES_MAX + 1) + ["flush"] * (2 * FAILURES_MAX + 1)
    assert visitor.failures["Full"].count == 0
    assert not pauses.reasons


async def test_what_waits_for_room_gives_up_when_the_modules_are_closed_so_that_no_page_is_closed_without_its_line() -> None:
    visitor, pauses = on_a_full_disk(0)
    await visitor.open(a_crawl())
    await visitor.visit(a_page())
    Full.left = 1_000_000
    flushing = asyncio.create_task(visitor.flush_with_room())
    for _ in range(100):
        await asyncio.sleep(0)
    assert list(pauses.reasons) == ["no space left for module Full"]
    await visitor.close()

    with pytest.raises(ModuleFailed):
        await flushing


async def test_closing_does_not_wait_for_room() -> None:
    visitor, _ = on_a_full_disk(0)
    await visitor.open(a_crawl())
    await visitor.visit(a_page())
    Full.left = 1_000_000

    assert await visitor.flush() == FAILED
    await visitor.close()
    assert Full.calls[-1] == "close"


# --- Flush ------------------------------------------------------------------------------------------------------------


class Flaky(Recording):
    """Fails to flush as often as it is told to."""

    failing = 0

    async def flush(self) -> None:
        self.calls.append("flush")
        if Flaky.failing:
            Flaky.failing -= 1
            raise OSError("disk full")


async def test_a_flush_that_raises_once_is_made_again() -> None:
    Flaky.calls, Flaky.failing = [], 1
    visitor = a_visitor(Flaky)
    await visitor.visit(a_page())

    assert await visitor.flush() == FINE
    assert Flaky.calls == ["visit Title 1", "flush", "flush"]
    assert visitor.failures["Flaky"].count == 0


async def test_a_flush_that_raises_twice_is_flagged_and_made_again_next_time() -> None:
    Flaky.calls, Flaky.failing = [], 2
    visitor = a_visitor(Flaky)
    await visitor.visit(a_page())

    assert await visitor.flush() == FAILED
    assert visitor.failures["Flaky"].last.startswith("in flush: OSError: disk full")
    assert await visitor.flush() == FINE, "without a new page: what it kept is still to be written"
    assert Flaky.calls == ["visit Title 1", "flush", "flush", "flush"]


async def test_a_module_that_can_not_flush_any_more_is_switched_off_though_its_visits_go_well() -> None:
    Flaky.calls, Flaky.failing = [], 1000
    visitor = a_visitor(Flaky)

    for n in range(FAILURES_MAX):
        await visitor.visit(a_page(n))
        assert await visitor.flush() == FAILED

    assert visitor.failures["Flaky"].off == f"{FAILURES_MAX} failures in a row"
    before = len(Flaky.calls)
    assert await visitor.visit(a_page()) == FAILED
    assert await visitor.flush() == FINE, "nothing of it is awaited any more"
    assert len(Flaky.calls) == before


async def test_what_was_visited_before_a_module_was_switched_off_is_still_flushed() -> None:
    class Failing(Recording):
        def visit(self, page: Page) -> None:
            super().visit(page)
            if page.depth:
                raise ValueError

    visitor = a_visitor(Failing)
    await visitor.visit(a_page(depth=0))
    for _ in range(FAILURES_MAX):
        await visitor.visit(a_page(depth=1))
    assert visitor.failures["Failing"].off

    await visitor.flush()

    assert Failing.calls[-1] == "flush"


async def test_a_flush_that_hangs_is_not_waited_for_twice() -> None:
    class Hanging(Recording):
        async def flush(self) -> None:
            self.calls.append("flush")
            await asyncio.Event().wait()

    visitor = a_visitor(Hanging, timeout_s=0.2)
    await visitor.visit(a_page())

    assert await visitor.flush() == FAILED
    assert Hanging.calls == ["visit Title 1", "flush"]
    assert "in flush: took longer" in visitor.failures["Hanging"].last


async def test_flush_never_runs_beside_a_plain_visit() -> None:
    class Buffering(Module):
        """As somebody writes it who thinks of no threads: what is added between write and clear would be lost."""

        def __init__(self) -> None:
            self.lines: list[str] = []

        def visit(self, page: Page) -> None:
            time.sleep(0.001)
            self.lines.append(page.title)

        async def flush(self) -> None:
            written.extend(self.lines)
            await asyncio.sleep(0.002)
            self.lines.clear()

    written: list[str] = []
    visitor = a_visitor(Buffering)

    async def walk(number: int) -> None:
        await visitor.visit(a_page(number))
        await visitor.flush()
        assert f"Title {number}" in written

    await asyncio.gather(*(walk(number) for number in range(30)))

    assert sorted(written) == sorted(f"Title {number}" for number in range(30))


async def test_a_flush_waits_for_the_one_that_has_its_pages() -> None:
    go = asyncio.Event()
    durable: list[int] = []

    class Slow(Module):
        def __init__(self) -> None:
            self.pages: list[int] = []

        async def visit(self, page: Page) -> None:
            self.pages.append(page.depth)

        async def flush(self) -> None:
            taken, self.pages = self.pages, []
            await go.wait()
            durable.extend(taken)

    visitor = a_visitor(Slow)
    await visitor.visit(a_page(depth=1))
    await visitor.visit(a_page(depth=2))
    flushes = [asyncio.create_task(visitor.flush()) for _ in range(2)]
    await asyncio.sleep(0.01)
    assert not any(flush.done() for flush in flushes)

    go.set()

    assert await asyncio.gather(*flushes) == [FINE, FINE]
    assert durable == [1, 2]


async def test_a_visit_that_ends_during_a_flush_is_in_the_next_one() -> None:
    class Slow(Recording):
        go = asyncio.Event()

        async def visit(self, page: Page) -> None:
            if page.depth:
                await self.go.wait()
            self.calls.append(f"visit {page.title}")

    visitor = a_visitor(Slow)
    await visitor.visit(a_page(1, depth=0))
    late = asyncio.create_task(visitor.visit(a_page(2, depth=1)))
    await asyncio.sleep(0)
    await visitor.flush()
    Slow.go.set()
    await late
    await visitor.flush()

    assert Slow.calls == ["visit Title 1", "flush", "visit Title 2", "flush"]


async def test_a_flush_that_was_cancelled_is_made_again() -> None:
    class Slow(Recording):
        async def flush(self) -> None:
            self.calls.append("flush")
            if self.calls.count("flush") == 1:
                await asyncio.Event().wait()

    visitor = a_visitor(Slow)
    await visitor.visit(a_page())
    flush = asyncio.create_task(visitor.flush())
    await asyncio.sleep(0.01)
    flush.cancel()
    with pytest.raises(asyncio.CancelledError):
        await flush

    assert await visitor.flush() == FINE
    assert Slow.calls == ["visit Title 1", "flush", "flush"]


# --- Open and close ---------------------------------------------------------------------------------------------------


async def test_a_module_that_can_not_be_opened_keeps_the_worker_from_starting(tmp_path: Path) -> None:
    class First(Recording): ...

    class Locked(Recording):
        async def open(self, crawl: CrawlInfo) -> None:
            (crawl.out_dir / "absent" / "file").touch()

    class Last(Recording): ...

    visitor = a_visitor(First, Locked, Last)

    with pytest.raises(SettingsError, match=r"^module Locked can't be opened: FileNotFoundError: .*absent"):
        await visitor.open(a_crawl(tmp_path))
    assert (First.calls, Locked.calls, Last.calls) == (["open", "close"], ["close"], [])


async def test_a_module_that_hangs_in_open_keeps_the_worker_from_starting() -> None:
    class Hanging(Recording):
        async def open(self, crawl: CrawlInfo) -> None:
            await asyncio.Event().wait()

    with pytest.raises(SettingsError, match=r"^module Hanging can't be opened: took longer than 0.2 s$"):
        await a_visitor(Hanging, timeout_s=0.2).open(a_crawl())


async def test_all_are_closed_once_whatever_they_raise() -> None:
    class Failing(Recording):
        async def close(self) -> None:
            self.calls.append("close")
            raise SystemExit

    class Hanging(Recording):
        async def close(self) -> None:
            self.calls.append("close")
            await asyncio.Event().wait()

    class Fine(Recording): ...

    visitor = a_visitor(Failing, Hanging, Fine, timeout_s=0.2)
    await visitor.open(a_crawl())
    await visitor.close()
    await visitor.close()

    for kind in (Failing, Hanging, Fine):
        assert kind.calls == ["open", "close"]
    assert visitor.failures["Failing"].last.startswith("in close: SystemExit")
    assert visitor.failures["Hanging"].last == "in close: took longer than 0.2 s"


async def test_closing_ends_the_threads() -> None:
    class Ending(Recording): ...

    visitor = a_visitor(Ending)
    await visitor.open(a_crawl())
    await visitor.visit(a_page())
    (thread,) = (each for each in threading.enumerate() if each.name == "module Ending")

    await visitor.close()

    await asyncio.to_thread(thread.join, 5)
    assert not thread.is_alive()
