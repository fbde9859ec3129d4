"""The breaker: a service that fails again and again is left alone for a while, then tried with a single request.

Knows: how requests went, and the clock. Must not know: what they are for. Never waits: it says how long, and the caller waits.
"""

from typing import Final

from gossamer.clock import Clock

#: In a row; then it is left alone.
FAILURES_MAX: Final = 5
LEFT_ALONE_S: Final = 60.0
#: What it may ask for by Retry-After. More is not believed: a slip of its operator's would switch it off for good.
ASKED_FOR_MAX_S: Final = 3600.0


class Breaker:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._failures = 0  # in a row
        self._until_s = float("-inf")
        self.away_since: float | None = None  #: when the first of them was

    @property
    def is_open(self) -> bool:
        """So many failures in a row that a single success is wanted before it is relied upon again."""
        return self._failures >= FAILURES_MAX

    def wait_s(self) -> float:
        """How long it is still to be left alone."""
        return max(self._until_s - self._clock.monotonic(), 0.0)

    def succeeded(self) -> None:
        self._failures, self._until_s, self.away_since = 0, float("-inf"), None

    def failed(self, retry_after_s: float | None = None) -> None:
        self._failures += 1
        if self.away_since is None:
            self.away_since = self._clock.now()
        rest_s = LEFT_ALONE_S if self.is_open else 0.0
        asked_s = min(retry_after_s or 0.0, ASKED_FOR_MAX_S)
        if rest_s or asked_s:
            self._until_s = max(self._until_s, self._clock.monotonic() + max(rest_s, asked_s))
