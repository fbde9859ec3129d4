"""Calls made together: whoever comes while a call is under way goes into the next one.

A verb on thirty pages costs little more than on one, so what several tasks want at about the same time is asked once. Nobody
waits for a timer: a lone caller is served at once, and groups grow with the load by themselves. `linger_s` is for what is dear to
call (a blob store): the first one waits that long for company, while there is somebody who may come. `at_once` is for what
answers many calls in the time of one, as ledgers do: no call waits for another one's end, and those who come in the same turn of
the loop still go together.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Generic, TypeVar

from gossamer.clock import Clock

A = TypeVar("A")
B = TypeVar("B")


class Together(Generic[A, B]):
    """`await together(item)` is `(await call([… item …]))[its place]`."""

    def __init__(
        self,
        call: Callable[[Sequence[A]], Awaitable[Sequence[B]]],
        *,
        most: int,
        at_once: bool = False,
        linger_s: float = 0.0,
        clock: Clock | None = None,
        weight: Callable[[A], int] = lambda item: 0,
        most_weight: int = 1,
    ) -> None:
        """At most `most` of them go into one call. Company is enough when they are so many, or weigh `most_weight`."""
        assert most > 0
        assert linger_s == 0 or clock is not None
        self._call = call
        self._most, self._at_once = most, at_once
        self._linger_s = linger_s
        self._clock = clock
        self._weight_of, self._most_weight = weight, most_weight
        self._weight = 0  # of all that wait
        self._waiting: list[tuple[A, asyncio.Future[B]]] = []
        self._callers: set[asyncio.Task[None] | None] = set()
        self._gathers = False  # one of these is about to take those who wait
        self._enough = asyncio.Event()
        self._coming = 0

    def __len__(self) -> int:
        """How many wait for their call to begin."""
        return len(self._waiting)

    async def __call__(self, item: A) -> B:
        return await self.soon(item)

    def soon(self, item: A) -> "asyncio.Future[B]":
        """The same, for whoever has something else to do before the answer is there."""
        answer: asyncio.Future[B] = asyncio.get_running_loop().create_future()
        self._waiting.append((item, answer))
        self._weight += self._weight_of(item)
        self._look()
        self._see_to_them()
        return answer

    def one_comes(self) -> None:
        """Somebody is on the way who may call, and is worth waiting for."""
        self._coming += 1

    def one_came(self) -> None:
        """Or will not, after all."""
        self._coming -= 1
        if not self._coming:
            self._enough.set()

    def _look(self) -> None:
        """Whether those who wait are company enough."""
        if self._linger_s and (len(self._waiting) >= self._most or self._weight >= self._most_weight):
            self._enough.set()

    def _see_to_them(self) -> None:
        if not self._gathers and (self._at_once or not self._callers):
            self._gathers = True
            self._callers.add(asyncio.get_running_loop().create_task(self._work()))

    async def _work(self) -> None:
        """Calls until nobody waits. What a call raises is everybody's answer, so this task never fails."""
        try:
            while self._waiting:
                self._gathers = True
                await self._company()
                group, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
                self._gathers = False
                self._weight -= sum(self._weight_of(item) for item, _ in group)
                self._enough.clear()
                self._look()
                if self._waiting:
                    self._see_to_them()
                try:
                    answers = await self._call([item for item, _ in group])
                except Exception as error:
                    for _, future in group:
                        if not future.done():
                            future.set_exception(error)
                    continue
                assert len(answers) == len(group)
                for (_, future), answer in zip(group, answers, strict=True):
                    if not future.done():
                        future.set_result(answer)
        finally:
            self._callers.discard(asyncio.current_task())

    async def _company(self) -> None:
        if self._clock is not None and self._linger_s and self._coming and not self._enough.is_set():
            timer = asyncio.ensure_future(self._clock.sleep(self._linger_s))
            timer.add_done_callback(lambda ended: None if ended.cancelled() else self._enough.set())
            try:
                await self._enough.wait()
            finally:
                timer.cancel()
