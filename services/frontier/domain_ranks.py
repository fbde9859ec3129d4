"""The live rank by domain, read off a crawl's ledger beside the frontiers: for whoever wants to look, and changes nothing.

The same graph as the rank's owner keeps, made of the same links; which host a URL is on is learnt from its record. A registered
domain is worth what the URLs of all its hosts are worth together.
"""

from collections.abc import Mapping
from typing import Final

import msgspec
import numpy as np

from gossamer.ports.ledger import Ledger
from services.frontier.rank.nodes import UNKNOWN
from services.frontier.rank.ranks import Ranks
from services.role.registrable import registrable

PAGES_AT_ONCE: Final = 200
#: URLs whose hosts are looked up in one go, and how often in a turn: the ledger has other work.
RECORDS_AT_ONCE: Final = 500
LOOKS_A_TURN: Final = 10
HOSTS_MAX: Final = 200_000


class DomainRank(msgspec.Struct, frozen=True):
    place: int  #: 1 is the best
    decimal: float  #: 10 for the best, 0 for the worst, 5 for the one in the middle


class DomainRanks:
    """Of one crawl, as it stood at the last turn."""

    def __init__(self, ledger: Ledger) -> None:
        self._ledger = ledger
        self._ranks = Ranks()
        self._place = 0  # of the last page that was read
        self._looked_at = 0  # the first URL that was not looked up in this round
        self.by_domain: Mapping[str, DomainRank] = {}

    async def turn(self) -> None:
        """Reads what is new. Raises `LedgerUnavailable` and `NoCrawl`; what was known stays."""
        while pages := await self._ledger.outlinks(self._place, PAGES_AT_ONCE):
            self._ranks.add([(id, links) for _, id, links in pages])
            self._place = pages[-1][0]
        for _ in range(LOOKS_A_TURN):
            if not await self._look():
                break
        if self._place:
            self._ranks.hosts.sum_up(self._ranks.graph.worth)
            self.by_domain = placed(self._ranks.hosts.best(HOSTS_MAX))

    async def _look(self) -> bool:
        """Whether there is more to learn in this round. What the ledger has no record of comes again in the next."""
        places = np.flatnonzero(self._ranks.hosts.of.all[self._looked_at :] == UNKNOWN)[:RECORDS_AT_ONCE].astype(np.int32)
        places += self._looked_at
        self._looked_at = int(places[-1]) + 1 if len(places) == RECORDS_AT_ONCE else 0
        if len(places):
            self._ranks.learn(places, await self._ledger.records(self._ranks.graph.nodes.ids(places)))
        return self._looked_at > 0


def placed(hosts: Mapping[str, float]) -> dict[str, DomainRank]:
    """The registered domains of these hosts, by what they are worth together."""
    worth: dict[str, float] = {}
    for host, of_host in hosts.items():
        worth[registrable(host)] = worth.get(registrable(host), 0.0) + of_host
    ordered = sorted(worth, key=lambda domain: (-worth[domain], domain))
    last = max(len(ordered) - 1, 1)
    return {domain: DomainRank(place + 1, round(10 - 10 * place / last, 2)) for place, domain in enumerate(ordered)}
