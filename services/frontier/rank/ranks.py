"""What one frontier knows of the rank at this moment: the prioritizer reads it, the owner's loop keeps it fresh.

Every frontier has one, and all but the owner's are empty: they leave URLs unranked, and the owner tells the ledger soon.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gossamer.ids import URL_ID_BYTES, UrlId
from gossamer.messages import Url
from gossamer.records import UNRANKED, UrlRecord
from gossamer.states import State
from services.frontier.rank.graph import DAMPING, Graph
from services.frontier.rank.hosts import Hosts
from services.frontier.rank.nodes import UNKNOWN, as_ids
from services.frontier.rank.quantiles import Numbers, priorities
from services.frontier.rank.rows import Row

#: In the place of a priority: the ledger was told none.
UNTOLD: Final = 255
#: What the operator named is fetched first.
SEED: Final = 0


class Ranks:
    def __init__(self, graph: Graph | None = None) -> None:
        self.graph = Graph() if graph is None else graph
        self.hosts = Hosts()
        self.cuts: Numbers | None = None  #: of what waited when it was last looked at
        self._told: Row[np.uint8] = Row(np.uint8)  # the priority that the ledger has of each URL, as far as is known
        self._closed: Row[np.bool_] = Row(np.bool_)  # those that are known to be closed, though no page is stored

    def add(self, pages: Sequence[tuple[UrlId, bytes]]) -> None:
        """Stored pages with the ids of their links."""
        kept = self.graph.add(pages)
        new = (len(self.graph) if kept is None else len(kept)) - len(self._told)
        self._told.append(np.full(new, UNTOLD))
        self._closed.append(np.zeros(new, np.bool_))
        self.hosts.of.append(np.full(new, UNKNOWN))
        if kept is not None:
            self._told.keep(kept)
            self._closed.keep(kept)
            self.hosts.of.keep(kept)

    def open(self) -> NDArray[np.intp]:
        """The places of all that waits, as far as is known."""
        return np.flatnonzero(~(self.graph.stored | self._closed.all))

    def told(self, places: NDArray[np.integer]) -> NDArray[np.uint8]:
        told: NDArray[np.uint8] = self._told.all[places]
        return told

    def tell(self, places: NDArray[np.integer], given: NDArray[np.uint8]) -> None:
        """The ledger has these priorities now."""
        self._told.all[places] = given

    def learn(self, places: NDArray[np.integer], records: Sequence[UrlRecord | None]) -> None:
        """What the ledger really says of these."""
        there = [(place, record) for place, record in zip(places, records, strict=True) if record is not None]
        at = np.array([place for place, _ in there], np.int32)
        self._told.all[at] = [record.priority for _, record in there]
        self._closed.all[at] = [record.state is State.CLOSED for _, record in there]
        self.hosts.learn(at, [record.url.domain for _, record in there])

    def rank(self, urls: Sequence[Url]) -> list[int]:
        """A priority for each: by its page's worth, or else by what its finder or its host lets expect."""
        if self.cuts is None:
            return [UNRANKED if url.depth else SEED for url in urls]
        places = self.graph.nodes.find(as_ids(b"".join([url.id for url in urls])))
        worth = self.graph.worth_of(places)
        if len(unknown := np.flatnonzero(places == UNKNOWN)):
            worth[unknown] = self._expected([urls[at] for at in unknown.tolist()])
        given = np.where(np.isnan(worth), np.uint8(UNRANKED), priorities(worth, self.cuts))
        given[[url.depth == 0 for url in urls]] = SEED
        known = places != UNKNOWN
        self.tell(places[known], given[known])
        self.hosts.learn(places[known], [url.domain for url, is_known in zip(urls, known, strict=True) if is_known])
        return [int(each) for each in given]

    def _expected(self, urls: Sequence[Url]) -> list[float]:
        """Of URLs that no link leads to, as far as was read: redirects' targets, and the news of this very moment."""
        parents = self.graph.nodes.find(as_ids(b"".join([url.parent or _NOBODY for url in urls])))
        mean_links, expected = max(self.graph.mean_links, 1), []
        for url, parent, worth in zip(urls, parents, self.graph.worth_of(parents).tolist(), strict=True):
            if url.parent is not None and parent != UNKNOWN:
                expected.append(worth if url.hop else 1 + DAMPING * worth / mean_links)
            else:
                mean = self.hosts.mean(url.domain)
                expected.append(float("nan") if mean is None else mean)
        return expected


_NOBODY: Final = UrlId(bytes(URL_ID_BYTES))
