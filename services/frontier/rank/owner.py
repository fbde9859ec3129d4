"""The rank's owner: one frontier of all, by lease. Reads the pages' links from the ledger, and tells it what waits where.

It holds nothing that the ledger doesn't: whoever is owner next reads all links again, from the first. Should two hold themselves
for the owner for a moment (one was frozen), both tell priorities, and the later one's stand: that costs order, and no URL.
"""

import asyncio
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gossamer.clock import Clock
from gossamer.ports.ledger import Ledger
from services.frontier.outside.mixing import Outside, mix_hosts
from services.frontier.prioritizers.pagerank import Pagerank
from services.frontier.rank.quantiles import Numbers, cuts, priorities
from services.frontier.rank.ranks import Ranks

LEASE: Final = "rank"
#: Between two turns.
TURN_S: Final = 0.25
#: Pages that are read in one go, and how often in a turn: the loop is shared with who routes, and the lease runs.
PAGES_AT_ONCE: Final = 200
READS_A_TURN: Final = 5
#: Sorting and telling take no more than this share of a core: of many URLs that wait, and in a hurry, priorities get older.
SHARE: Final = 0.05
#: A priority is told anew when it is off by more than this part of itself: of the best every step, of the worst a third. Each costs
#: the ledger as much as to route a URL, and at a tenth the order was no better.
STEP: Final = 3
TOLD_AT_ONCE: Final = 1_000
#: And how often in a turn. The best go first: should more have moved, the others wait for the next turn.
TELLINGS_A_TURN: Final = 2
#: Records that are looked at in a turn, in rotation: what the ledger has may differ from what it was told (a hint that came late).
LOOKED_AT: Final = 100


class Owner:
    """One loop of the frontier, which idles where another frontier is the owner."""

    def __init__(
        self,
        ledger: Ledger,
        prioritizer: Pagerank,
        clock: Clock,
        holder: str,
        *,
        lease_s: float,
        outside: Outside | None = None,
    ) -> None:
        """`outside`: ranks that are mixed in."""
        self._ledger, self._prioritizer, self._clock = ledger, prioritizer, clock
        self._holder, self._lease_s, self._outside = holder, lease_s, outside
        self._place = 0  # of the last page that was read
        self._looked_at = 0  # the place of the last URL whose record was
        self._tell_at = 0.0

    async def run(self) -> None:
        while True:
            if await self._ledger.lease(LEASE, self._holder, self._lease_s):
                behind = await self.turn()
            else:
                behind = False
                self._forget()
            await self._clock.sleep(0 if behind else TURN_S)

    async def turn(self) -> bool:
        """Whether there is more to read."""
        for _ in range(READS_A_TURN):
            if not await self._read():
                break
        else:
            return True
        await self._look()
        if self._clock.monotonic() >= self._tell_at:
            await self._tell()
        return False

    async def _read(self) -> bool:
        pages = await self._ledger.outlinks(self._place, PAGES_AT_ONCE)
        if pages:
            self._place = pages[-1][0]
            self._prioritizer.ranks.add([(id, links) for _, id, links in pages])
        return len(pages) == PAGES_AT_ONCE

    async def _tell(self) -> None:
        """Everything that waits is ranked anew, and the ledger told of what has moved."""
        began_s = self._clock.monotonic()
        ranks = self._prioritizer.ranks
        places, worth = ranks.open(), ranks.graph.worth
        if not len(places):
            return
        ranks.hosts.sum_up(worth)
        ranks.cuts, given = await asyncio.to_thread(lambda: _rank(worth[places]))
        if self._outside is not None:
            given = mix_hosts(given, ranks.hosts.of.all[places], ranks.hosts.names, self._outside)
        told = ranks.told(places)
        moved = np.flatnonzero(np.abs(given - told.astype(np.int16)) > np.maximum(given, told) // STEP)
        moved = moved[np.argsort(given[moved], kind="stable")]
        for start in range(0, min(len(moved), TOLD_AT_ONCE * TELLINGS_A_TURN), TOLD_AT_ONCE):
            portion = moved[start : start + TOLD_AT_ONCE]
            ids = ranks.graph.nodes.ids(places[portion])
            await self._ledger.rank(list(zip(ids, given[portion].tolist(), strict=True)))
            ranks.tell(places[portion], given[portion])
        now_s = self._clock.monotonic()
        self._tell_at = now_s + (now_s - began_s) / SHARE

    async def _look(self) -> None:
        """At what the ledger really has of some, from where the last look ended and, after the last one, from the first."""
        ranks = self._prioritizer.ranks
        places = ranks.open()
        at = int(np.searchsorted(places, self._looked_at)) % max(len(places), 1)
        places = places[at : at + LOOKED_AT]
        if len(places):
            self._looked_at = int(places[-1]) + 1
            ranks.learn(places, await self._ledger.records(ranks.graph.nodes.ids(places)))

    def _forget(self) -> None:
        if self._place:
            self._prioritizer.ranks, self._place = Ranks(), 0


def _rank(worth: Numbers) -> tuple[Numbers, NDArray[np.uint8]]:
    """The cuts of what waits, and the priority of each."""
    made = cuts(worth)
    return made, priorities(worth, made)
