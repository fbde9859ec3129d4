"""Pauses: what a crawl stands on is away, or full, and is waited for.

A pause is told once, however many calls wait, and once when it is over. A crawl's roles tell theirs in their logs: whoever reads
those knows the lines by their form (`read_pause`), and tells once what troubles several roles.
"""

import asyncio
import errno
import logging
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

from tenacity import AsyncRetrying, retry_if_exception_type, wait_random_exponential

from gossamer.clock import Clock

log = logging.getLogger("gossamer.engine")

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0

T = TypeVar("T")

_BEGINS: Final = "paused: "
_ENDS: Final = ", was paused: "
_DETAIL: Final = " ("


class Pauses:
    """Those of one process."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._calls: dict[str, int] = {}  # that wait, by reason
        self._since: dict[str, float] = {}
        self._answered: set[str] = set()  # reasons that are no more: a call was answered

    @property
    def reasons(self) -> tuple[str, ...]:
        """Why the crawl is paused here; none if it is not."""
        return tuple(self._calls)

    async def outlast(self, call: Callable[[], Awaitable[T]], errors: type[Exception], first: Exception, reason: str) -> T:
        """The answer to a call that has raised the first of such errors: it is made again, until it is answered."""
        again = AsyncRetrying(
            retry=retry_if_exception_type(errors),
            # Pauses grow, and differ, so that what comes back is not trampled.
            wait=wait_random_exponential(multiplier=FIRST_PAUSE_S, max=LONGEST_PAUSE_S),
            sleep=self._clock.sleep,
        )
        with self._waiting(reason, first):
            return await again(call)

    @contextmanager
    def _waiting(self, reason: str, detail: object) -> Iterator[None]:
        """While it lasts, a call waits for this reason. The pause is over, and that is told, if one of them was answered."""
        if reason not in self._calls:
            self._since[reason] = self._clock.monotonic()
            self._answered.discard(reason)
            log.warning("%s%s%s%s; tried again until it works)", _BEGINS, reason, _DETAIL, detail)
        self._calls[reason] = self._calls.get(reason, 0) + 1
        answered = True
        try:
            yield
        except asyncio.CancelledError:
            answered = False
            raise
        finally:
            if answered:
                self._answered.add(reason)
            self._calls[reason] -= 1
            if not self._calls[reason]:
                del self._calls[reason]
                since = self._since.pop(reason)
                if reason in self._answered:
                    log.warning("goes on after %.1f s%s%s", self._clock.monotonic() - since, _ENDS, reason)


def read_pause(text: str) -> tuple[str, bool] | None:
    """The reason in a line of a role's log, and whether the pause begins or ends there; None if the line is about none."""
    if text.startswith(_BEGINS):
        return text.removeprefix(_BEGINS).partition(_DETAIL)[0], True
    _, ends, reason = text.partition(_ENDS)
    return (reason.partition(_DETAIL)[0], False) if ends else None


def lacks_room(error: BaseException | None) -> bool:
    """Whether a disk, or a user's share of it, is full."""
    return isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT)
