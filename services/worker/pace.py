"""The pace of a domain: how long between two requests, as its answers come, and what to do when it says "not now". Pure.

The delay is the largest of what we want, what robots.txt asks for, and what the server shows: twice its usual response time, and
twice the pause so far after each sign that it is unwell, until ten good answers in a row halve that again. A wanted delay of 0
turns the last part off: it is for tests, and for sites of one's own.

Knows: what answers were like. Must not know: clocks, queues, who waits.
"""

import re
from dataclasses import dataclass, replace
from email.utils import parsedate_to_datetime
from typing import Final

CEILING_S: Final = 60.0
GOOD_ANSWERS: Final = 10
#: How much a new response time counts against those before it.
SMOOTHING: Final = 0.2

#: Statuses by which a server says that it has had enough of us, rather than that a page is broken.
BUSY: Final = frozenset({429, 503})

#: What a server asks for is waited out before the one retry up to this; beyond it the URL is put off.
PAUSE_MAX_S: Final = 60.0
#: A server that asks for more is not asked again.
DEFERRAL_MAX_S: Final = 3600.0
#: The first deferral when the server names no time of its own; each further one is twice as long.
DEFERRAL_S: Final = 60.0


@dataclass(frozen=True, slots=True)
class Pace:
    """What is known of a domain's pace. A new owner may begin with the delay that was in force as the penalty."""

    wanted_s: float  #: --delay
    asked_s: float = 0.0  #: Crawl-delay
    response_s: float | None = None  #: the usual response time
    penalty_s: float = 0.0  #: after signs that the server is unwell
    good: int = 0  #: good answers in a row

    @property
    def delay_s(self) -> float:
        """Between the starts of two requests."""
        if self.wanted_s == 0:
            return self.asked_s
        adaptive_s = min(max(2 * (self.response_s or 0.0), self.penalty_s), CEILING_S)
        return max(self.wanted_s, self.asked_s, adaptive_s)

    def at_least(self, crawl_delay_s: float) -> "Pace":
        """With what robots.txt asks for."""
        return replace(self, asked_s=max(self.asked_s, crawl_delay_s))

    def after(self, *, took_s: float | None, well: bool) -> "Pace":
        """After an answer that took so long, or none at all; `well` unless it was 429, 503 or a timeout."""
        if self.wanted_s == 0:
            return self
        response_s = self.response_s
        if took_s is not None:
            response_s = took_s if response_s is None else response_s + SMOOTHING * (took_s - response_s)
        if not well:
            return replace(self, response_s=response_s, penalty_s=min(2 * self.delay_s, CEILING_S), good=0)
        if self.good + 1 < GOOD_ANSWERS or not self.penalty_s:
            return replace(self, response_s=response_s, good=min(self.good + 1, GOOD_ANSWERS))
        halved_s = self.penalty_s / 2
        return replace(self, response_s=response_s, penalty_s=halved_s if halved_s > self.wanted_s else 0.0, good=0)


def retry_after_s(header: str | None, now: float) -> float | None:
    """The pause that a server asks for (RFC 9110, section 10.2.3); None if it names none that makes sense.

    A moment that has passed and a year of two digits make none: such clocks are wrong, and our own pause is better.
    """
    text = (header or "").strip()
    if _SECONDS(text):
        return float(text)
    if not _MOMENT(text):
        return None
    try:
        pause_s = parsedate_to_datetime(text).timestamp() - now
    except (ValueError, OverflowError):  # the 31st of February
        return None
    return pause_s if pause_s > 0 else None


_SECONDS: Final = re.compile(r"[0-9]{1,300}").fullmatch
_MOMENT: Final = re.compile(r"[A-Za-z]{3}, [0-9]{2} [A-Za-z]{3} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT").fullmatch


@dataclass(frozen=True, slots=True)
class Retry:
    """Ask once more, after this pause and the domain's own delay."""

    pause_s: float


@dataclass(frozen=True, slots=True)
class Defer:
    """Put the URL off; its domain is left alone until then."""

    until_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    reason: str


def after_failure(
    status: int | None, asked_s: float | None, *, retried: bool, deferrals: int, max_deferrals: int
) -> Retry | Defer | GiveUp:
    """What to do after a 429, a 5xx, or no answer at all (None), with the pause that the server asked for.

    The one retry of a URL is spent before it is first put off. Only a server that says that it is busy is asked again after that.
    """
    what = "no answer" if status is None else f"status {status}"
    if asked_s is not None and asked_s > DEFERRAL_MAX_S:
        return GiveUp(f"{what}, and {asked_s:g} s to wait")
    if not retried and not deferrals and (asked_s or 0.0) <= PAUSE_MAX_S:
        return Retry(asked_s or 0.0)
    if status not in BUSY:
        return GiveUp(f"{what}, twice")
    if deferrals >= max_deferrals:
        return GiveUp(f"{what}, and put off {deferrals} times")
    return Defer(asked_s if asked_s is not None else min(DEFERRAL_S * 2**deferrals, DEFERRAL_MAX_S))
