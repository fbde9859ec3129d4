"""What a case costs: wall time, peak memory above the idle process, how long the event loop was kept from its other work, and
what is left open behind it."""

import asyncio
import ctypes
import gc
import os
import sys
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.hostile.case import MB, Case

#: What a process gains and loses by itself: allocators round up, SQLite and curl keep what they have.
NOISE_BYTES: Final = 2 * MB
#: The longest that other pages of a worker may be kept waiting by one.
LAG_S: Final = 0.5
TICK_S: Final = 0.005
#: How long sockets may take to be closed for good.
GRACE_S: Final = 1.0


@dataclass(frozen=True, slots=True)
class Measured:
    """A case, and what was seen of it."""

    case: Case
    outcome: str
    note: str = ""
    seconds: float = 0.0
    peak_bytes: int = 0
    lag_s: float = 0.0
    left_open: int = 0  #: descriptors and tasks

    def flaws(self, *, patience: float = 1.0) -> list[str]:
        """Why it is not as it should be, in words. On a busy machine everything may take `patience` times as long."""
        case = self.case
        found = []
        if self.outcome not in case.expected:
            found.append(f"{self.outcome} instead of {' or '.join(sorted(case.expected))}")
        if self.seconds > case.seconds * patience:
            found.append(f"{self.seconds:.2f} s instead of {case.seconds:g} s")
        if self.peak_bytes > case.memory_bytes + NOISE_BYTES:
            found.append(f"{self.peak_bytes / MB:.1f} MB instead of {case.memory_bytes / MB:g} MB")
        if self.lag_s > LAG_S * patience:
            found.append(f"nothing else was done for {self.lag_s:.2f} s")
        if self.left_open > 0:
            found.append(f"{self.left_open} descriptors or tasks are left")
        return found


async def measured(case: Case) -> Measured:
    """Runs a case. One that raises has the error for an outcome, so that those after it are run as well."""
    opened = _open()
    ticking = asyncio.create_task(_tick())
    mark()
    try:
        seen = await case.run()
        outcome, note = seen.outcome, seen.note
    except Exception as error:
        outcome, note = type(error).__name__, str(error)
    seconds, peak_bytes, lag_s = (
        time.perf_counter() - _marked.at,
        _high_water() - _marked.idle_bytes,
        max(_marked.lags, default=0.0),
    )
    ticking.cancel()
    return Measured(case, outcome, note, seconds, max(0, peak_bytes), lag_s, await _left_open(opened))


def mark() -> None:
    """Measures from here on. A case calls it again when its peer is ready, so that what that took is not counted."""
    gc.collect()
    if sys.platform == "linux":
        _TRIM(0)  # memory that was freed, and not given back, would hide what comes now
        Path("/proc/self/clear_refs").write_text("5")
    _marked.idle_bytes = _high_water()
    _marked.lags.clear()
    _marked.at = time.perf_counter()


@dataclass
class _Marked:
    at: float = 0.0
    idle_bytes: int = 0
    lags: list[float] = field(default_factory=list)


_marked: Final = _Marked()
_TRIM: Final = getattr(ctypes.CDLL(None), "malloc_trim", lambda _: 0)


def _high_water() -> int:
    """The most memory that this process had since the last mark; 0 where nobody tells."""
    if sys.platform != "linux":
        return 0
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) * 1024
    return 0


async def _tick() -> None:
    """How much later than it should the loop comes back."""
    while True:
        before = max(time.perf_counter(), _marked.at)
        await asyncio.sleep(TICK_S)
        _marked.lags.append(time.perf_counter() - max(before, _marked.at) - TICK_S)


def _open() -> int:
    descriptors = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    return descriptors + len(asyncio.all_tasks())


async def _left_open(before: int) -> int:
    until = time.perf_counter() + GRACE_S
    while (left := _open() - before) > 0 and time.perf_counter() < until:  # noqa: ASYNC110  # it happens in the kernel
        await asyncio.sleep(TICK_S)
    return left
