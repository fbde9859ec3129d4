"""The SQLite ledger's front: groups of calls, one durable commit each, and what happens when the file can't be written."""

import asyncio
import itertools
import os
import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from adapters.embedded.ledger import SqliteLedger, _Busy
from adapters.embedded.verbs.desk import Desk
from gossamer.clock import ManualClock
from gossamer.errors import Fenced, LedgerUnavailable, SettingsError
from gossamer.ids import Epoch, UrlId, WorkerId
from gossamer.messages import Url
from gossamer.outcomes import CrawlOutcome
from gossamer.records import CrawlStatus, Rules, Seat


def url(number: int) -> Url:
    return Url(UrlId(number.to_bytes(16)), f"http://a.example/{number}", "a.example")


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    opened = SqliteLedger(tmp_path / "ledger.sqlite", ManualClock())
    await opened.create(Rules())
    yield opened
    await opened.close()


async def test_calls_that_come_together_are_one_commit(ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch) -> None:
    groups: list[int] = []
    run_group = ledger._run_group

    def counted(verbs: Sequence[Callable[[Desk], Any]]) -> list[Any]:
        groups.append(len(verbs))
        return run_group(verbs)

    monkeypatch.setattr(ledger, "_run_group", counted)

    added = await asyncio.gather(*(ledger.add([url(number)]) for number in range(100)))

    assert added == [[url(number)] for number in range(100)]
    assert sum(groups) == 100
    assert len(groups) <= 2


async def test_calls_are_run_in_the_order_in_which_they_were_made(ledger: SqliteLedger) -> None:
    first, second, counts = await asyncio.gather(ledger.add([url(1)]), ledger.add([url(1), url(2)]), ledger.counts())

    assert (first, second, counts.open) == ([url(1)], [url(2)], 2)


async def test_a_refused_call_harms_nobody_in_its_group(ledger: SqliteLedger) -> None:
    nobody = Seat(WorkerId(7), Epoch(1))

    before, refused, after = await asyncio.gather(
        ledger.add([url(1)]), ledger.renew(nobody), ledger.add([url(2)]), return_exceptions=True
    )

    assert (before, after) == ([url(1)], [url(2)])
    assert isinstance(refused, Fenced)


async def test_a_caller_that_gives_up_harms_nobody_and_its_verb_is_done(ledger: SqliteLedger) -> None:
    impatient = asyncio.create_task(ledger.add([url(1)]))
    patient = asyncio.create_task(ledger.add([url(2)]))
    await asyncio.sleep(0)
    impatient.cancel()

    assert await patient == [url(2)]
    assert (await ledger.counts()).open == 2


async def test_what_was_answered_is_there_when_the_file_is_opened_again(tmp_path: Path) -> None:
    clock = ManualClock()
    first = SqliteLedger(tmp_path / "ledger.sqlite", clock)
    await first.create(Rules(max_pages=7))
    seat = await first.register("one")
    await first.add([url(1)])
    await first.route([(url(1).id, 50)])
    await first.close()

    again = SqliteLedger(tmp_path / "ledger.sqlite", clock)
    assert await again.held(seat) == [url(1)]
    assert (await again.crawl()).rules.max_pages == 7
    await again.close()


async def test_a_file_of_another_version_is_left_alone_and_named(tmp_path: Path) -> None:
    path = tmp_path / "ledger.sqlite"
    ours = SqliteLedger(path, ManualClock())
    await ours.create(Rules())
    await ours.close()
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 0")  # as it was before there were versions
    content = path.read_bytes()

    again = SqliteLedger(path, ManualClock())
    for _ in range(2):
        with pytest.raises(SettingsError, match="another version"):
            await again.resume(Rules())
    await again.close()

    assert path.read_bytes() == content


async def test_another_process_may_stop_the_crawl(ledger: SqliteLedger, tmp_path: Path) -> None:
    seat = await ledger.register("one")
    other = SqliteLedger(tmp_path / "ledger.sqlite", ManualClock())

    await other.stop(CrawlOutcome.STOPPED)
    await other.add([url(5)])
    await other.close()

    assert (await ledger.renew(seat)).status is CrawlStatus.DRAINING
    assert (await ledger.counts()).open == 1


async def test_a_file_that_is_taken_amid_such_a_group_fails_only_those_that_are_not_written(
    ledger: SqliteLedger, monkeypatch: pytest.MonkeyPatch
) -> None:
    unwritable = Url(UrlId(bytes(16)), "http://a.example/\udce4", "a.example")
    begun, calls = ledger._begun, itertools.count()

    def taken_by_another_at_last() -> Desk:
        if next(calls) == 3:  # all together, then one by one: the last of them
            raise _Busy from sqlite3.OperationalError("database is locked")
        return begun()

    monkeypatch.setattr(ledger, "_begun", taken_by_another_at_last)
    before, refused, late = await asyncio.gather(
        ledger.add([url(1)]), ledger.add([unwritable]), ledger.add([url(2)]), return_exceptions=True
    )

    assert before == [url(1)]
    assert isinstance(refused, UnicodeEncodeError)
    assert isinstance(late, LedgerUnavailable)
    assert (await ledger.counts()).open == 1


