"""An async call that one may stop waiting for."""

import asyncio

import pytest

from services.worker.lone_task import call_within


async def forever() -> None:
    await asyncio.Event().wait()


async def test_what_ends_in_time_is_none_or_what_it_raised() -> None:
    async def fine() -> str:
        await asyncio.sleep(0)
        return "ignored"

    async def fail(error: BaseException) -> None:
        await asyncio.sleep(0)
        raise error

    assert await call_within(5, fine) is None
    assert await call_within(5, lambda: None) is None
    for error in (ValueError(), SystemExit(), KeyboardInterrupt(), asyncio.CancelledError()):
        assert await call_within(5, lambda error=error: fail(error)) is error  # type: ignore[misc]


async def test_what_cancels_itself_is_no_cancellation_of_ours() -> None:
    async def cancel_oneself() -> None:
        task = asyncio.current_task()
        assert task is not None
        task.cancel()
        await forever()

    assert isinstance(await call_within(5, cancel_oneself), asyncio.CancelledError)


async def test_timeouts_inside_a_call_are_its_own_business() -> None:
    async def impatient() -> None:
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.001):
                    await forever()

    assert await call_within(5, impatient) is None


async def test_what_is_left_behind_can_clean_up() -> None:
    cleaned = asyncio.Event()

    async def tidy() -> None:
        try:
            await forever()
        finally:
            await asyncio.sleep(0.001)
            cleaned.set()

    with pytest.raises(TimeoutError):
        await call_within(0.01, tidy)

    await asyncio.wait_for(cleaned.wait(), 5)


def test_code_that_swallows_its_cancellation_does_not_keep_the_process() -> None:
    async def stubborn() -> None:
        while True:
            try:
                await forever()
            except asyncio.CancelledError:
                continue

    async def main() -> str:
        with pytest.raises(TimeoutError):
            await call_within(0.01, stubborn)
        return "ended"

    assert asyncio.run(main()) == "ended"


async def test_our_own_cancellation_passes_through_and_ends_the_call() -> None:
    ended = asyncio.Event()

    async def long() -> None:
        try:
            await forever()
        finally:
            ended.set()

    ours = asyncio.create_task(call_within(5, long))
    await asyncio.sleep(0.01)
    ours.cancel()

    with pytest.raises(asyncio.CancelledError):
        await ours
    await asyncio.wait_for(ended.wait(), 5)
