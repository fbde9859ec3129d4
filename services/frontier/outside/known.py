"""What a frontier knows of the ranks from outside, at hand: asked for every URL, so it never waits and never grows past its bounds.

A domain that is asked for and not known is noted as wanted; whoever can find out takes it from there.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Final

from gossamer.clock import Clock

#: Domains. The one that was learnt longest ago makes room: it is in the ledger, and is found there when it is met again.
KNOWN_MAX: Final = 100_000
#: Domains that nobody could be asked for yet. What is past it is wanted again when it is met again.
WANTED_MAX: Final = 10_000
#: What was learnt longer ago is looked up again.
FRESH_S: Final = 3600.0


#: What a registry could hold. A page may link to any name, and one that makes the API choke would cost a hundred others their rank.
_PLAUSIBLE: Final = re.compile(r"[a-z0-9-]{1,63}(?:\.[a-z0-9-]{1,63})*").fullmatch


class Known:
    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._known: dict[str, tuple[int | None, float]] = {}  # the priority, None: nobody knows one; fresh until; oldest first
        self._wanted: dict[str, None] = {}  # in the order in which they were met
        self._taken: set[str] = set()  # somebody is finding out
        self.ranked = 0  #: how many have a rank

    def priority(self, name: str) -> int | None:
        """Of a registered domain."""
        priority, until_s = self._known.get(name, (None, float("-inf")))
        if until_s <= self._clock.monotonic() and name not in self._taken and len(self._wanted) < WANTED_MAX and _PLAUSIBLE(name):
            self._wanted[name] = None
        return priority

    def take(self, most: int, characters_max: int) -> list[str]:
        """Some that are wanted, to find out. They are to be given back, or learnt."""
        names: list[str] = []
        characters = 0
        for name in self._wanted:
            characters += len(name)
            if len(names) == most or (names and characters > characters_max):
                break
            names.append(name)
        for name in names:
            del self._wanted[name]
        self._taken.update(names)
        return names

    def learn(self, names: Iterable[str], priorities: Mapping[str, int]) -> None:
        """For all of the names: what is not among the priorities is not known to anybody."""
        until_s = self._clock.monotonic() + FRESH_S
        for name in names:
            self._taken.discard(name)
            self._forget(name)  # it goes to the end
            self._known[name] = (priorities.get(name), until_s)
            self.ranked += name in priorities
        while len(self._known) > KNOWN_MAX:
            self._forget(next(iter(self._known)))

    def give_back(self, names: Iterable[str]) -> None:
        for name in names:
            self._taken.discard(name)
            self._wanted.setdefault(name)

    def _forget(self, name: str) -> None:
        priority, _ = self._known.pop(name, (None, 0.0))
        self.ranked -= priority is not None
