"""Ports that wait out outages: a call that found its server away is made again, until it is answered.

Every verb of a port is safe to repeat, so this is all that an outage needs; the crawl stands still meanwhile and goes on by itself.
The price: whoever waits so hears nothing else. What must be able to end while a server is away sets a limit, or races the call.
"""

import functools
import logging
from collections.abc import Awaitable, Callable, Collection
from typing import Any, Final, TypeVar, cast

from tenacity import AsyncRetrying, retry_if_exception_type, wait_random_exponential

from gossamer.clock import Clock
from gossamer.errors import EngineUnavailable

log = logging.getLogger("gossamer.engine")

FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 5.0

T = TypeVar("T")


def patient(port: T, clock: Clock, name: str, verbs: Collection[str] | None = None) -> T:
    """The same port; these of its verbs (all, unless they are named) return when they are done, however long it was away.

    What is no outage (`Fenced`, `NoCrawl`) passes through. `name` is what people are told is away.
    """
    return cast(T, _Patient(port, clock, name, verbs))


class _Patient:
    def __init__(self, port: object, clock: Clock, name: str, verbs: Collection[str] | None) -> None:
        self._port, self._clock, self._name, self._verbs = port, clock, name, verbs
        self._away_since: float | None = None
        self._retrying = AsyncRetrying(
            retry=retry_if_exception_type(EngineUnavailable),
            # Pauses grow, and differ, so that a server that comes back is not trampled.
            wait=wait_random_exponential(multiplier=FIRST_PAUSE_S, max=LONGEST_PAUSE_S),
            sleep=clock.sleep,
        )

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._port, verb)
        call = method if self._verbs is not None and verb not in self._verbs else self._repeated(method)
        setattr(self, verb, call)  # looked up once
        return call

    def _repeated(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(method)
        async def call(*args: Any, **kwargs: Any) -> Any:
            try:
                answer = await method(*args, **kwargs)  # nearly always: the machinery below costs more than a verb
            except EngineUnavailable as error:
                self._went_away(error)
                answer = await self._retrying(method, *args, **kwargs)
            if self._away_since is not None:
                self._came_back(self._away_since)
            return answer

        return call

    def _went_away(self, error: EngineUnavailable) -> None:
        """Told once, however many calls wait for it."""
        if self._away_since is None:
            self._away_since = self._clock.monotonic()
            log.warning("the %s is away, and is waited for: %s", self._name, error)

    def _came_back(self, away_since: float) -> None:
        self._away_since = None
        log.warning("the %s is back after %.1f s", self._name, self._clock.monotonic() - away_since)
