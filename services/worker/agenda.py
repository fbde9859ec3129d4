"""The agenda: what this worker holds, by domain, and which domain may be asked now.

A worker's hand is a set: a hint for a URL that it has is dropped. Of a domain one URL is under way at a time, since the gate would
let no second one through; so a domain is *engaged* from the moment one of its URLs is taken up until its request is over.

If more domains may be asked than there are slots, the best are first: the worse the priority of its next URL, the longer a domain
lets others go ahead, and no longer than that. So what is important is soon, and nobody waits for ever.

Knows: URLs and moments. Must not know: the ledger, queues, how a page is fetched. Never waits.
"""

import heapq
from collections import deque
from collections.abc import Iterable
from typing import Final

import msgspec

from gossamer.crash import step
from gossamer.hints import Hints, read
from gossamer.ids import UrlId
from gossamer.messages import Routed, Url
from gossamer.ports.broker import Delivery
from services.worker.errands import is_errand

#: How long a domain lets others go ahead, for each step of its next URL's priority: half a minute at the worst.
COURTESY_S: Final = 0.3


class _Domain(msgspec.Struct):
    urls: deque[tuple[Url, int]] = msgspec.field(default_factory=deque)  # the first to come is the best
    engaged: bool = False
    ready_at: float = 0.0


_Entry = tuple[float, float, str]


class Agenda:
    def __init__(self) -> None:
        self._hand: set[UrlId] = set()
        self._domains: dict[str, _Domain] = {}
        self._priorities: dict[UrlId, int] = {}  # of those that are under way
        # Heaps of (place, ready_at, domain); what is out of date in them is passed over.
        self._resting: list[_Entry] = []  # by when they may be asked
        self._ready: list[_Entry] = []  # those that may be, in the order in which they are

    def __len__(self) -> int:
        return len(self._hand)

    def __contains__(self, id: UrlId) -> bool:
        return id in self._hand

    def add(self, urls: Iterable[tuple[Url, int]]) -> None:
        """Takes these in hand, with their priorities, the best first as they come, but errands, which others wait for, before them.

        Those that are there already are dropped.
        """
        for url, priority in urls:
            if url.id not in self._hand:
                self._hand.add(url.id)
                domain = self._domains.setdefault(url.domain, _Domain())
                domain.urls.appendleft((url, priority)) if is_errand(url.url) else domain.urls.append((url, priority))
                if len(domain.urls) == 1 and not domain.engaged:
                    self._schedule(url.domain, domain)

    def claim(self, urls: Iterable[Url]) -> list[Url]:
        """Those that were not in hand, and are from here on: hints for them are dropped, and nobody takes them up."""
        claimed = [url for url in urls if url.id not in self._hand]
        self._hand.update(url.id for url in claimed)
        return claimed

    def next(self, now: float, most: int) -> list[Url]:
        """Up to `most` URLs of different domains that may be asked now; these domains are engaged from here on."""
        while self._resting and self._resting[0][0] <= now:
            _, ready_at, name = heapq.heappop(self._resting)
            if (domain := self._waiting(name, ready_at)) is not None:
                _, priority = domain.urls[0]
                heapq.heappush(self._ready, (now + priority * COURTESY_S, ready_at, name))
        chosen: list[Url] = []
        while len(chosen) < most and self._ready:
            _, ready_at, name = heapq.heappop(self._ready)
            if (domain := self._waiting(name, ready_at)) is not None:
                domain.engaged = True
                url, priority = domain.urls.popleft()
                self._priorities[url.id] = priority
                chosen.append(url)
        return chosen

    def ready_at(self) -> float | None:
        """When the next domain may be asked; None if none waits."""
        for heap in (self._ready, self._resting):
            while heap:
                _, ready_at, name = heap[0]
                if self._waiting(name, ready_at) is not None:
                    return ready_at
                heapq.heappop(heap)
        return None

    def later(self, url: Url, at: float) -> None:
        """The gate said *wait*: the URL is its domain's next again, not before `at`; unless an errand has come meanwhile."""
        urls = self._domains[url.domain].urls
        urls.insert(1 if urls and is_errand(urls[0][0].url) else 0, (url, self._priorities[url.id]))
        self.disengage(url.domain, at)

    def disengage(self, name: str, at: float) -> None:
        """The domain's request is over (or was never made); its next URL may be taken up at `at`."""
        domain = self._domains[name]
        domain.engaged = False
        domain.ready_at = at
        self._schedule(name, domain)

    def waits_for(self, name: str) -> bool:
        """Whether another URL of the domain would go on if this one's request were over."""
        domain = self._domains.get(name)
        return domain is not None and bool(domain.urls)

    def drop(self, id: UrlId) -> None:
        """The ledger let it go: it is no longer in hand."""
        self._hand.discard(id)
        self._priorities.pop(id, None)

    def _waiting(self, name: str, ready_at: float) -> _Domain | None:
        """The domain, if it still waits since then."""
        domain = self._domains.get(name)
        return domain if domain is not None and not domain.engaged and domain.urls and domain.ready_at == ready_at else None

    def _schedule(self, name: str, domain: _Domain) -> None:
        if domain.urls:
            heapq.heappush(self._resting, (domain.ready_at, domain.ready_at, name))
        elif not domain.engaged:
            del self._domains[name]


@step("worker.take")
def take(hints: Hints, queue: str, most: int) -> tuple[list[tuple[Url, int]], list[Delivery], list[Delivery]]:
    """The URLs that hints from the worker's queue name; what they came in; and what of it can't be read."""
    deliveries = hints.take(queue, most)
    messages, unreadable = read(deliveries, Routed)
    return [pair for each in messages for pair in each.urls], deliveries, unreadable
