"""Waiting that has an end."""

import asyncio

import pytest

from gossamer.racing import unless


async def answer() -> int:
    return 7


async def test_an_answer_that_is_there_in_time_is_had() -> None:
    assert await unless(asyncio.Event().wait(), answer()) == 7


async def test_what_is_not_there_in_time_is_given_up_and_cleaned_up() -> None:
    ended = asyncio.Event()

    async def never() -> int:
        try:
            await asyncio.Event().wait()
            return 7
        finally:
            await asyncio.sleep(0)
            ended.set()

    assert await unless(answer(), never()) is None
    assert ended.is_set()


async def test_what_is_raised_is_raised() -> None:
    async def fails() -> int:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await unless(asyncio.Event().wait(), fails())
