"""Calls made together: groups by themselves, nobody forgotten, nobody's failure somebody else's loss."""

import asyncio
from collections.abc import Sequence

import pytest

from gossamer.clock import ManualClock
from gossamer.together import Together


async def test_who_comes_while_a_call_is_under_way_goes_into_the_next() -> None:
    groups: list[list[int]] = []
    answered = asyncio.Event()

    async def call(items: Sequence[int]) -> list[int]:
        groups.append(list(items))
        await answered.wait()
        return [item * 10 for item in items]

    together = Together(call, most=100)
    first = asyncio.create_task(together(1))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    others = [asyncio.create_task(together(number)) for number in (2, 3, 4)]
    await asyncio.sleep(0)
    answered.set()

    assert await first == 10
    assert await asyncio.gather(*others) == [20, 30, 40]
    assert groups == [[1], [2, 3, 4]]


async def test_calls_at_once_wait_for_no_other_and_who_comes_at_one_moment_still_goes_together() -> None:
    groups: list[list[int]] = []
    answered = asyncio.Event()

    async def call(items: Sequence[int]) -> list[int]:
        groups.append(list(items))
        await answered.wait()
        return [item * 10 for item in items]

    together = Together(call, most=2, at_once=True)
    callers = [asyncio.create_task(together(1))]
    await settled()
    callers += [asyncio.create_task(together(number)) for number in (2, 3, 4)]
    await settled()
    callers += [asyncio.create_task(together(5))]
    await settled()
    assert groups == [[1], [2, 3], [4], [5]]
    answered.set()

    assert await asyncio.gather(*callers) == [10, 20, 30, 40, 50]
    assert await together(6) == 60, "whoever comes later is served as well"


async def test_a_group_is_never_larger_than_it_may_be() -> None:
    sizes: list[int] = []

    async def call(items: Sequence[int]) -> Sequence[int]:
        sizes.append(len(items))
        return items

    together = Together(call, most=4)

    assert await asyncio.gather(*(together(number) for number in range(10))) == list(range(10))
    assert max(sizes) == 4


async def test_what_a_call_raises_is_the_answer_of_its_whole_group_and_of_no_other() -> None:
    async def call(items: Sequence[int]) -> Sequence[int]:
        if 1 in items:
            raise ValueError(items)
        return items

    together = Together(call, most=1)

    answers = await asyncio.gather(together(1), together(2), return_exceptions=True)

    assert isinstance(answers[0], ValueError)
    assert answers[1] == 2
    assert await together(3) == 3


async def test_one_that_gives_up_takes_nobody_along() -> None:
    async def call(items: Sequence[int]) -> Sequence[int]:
        await asyncio.sleep(0)
        return items

    together = Together(call, most=10)
    impatient, patient = asyncio.create_task(together(1)), asyncio.create_task(together(2))
    await asyncio.sleep(0)
    impatient.cancel()

    assert await patient == 2
    with pytest.raises(asyncio.CancelledError):
        await impatient


async def settled() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def test_the_first_lingers_for_company_and_no_longer() -> None:
    groups: list[list[int]] = []

    async def call(items: Sequence[int]) -> Sequence[int]:
        groups.append(list(items))
        return items

    clock = ManualClock()
    together = Together(call, most=10, linger_s=1.0, clock=clock)
    together.one_comes()
    first = asyncio.create_task(together(1))
    await settled()
    second = asyncio.create_task(together(2))
    await settled()
    assert groups == []
    clock.advance(1.0)

    assert [await first, await second] == [1, 2]
    assert groups == [[1, 2]]


@pytest.mark.parametrize("how", ["enough", "full", "nobody comes"])
async def test_nobody_lingers_when_the_group_is_complete(how: str) -> None:
    async def call(items: Sequence[int]) -> Sequence[int]:
        return items

    clock = ManualClock()
    most = 2 if how == "enough" else 10
    together = Together(
        call, most=most, linger_s=1.0, clock=clock, weight=lambda number: number, most_weight=3 if how == "full" else 100
    )
    together.one_comes()
    tasks = [asyncio.create_task(together(number)) for number in (1, 2)]
    await settled()
    if how == "nobody comes":
        together.one_came()

    assert await asyncio.gather(*tasks) == [1, 2]


async def test_nobody_lingers_when_nobody_is_on_the_way() -> None:
    async def call(items: Sequence[int]) -> Sequence[int]:
        return items

    together = Together(call, most=10, linger_s=1.0, clock=ManualClock())

    assert await together(1) == 1
    together.one_comes()
    together.one_came()
    assert await together(2) == 2


async def test_each_group_lingers_anew() -> None:
    async def call(items: Sequence[int]) -> Sequence[int]:
        return items

    clock = ManualClock()
    together = Together(call, most=2, linger_s=1.0, clock=clock)
    together.one_comes()
    assert await asyncio.gather(*map(together, (1, 2))) == [1, 2]
    await settled()

    third = asyncio.create_task(together(3))
    await settled()
    assert not third.done()
    clock.advance(1.0)
    assert await third == 3
