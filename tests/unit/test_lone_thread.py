"""A thread that one may stop waiting for."""

import asyncio
import threading
import time
from functools import partial

from services.worker.lone_thread import LoneThread


async def test_calls_are_made_one_after_another_in_one_thread_that_is_not_ours() -> None:
    thread = LoneThread("lone")
    calls: list[tuple[int, str]] = []

    def call(number: int) -> None:
        calls.append((number, threading.current_thread().name))

    for answer in [thread.call(partial(call, number)) for number in range(5)]:
        await answer
    thread.end()

    assert calls == [(number, "lone") for number in range(5)]


async def test_whatever_is_raised_is_a_value() -> None:
    thread = LoneThread("lone")

    for error in (ValueError("x"), SystemExit(1), KeyboardInterrupt(), StopIteration(), asyncio.CancelledError()):

        def fail(error: BaseException = error) -> None:
            raise error

        assert (await thread.call(fail)).error is error

    thread.end()


async def test_an_abandoned_loop_ends_though_it_catches_exceptions() -> None:
    thread = LoneThread("spinning")
    started = threading.Event()

    def spin() -> None:
        while True:
            try:
                started.set()
            except Exception:
                continue

    answer = thread.call(spin)
    await asyncio.to_thread(started.wait)
    thread.abandon()

    await asyncio.to_thread(thread._thread.join, 10)
    assert not thread._thread.is_alive()
    assert answer.done()


async def test_an_abandoned_sleep_is_not_waited_for() -> None:
    thread = LoneThread("asleep")
    begun = time.monotonic()

    thread.call(lambda: time.sleep(1))
    thread.abandon()

    assert time.monotonic() - begun < 0.5
    assert thread._thread.daemon, "or the end of the process would wait for it"


def test_an_answer_for_a_loop_that_is_closed_is_dropped() -> None:
    release = threading.Event()

    async def leave() -> LoneThread:
        thread = LoneThread("late")
        thread.call(release.wait)
        return thread

    thread = asyncio.run(leave())
    release.set()
    thread._thread.join(10)

    assert not thread._thread.is_alive()
