"""Cancellation that a driver may not lose.

redis-py answers a call whose task was cancelled meanwhile as if nothing had been (8.1 does, about every third time), or raises an
error of its own: a role that is told to end, or a loop that is to make way for another, would then go on for ever. So whoever
awaits the driver looks afterwards.
"""

import asyncio
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


async def heedful(answer: Awaitable[T]) -> T:
    """The answer; or CancelledError, if the task was cancelled while it waited. What was asked may have been done all the same."""
    task = asyncio.current_task()
    assert task is not None
    before = task.cancelling()
    try:
        answered = await answer
    except Exception:
        if task.cancelling() > before:
            raise asyncio.CancelledError from None
        raise
    if task.cancelling() > before:
        raise asyncio.CancelledError
    return answered
