"""A ledger that waits out outages: a verb that found it away is called again, until it answers.

Every verb is safe to repeat, so this is all that an outage needs; the crawl stands still meanwhile and goes on by itself.
"""

import functools
import logging
import random
from collections.abc import Awaitable, Callable
from typing import Any, cast

from gossamer.clock import Clock
from gossamer.errors import EngineUnavailable
from gossamer.ports.ledger import Ledger

log = logging.getLogger("gossamer.engine")

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0


def patient(ledger: Ledger, clock: Clock, rng: random.Random) -> Ledger:
    """The same ledger; its verbs return when they are done, however long it was away. `Fenced` and `NoCrawl` pass through."""
    return cast(Ledger, _Patient(ledger, clock, rng))


async def persist(call: Callable[[], Awaitable[Any]], what: str, clock: Clock, rng: random.Random) -> Any:
    """Calls until the engine is there. Pauses grow, and differ, so that a server that comes back is not trampled."""
    pause_s = FIRST_PAUSE_S
    while True:
        try:
            return await call()
        except EngineUnavailable as error:
            log.warning("engine.away", extra={"what": what, "error": str(error), "pause_s": round(pause_s, 2)})
            await clock.sleep(pause_s * rng.uniform(0.5, 1.0))
            pause_s = min(pause_s * 2, LONGEST_PAUSE_S)


class _Patient:
    def __init__(self, ledger: Ledger, clock: Clock, rng: random.Random) -> None:
        self._ledger, self._clock, self._rng = ledger, clock, rng

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._ledger, verb)

        @functools.wraps(method)
        async def call(*args: Any, **kwargs: Any) -> Any:
            return await persist(lambda: method(*args, **kwargs), verb, self._clock, self._rng)

        setattr(self, verb, call)  # looked up once
        return call
