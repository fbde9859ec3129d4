"""The pace of a domain: how long between two requests, as its answers come. Pure.

The largest of what we want, what robots.txt asks for, and what the server shows: twice its usual response time, and twice the pause
after each sign that it is unwell, until ten good answers in a row halve it again. A delay of 0 turns the last part off: it is for
tests, and for sites of one's own.
"""

import math
from datetime import UTC
from email.utils import parsedate_to_datetime
from typing import Final

import msgspec
from msgspec.structs import replace

CEILING_S: Final = 60.0
GOOD_ANSWERS: Final = 10
#: How much a new response time counts against those before it.
SMOOTHING: Final = 0.2


class Pace(msgspec.Struct, frozen=True):
    wanted_s: float  #: `--delay`
    asked_s: float = 0.0  #: Crawl-delay
    response_s: float | None = None  #: smoothed
    penalty_s: float = 0.0
    good: int = 0  #: answers in a row

    @property
    def delay_s(self) -> float:
        if self.wanted_s == 0:
            return self.asked_s
        adaptive_s = min(max(2 * (self.response_s or 0.0), self.penalty_s), CEILING_S)
        return max(self.wanted_s, self.asked_s, adaptive_s)

    def at_least(self, crawl_delay_s: float) -> "Pace":
        return replace(self, asked_s=max(self.asked_s, crawl_delay_s))

    def after(self, *, took_s: float | None, well: bool) -> "Pace":
        """After an answer that took so long (None: there was none)."""
        if self.wanted_s == 0:
            return self
        response_s = self.response_s
        if took_s is not None:
            response_s = took_s if response_s is None else response_s + SMOOTHING * (took_s - response_s)
        if not well:
            return replace(self, response_s=response_s, penalty_s=min(2 * self.delay_s, CEILING_S), good=0)
        if self.good + 1 < GOOD_ANSWERS or not self.penalty_s:
            return replace(self, response_s=response_s, good=self.good + 1)
        halved_s = self.penalty_s / 2
        return replace(self, response_s=response_s, penalty_s=halved_s if halved_s > self.wanted_s else 0.0, good=0)


def retry_after_s(value: str | None, now: float) -> float | None:
    """The pause that a server asks for; None if it names none that makes sense."""
    if value is None:
        return None
    value = value.strip()
    if value.isascii() and value.isdigit():
        seconds = float(value[:12])
    else:
        try:
            moment = parsedate_to_datetime(value)
        except (ValueError, TypeError, OverflowError):
            return None
        seconds = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() - now
    return seconds if seconds > 0 and math.isfinite(seconds) else None
