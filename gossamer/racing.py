"""Waiting that has an end: for an answer, unless something happens first. What is waited for may be away, or full, for hours."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")


async def unless(first: Coroutine[Any, Any, object], waiting: Coroutine[Any, Any, T]) -> T | None:
    """The answer; None if the other one is through before there is one: then it is given up."""
    work, other = asyncio.ensure_future(waiting), asyncio.ensure_future(first)
    try:
        await asyncio.wait((work, other), return_when=asyncio.FIRST_COMPLETED)
        return work.result() if work.done() else None
    finally:
        for each in (work, other):
            each.cancel()
        await asyncio.wait((work, other))
