"""A prioritizer that is not ours, as the frontier calls it: whatever it does, no URL is lost or unranked for long.

It can't be interrupted, since it runs where everything else of the frontier does: one that is slow is told of, and switched off
if it goes on so.
"""

import logging
from collections.abc import Sequence
from typing import Final

from gossamer.clock import Clock
from gossamer.messages import Url
from gossamer.notes import ModuleNote
from gossamer.prioritizer import Prioritizer
from gossamer.records import UNRANKED
from services.frontier.bands import PRIORITY_MAX
from services.role.blame import blame

log = logging.getLogger("gossamer.prioritizer")

#: In a row; then it is switched off.
FAILURES_MAX: Final = 20
SLOW_MAX: Final = 3
#: For some hundreds of URLs.
DEADLINE_S: Final = 1.0


class WrongPriorities(Exception):
    """What a prioritizer gave is no priority for each URL."""


class Guarded:
    """A `Prioritizer` that never raises and always gives priorities."""

    def __init__(self, prioritizer: Prioritizer, name: str, clock: Clock) -> None:
        self._prioritizer, self._name, self._clock = prioritizer, name, clock
        self._failed_in_a_row = self._slow_in_a_row = 0
        self._told: set[str] = set()  # what was logged: once each, a batch comes ten times a second
        self._failures, self._last, self._off = 0, "", False

    def __call__(self, urls: Sequence[Url]) -> list[int]:
        if self._off:
            return _unranked(urls)
        began_s = self._clock.monotonic()
        try:
            priorities = checked(self._prioritizer(tuple(urls)), len(urls))
            self._failed_in_a_row = 0
        except (Exception, SystemExit) as error:
            priorities = _unranked(urls)
            self._failed_in_a_row += 1
            self._blame("failed", blame(error))
        took_s = self._clock.monotonic() - began_s
        self._slow_in_a_row = self._slow_in_a_row + 1 if took_s > DEADLINE_S else 0
        if self._slow_in_a_row:
            self._blame("slow", f"took {took_s:.1f} s over {len(urls)} URLs, and the frontier stands still meanwhile")
        if self._failed_in_a_row >= FAILURES_MAX or self._slow_in_a_row >= SLOW_MAX:
            self._off = True
            log.error("prioritizer %s is switched off, and URLs are left unranked: %s", self._name, self._last)
        return priorities

    def trouble(self) -> ModuleNote | None:
        """What is held against it, for who watches."""
        return ModuleNote(self._failures, self._last, switched_off=self._off) if self._failures else None

    def _blame(self, what: str, why: str) -> None:
        self._failures += 1
        self._last = why
        if what not in self._told:
            self._told.add(what)
            log.warning("prioritizer %s: %s; what more there is of this is counted, and not told again", self._name, why)


def checked(priorities: Sequence[int], count: int) -> list[int]:
    """The same, if it is a priority for each. Raises `WrongPriorities`."""
    if len(priorities) != count:
        raise WrongPriorities(f"{len(priorities)} priorities for {count} URLs")
    for each in priorities:
        if type(each) is not int or not 0 <= each <= PRIORITY_MAX:  # True is an int as well, and no priority
            raise WrongPriorities(f"{each!r:.60} is no whole number from 0 to {PRIORITY_MAX}")
    return list(priorities)


def _unranked(urls: Sequence[Url]) -> list[int]:
    return [UNRANKED] * len(urls)
