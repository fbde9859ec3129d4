"""An async call that one may stop waiting for.

`asyncio.timeout` cancels, and then waits for the code that it cancelled; so does `asyncio.run` at its end, for all tasks. One
loop that goes on after a CancelledError, and neither ever ends. Here a call is cancelled once, so that it can clean up; whatever
cancels it after that ends the task without asking it.
Must not know: what is called, or what becomes of its errors.
"""

import asyncio
import types
from collections.abc import Awaitable, Callable, Generator
from typing import Any


async def call_within(timeout_s: float, call: Callable[[], Awaitable[object] | None]) -> BaseException | None:
    """What it raised, as a value: a SystemExit of theirs must not end our loop. TimeoutError when it is not through by then.

    Also a cancellation of the call's own making is a value; one of ours passes through, and cancels the call.
    """
    left = _Left()
    task = asyncio.create_task(_caught(call, left))
    try:
        await asyncio.wait({task}, timeout=timeout_s)
    finally:
        left.behind = True
        task.cancel()
    if not task.done():
        raise TimeoutError
    return task.result()


class _Left:
    """Whether somebody still waits. Cancellations before that are the call's own: an `asyncio.timeout` of theirs makes them."""

    behind = False


async def _caught(call: Callable[[], Awaitable[object] | None], left: _Left) -> BaseException | None:
    try:
        if (waiting := call()) is not None:
            await _leavable(waiting, left)
    except BaseException as error:
        return error
    return None


@types.coroutine
def _leavable(waiting: Awaitable[object], left: _Left) -> Generator[Any, Any, None]:
    """`await waiting`, which once left behind hears of one cancellation and is dropped at the next."""
    steps = waiting.__await__()
    advance: Callable[[], Any] = steps.__next__
    has_heard = False
    while True:
        try:
            future = advance()
        except StopIteration:
            return
        try:
            yield future
            advance = steps.__next__
        except BaseException as thrown:
            if has_heard:
                raise
            has_heard = left.behind
            advance = _thrower(steps, thrown)


def _thrower(steps: Generator[Any, Any, Any], thrown: BaseException) -> Callable[[], Any]:
    return lambda: steps.throw(thrown)