class Wall(ManualClock):
    """A clock whose wall somebody sets: the monotonic one goes on."""

    def __init__(self, start: float) -> None:
        super().__init__(start)
        self.set_by = 0.0

    def now(self) -> float:
        return super().now() + self.set_by


@pytest.mark.parametrize("set_by", [-3_600.0, 3_600.0])
async def test_setting_the_machines_clock_moves_no_lease(tmp_path: Path, set_by: float) -> None:
    clock = Wall(1_000.0)
    ledger = SqliteLedger(tmp_path / "ledger.sqlite", clock)
    await ledger.create(Rules(lease_s=15.0))
    seat = await ledger.register("one")

    clock.set_by = set_by
    clock.advance(10)
    await ledger.renew(seat)

    (worker,) = await ledger.workers()
    assert worker.lease_until == 1_025.0
    clock.advance(16)
    with pytest.raises(Fenced):
        await ledger.renew(seat)
    await ledger.close()


async def test_a_clock_that_was_set_back_between_two_runs_hides_no_work(tmp_path: Path) -> None:
    clock = Wall(10_000.0)
    first = SqliteLedger(tmp_path / "ledger.sqlite", clock)
    await first.create(Rules())
    await first.add([url(1)])
    assert len(await first.waiting(10, idle=False)) == 1
    await first.close()
    clock.set_by = -3_600.0

    second = SqliteLedger(tmp_path / "ledger.sqlite", clock)

    assert len(await second.waiting(10, idle=True)) == 1
    clock.advance(16)
    assert len(await second.waiting(10, idle=False)) == 1
    await second.close()


async def test_a_call_that_cant_be_written_harms_nobody_in_its_group(ledger: SqliteLedger) -> None:
    seat = await ledger.register("one")
    unwritable = Url(UrlId(bytes(16)), "http://a.example/\udce4", "a.example")

    before, refused, after = await asyncio.gather(
        ledger.add([url(1)]), ledger.add([unwritable]), ledger.renew(seat), return_exceptions=True
    )

    assert before == [url(1)]
    assert isinstance(refused, UnicodeEncodeError)
    assert not isinstance(after, BaseException)
    assert (await ledger.counts()).open == 1


async def test_a_closed_ledger_says_so_and_closing_twice_is_harmless(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.sqlite", ManualClock())
    await ledger.create(Rules())
    await ledger.close()
    await ledger.close()
    with pytest.raises(LedgerUnavailable):
        await ledger.counts()


def test_those_who_clean_up_while_the_loop_ends_are_still_answered(tmp_path: Path) -> None:
    released: list[int] = []

    async def worker(ledger: SqliteLedger, at_work: asyncio.Event) -> None:
        seat = await ledger.register("one")
        at_work.set()
        try:
            await asyncio.Event().wait()
        finally:
            await ledger.release(seat)
            released.append(seat.worker)

    async def main() -> None:
        ledger = SqliteLedger(tmp_path / "ledger.sqlite", ManualClock())
        await ledger.create(Rules())
        at_work = [asyncio.Event() for _ in range(5)]
        tasks = [asyncio.create_task(worker(ledger, each)) for each in at_work]
        for each in at_work:
            await each.wait()
        assert len(tasks) == 5  # and the loop ends, with all of them at work

    asyncio.run(main())

    assert sorted(released) == [0, 1, 2, 3, 4]


FULL_DISK = """
import asyncio, resource, signal, sys
from pathlib import Path
from adapters.embedded.ledger import SqliteLedger
from adapters.embedded.verbs.desk import Desk
from gossamer.clock import SystemClock
from gossamer.errors import LedgerUnavailable
from gossamer.records import Rules
from tests.unit.test_sqlite_ledger import url

async def main():
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    ledger = SqliteLedger(Path(sys.argv[1]), SystemClock())
    await ledger.create(Rules())
    resource.setrlimit(resource.RLIMIT_FSIZE, (400_000, resource.RLIM_INFINITY))
    added = 0
    try:
        for start in range(0, 100_000, 100):
            await ledger.add([url(n) for n in range(start, start + 100)])
            added += 100
    except LedgerUnavailable:
        print("away", flush=True)
    assert (await ledger.counts()).open == added
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    await ledger.add([url(n) for n in range(added, added + 100)])
    assert (await ledger.counts()).open == added + 100
    await ledger.close()
    print(added + 100)

asyncio.run(main())
"""


def test_a_full_disk_is_an_outage_that_changes_nothing_and_passes(tmp_path: Path) -> None:
    """A limit on the file's size stands in for the disk: the write fails in the same way, and there is room again later."""
    done = subprocess.run(
        [sys.executable, "-c", FULL_DISK, str(tmp_path / "ledger.sqlite")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )
    said, count = done.stdout.split()
    assert said == "away"
    assert int(count) > 100


async def test_a_file_that_cant_be_opened_is_an_outage(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "nowhere" / "ledger.sqlite", ManualClock())
    with pytest.raises(LedgerUnavailable):
        await ledger.counts()
    await ledger.close()
