"""The links seen so far, and what they are worth: PageRank, kept up to date as pages come.

A page's worth is 1, and of every page that links to it 0.85 of that page's worth, shared among its links. That is PageRank but for
a factor, the same for all: pages that were not fetched yet have no links, and what such pages would hand on is spread evenly.

**How it stays true.** `worth` is what was handed on already, `owed` what is yet to be. A new page owes its links a share of its
whole worth; whoever is owed more than `OWED_MAX` hands that on, and so on until nobody is. So a page costs what it changes and not
a pass over the whole graph, and the end is the same in whatever order pages come.

**What is forgotten.** Past `links_max` the links of those pages that were stored first, a quarter of all: what they handed on
stays where it is. Past `urls_max` the least worthy quarter of the URLs: one that is linked to again begins anew.

Knows: ids and numbers. Must not know: the ledger, what waits, what a priority is.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gossamer.ids import URL_ID_BYTES, UrlId
from services.frontier.rank.nodes import UNKNOWN, Nodes, Places, as_ids
from services.frontier.rank.rows import Row, distinct, firsts

#: How much of its worth a page hands on: the value that everybody uses.
DAMPING: Final = 0.85
#: What may stay owed to a page, of which each has 1 at least: an error that no quantile of what waits shows.
OWED_MAX: Final = 0.05
#: Rounds in which a batch is handed on at most; what is left then goes on with the next batch.
ROUNDS_MAX: Final = 30
LINKS_MAX: Final = 10_000_000
URLS_MAX: Final = 2_000_000

#: Of a place, in a number that has another in front of it.
_PLACE_BITS: Final = 32
_PLACE_MASK: Final = (1 << _PLACE_BITS) - 1

Numbers = NDArray[np.float64]


class Graph:
    def __init__(self, *, links_max: int = LINKS_MAX, urls_max: int = URLS_MAX) -> None:
        self._links_max, self._urls_max = links_max, urls_max
        self.nodes = Nodes()
        self._worth: Row[np.float64] = Row(np.float64)
        self._owed: Row[np.float64] = Row(np.float64)
        self._page: Row[np.int32] = Row(np.int32)  # a URL's page, if it was stored: its place in the rows below
        self._of: Row[np.int32] = Row(np.int32)  # a page's URL
        self._begin: Row[np.int64] = Row(np.int64)  # where its links begin
        self._count: Row[np.int32] = Row(np.int32)  # and how many there are; none once they are forgotten
        self._links: Row[np.int32] = Row(np.int32)  # the URLs that are linked to

    def __len__(self) -> int:
        """URLs."""
        return len(self.nodes)

    @property
    def links(self) -> int:
        return len(self._links)

    @property
    def size_bytes(self) -> int:
        rows = (self._worth, self._owed, self._page, self._of, self._begin, self._count, self._links)
        return self.nodes.size_bytes + sum(row.size_bytes for row in rows)

    @property
    def worth(self) -> Numbers:
        """Of each URL, by its place."""
        return self._worth.all + self._owed.all

    def worth_of(self, places: NDArray[np.integer]) -> Numbers:
        """Anything, where a place is unknown."""
        if not len(self):
            return np.zeros(len(places))
        worth: Numbers = self._worth.all[places] + self._owed.all[places]
        return worth

    @property
    def stored(self) -> NDArray[np.bool_]:
        """Whether each URL's page is stored, by its place."""
        stored: NDArray[np.bool_] = self._page.all != UNKNOWN
        return stored

    @property
    def mean_links(self) -> float:
        """Of a page."""
        return len(self._links) / max(len(self._of), 1)

    def add(self, pages: Sequence[tuple[UrlId, bytes]]) -> NDArray[np.bool_] | None:
        """Stored pages, each with the ids of its links, one behind another. One that is known is passed over.

        If URLs had to be forgotten: which are left. Their places have changed.
        """
        if pages:
            places = self._places(as_ids(b"".join([id + links for id, links in pages])))
            counts = np.array([len(links) // URL_ID_BYTES for _, links in pages])
            own = np.cumsum(counts + 1) - counts - 1  # where a page's own place is, with those of its links behind it
            self._enter(places[own], np.repeat(np.arange(len(pages)), counts), np.delete(places, own))
        self.hand_on()
        return self._forget()

    def hand_on(self) -> None:
        """Until nobody owes much, or for `ROUNDS_MAX` rounds."""
        for _ in range(ROUNDS_MAX):
            owing = np.flatnonzero(self._owed.all[self._of.all] > OWED_MAX)
            if not len(owing):
                break
            self._hand_on(owing)

    def _places(self, ids: NDArray[np.void]) -> Places:
        places = self.nodes.enter(ids)
        new = len(self.nodes) - len(self._worth)
        self._worth.append(np.zeros(new))
        self._owed.append(np.ones(new))
        self._page.append(np.full(new, UNKNOWN, np.int32))
        return places

    def _enter(self, urls: Places, pages: NDArray[np.intp], to: Places) -> None:
        """Pages at these URLs; and their links: each from one of them, by its number, to a URL."""
        is_new = np.zeros(len(urls), np.bool_)
        is_new[firsts(urls)[1]] = True
        is_new &= self._page.all[urls] == UNKNOWN
        counted = is_new[pages] & (to != urls[pages])  # what a page says of itself counts for nothing
        links = distinct(pages[counted] << _PLACE_BITS | to[counted])  # in order, each once
        pages, to = links >> _PLACE_BITS, (links & _PLACE_MASK).astype(np.int32)
        counts = np.bincount(pages, minlength=len(urls))[is_new]
        urls = urls[is_new]
        self._page.all[urls] = np.arange(len(self._of), len(self._of) + len(urls))
        self._of.append(urls)
        self._begin.append(len(self._links) + np.cumsum(counts) - counts)
        self._count.append(counts)
        self._links.append(to)
        np.add.at(self._owed.all, to, np.repeat(DAMPING * self._worth.all[urls] / np.maximum(counts, 1), counts))

    def _hand_on(self, pages: NDArray[np.intp]) -> None:
        """What these pages are owed becomes worth, and their links are owed a share of it."""
        urls, counts = self._of.all[pages], self._count.all[pages]
        owed = self._owed.all[urls]
        self._worth.all[urls] += owed
        self._owed.all[urls] = 0.0
        # The places of all their links in one go: each page's begin, and 0, 1, 2 … from there.
        ends = np.cumsum(counts)
        within = np.arange(ends[-1]) - np.repeat(ends - counts, counts)
        to = self._links.all[np.repeat(self._begin.all[pages], counts) + within]
        shares = np.repeat(DAMPING * owed / np.maximum(counts, 1), counts)
        np.add.at(self._owed.all, to, shares)

    def _forget(self) -> NDArray[np.bool_] | None:
        if len(self._links) > self._links_max:
            self._forget_links(len(self._links) - self._links_max * 3 // 4)
        return self._forget_urls(self._urls_max * 3 // 4) if len(self) > self._urls_max else None

    def _forget_links(self, fewer: int) -> None:
        first = int(np.searchsorted(self._begin.all, fewer))  # the first page that keeps its links
        cut = int(self._begin.all[first]) if first < len(self._begin) else len(self._links)
        self._count.all[:first] = 0
        self._links.keep(slice(cut, None))
        self._begin.all[:] = np.maximum(self._begin.all - cut, 0)

    def _forget_urls(self, left: int) -> NDArray[np.bool_]:
        """The least worthy; and with a page its links, with a URL the links to it."""
        kept = np.zeros(len(self), np.bool_)
        kept[np.argpartition(self.worth, -left)[-left:]] = True
        page_kept = kept[self._of.all]
        page_of_link = np.repeat(np.arange(len(self._of)), self._count.all)
        link_kept = page_kept[page_of_link] & kept[self._links.all]
        counts = np.bincount(page_of_link[link_kept], minlength=len(self._of))[page_kept]
        number = np.cumsum(kept) - 1  # a URL's new place
        self.nodes.keep(kept)
        self._links.keep(link_kept)
        self._links.all[:] = number[self._links.all]
        self._worth.keep(kept)
        self._owed.keep(kept)
        self._page.keep(kept)
        self._of.keep(page_kept)
        self._begin.keep(page_kept)
        self._count.keep(page_kept)
        self._of.all[:] = number[self._of.all]
        self._count.all[:] = counts
        self._begin.all[:] = np.cumsum(counts) - counts
        self._page.all[self._of.all] = np.arange(len(self._of))
        return kept
