"""Time, handed in. Whatever decides by the clock gets one, so that a test drives hours in milliseconds.

`time.time`, `time.monotonic` and `asyncio.sleep` are called here and in adapters only.
"""

import asyncio
import time
from typing import Protocol


class Clock(Protocol):
    """Now, and a way to wait. Both in seconds."""

    def now(self) -> float:
        """Seconds since 1970, for what is written down. May jump when the machine's clock is set."""
        ...

    def monotonic(self) -> float:
        """Seconds since some moment, for durations. Never goes back."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Returns when that much time has passed; at once when `seconds` is not positive."""
        ...


class SystemClock:
    """The machine's own."""

    def now(self) -> float:
        return time.time()

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0))


class ManualClock:
    """Stands still until it is moved. Sleepers wake, in order, as it passes them."""

    def __init__(self, start: float = 1_700_000_000.0) -> None:
        self._now = start
        self._sleepers: list[tuple[float, asyncio.Future[None]]] = []

    def now(self) -> float:
        return self._now

    def monotonic(self) -> float:
        return self._now

    async def sleep(self, seconds: float) -> None:
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._now + seconds, woken))
        await woken

    def advance(self, seconds: float) -> None:
        """Moves time on and wakes whoever slept until then."""
        assert seconds >= 0
        self._now += seconds
        due = [sleeper for sleeper in self._sleepers if sleeper[0] <= self._now]
        self._sleepers = [sleeper for sleeper in self._sleepers if sleeper[0] > self._now]
        for _, woken in sorted(due, key=lambda sleeper: sleeper[0]):
            if not woken.done():
                woken.set_result(None)
