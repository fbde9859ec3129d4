"""The agenda: what this worker holds, by domain, and which domain may be asked now.

A worker's hand is a set: a hint for a URL that it has is dropped. Of a domain one URL is under way at a time, since the gate would
let no second one through; so a domain is *engaged* from the moment one of its URLs is taken up until its request is over.
Knows: URLs and moments. Must not know: the ledger, queues, how a page is fetched. Never waits.
"""

import heapq
from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from gossamer.crash import step
from gossamer.errors import MessageError
from gossamer.ids import UrlId
from gossamer.messages import Routed, Url, decode
from gossamer.ports.broker import Delivery


@dataclass(slots=True)
class _Domain:
    urls: deque[Url] = field(default_factory=deque)
    engaged: bool = False
    ready_at: float = 0.0


class Agenda:
    def __init__(self) -> None:
        self._hand: set[UrlId] = set()
        self._domains: dict[str, _Domain] = {}
        self._order: list[tuple[float, str]] = []  # a heap; what is out of date in it is passed over

    def __len__(self) -> int:
        return len(self._hand)

    def __contains__(self, id: UrlId) -> bool:
        return id in self._hand

    def add(self, urls: Iterable[Url]) -> None:
        """Takes these in hand, the best first as they come; those that are there already are dropped."""
        for url in urls:
            if url.id not in self._hand:
                self._hand.add(url.id)
                domain = self._domains.setdefault(url.domain, _Domain())
                domain.urls.append(url)
                if len(domain.urls) == 1 and not domain.engaged:
                    self._schedule(url.domain, domain)

    def next(self, now: float, most: int) -> list[Url]:
        """Up to `most` URLs of different domains that may be asked now; these domains are engaged from here on."""
        chosen: list[Url] = []
        while len(chosen) < most and self._order and self._order[0][0] <= now:
            ready_at, name = heapq.heappop(self._order)
            domain = self._domains.get(name)
            if domain is None or domain.engaged or not domain.urls or domain.ready_at != ready_at:
                continue
            domain.engaged = True
            chosen.append(domain.urls.popleft())
        return chosen

    def ready_at(self) -> float | None:
        """When the next domain may be asked; None if none waits."""
        while self._order:
            ready_at, name = self._order[0]
            domain = self._domains.get(name)
            if domain is not None and not domain.engaged and domain.urls and domain.ready_at == ready_at:
                return ready_at
            heapq.heappop(self._order)
        return None

    def later(self, url: Url, at: float) -> None:
        """The gate said *wait*: the URL is its domain's next again, not before `at`."""
        self._domains[url.domain].urls.appendleft(url)
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

    def _schedule(self, name: str, domain: _Domain) -> None:
        if domain.urls:
            heapq.heappush(self._order, (domain.ready_at, name))
        elif not domain.engaged:
            del self._domains[name]


@step("worker.take")
def take(deliveries: Sequence[Delivery]) -> tuple[list[Url], list[MessageError]]:
    """The URLs that hints from the worker's queue name; what can't be read is told apart."""
    urls: list[Url] = []
    errors: list[MessageError] = []
    for delivery in deliveries:
        try:
            urls += decode(delivery.body, Routed).urls
        except MessageError as error:
            errors.append(error)
    return urls, errors
