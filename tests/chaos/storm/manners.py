"""How the web was treated, as it saw it itself: one request at a time for each host, and a delay between two.

The ledger spaces the moments in which requests are allowed; what a busy machine puts between that and the web's own clock shifts
them against each other. So what counts as a breach is what no shift explains: two in flight at once, or less than half of the
delay.

A worker that is frozen between the gate and its request may send that one request when it wakes, whoever was given its domain
meanwhile: nobody can call it back (docs/protocol.md, window 15). Such a request is told apart, if it is one of those that the
worker was allowed when it was frozen, comes right after it woke, and is the only one.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

#: What is left of a walk when its worker wakes is a few steps of the event loop; on a busy machine these take a while.
AWAKE_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Request:
    """Times are those of the machine's monotonic clock, which all processes share."""

    start: float
    end: float
    host: str
    url: str  #: its identity


@dataclass(frozen=True, slots=True)
class Frozen:
    """A worker that slept, and the identities of what it was allowed to ask for."""

    until: float
    urls: frozenset[str]


@dataclass(frozen=True, slots=True)
class Breach:
    first: Request
    second: Request

    def __str__(self) -> str:
        gap_s = self.second.start - self.first.start
        return f"{self.second.url} came {gap_s:.3f} s after {self.first.url}, which took {self.first.end - self.first.start:.3f} s"


@dataclass(slots=True)
class Manners:
    breaches: list[Breach] = field(default_factory=list)
    frozen: list[Breach] = field(default_factory=list)  #: what window 15 allows
    least_gap_s: float = float("inf")
    short: int = 0  #: gaps that are shorter than the delay and no breach


def judge(requests: Iterable[Request], frozen: Sequence[Frozen], delay_s: float) -> Manners:
    manners, hosts = Manners(), dict[str, list[Request]]()
    excused = dict[tuple[Frozen, str], Request]()
    for request in sorted(requests, key=lambda each: each.start):
        hosts.setdefault(request.host, []).append(request)
    for asked in hosts.values():
        last = asked[0]  # the one that ended last, of those that came before
        for before, request in pairwise(asked):
            gap_s = request.start - before.start
            manners.least_gap_s = min(manners.least_gap_s, gap_s)
            last = max(last, before, key=lambda each: each.end)
            if request.start < last.end or gap_s < delay_s / 2:
                breach = Breach(last if request.start < last.end else before, request)
                (manners.frozen if _is_excused(breach, frozen, excused) else manners.breaches).append(breach)
            elif gap_s < delay_s:
                manners.short += 1
    return manners


def _is_excused(breach: Breach, frozen: Sequence[Frozen], excused: dict[tuple[Frozen, str], Request]) -> bool:
    """One request for each URL of a sleeper; it may stand too close to the one before it and to the one after it."""
    for request in (breach.second, breach.first):
        for sleeper in frozen:
            is_late = request.url in sleeper.urls and sleeper.until <= request.start <= sleeper.until + AWAKE_S
            if is_late and excused.setdefault((sleeper, request.url), request) == request:
                return True
    return False
