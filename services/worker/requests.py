"""Requests: one download each, and what it tells of its domain.

Whatever is asked of a server comes through here, so this is where starts are counted from and where the domain's pace is kept. The
pace is the worker's own memory: a new owner begins with the plain delay and what robots.txt asks for, and learns the rest anew.
"""

from collections import OrderedDict
from typing import Final

from gossamer.answers import Go
from gossamer.clock import Clock
from gossamer.crash import step
from gossamer.messages import Url
from gossamer.outcomes import Outcome
from gossamer.records import Visit
from services.worker.download import Answer, Downloader, Request, Trouble
from services.worker.lease import Lease
from services.worker.pacing import Pace

#: More than a worker ever has on its agenda at once; the longest unused goes first.
DOMAINS_KEPT: Final = 10_000
#: RFC 9309 asks for at least 500 KiB.
ROBOTS_BYTES: Final = 500 * 1024
#: Failures of these kinds are the server's and not the page's: they count towards its rest.
SERVERS_OWN: Final = frozenset({Outcome.TIMEOUT, Outcome.CONNECT_FAILED, Outcome.DNS_FAILED, Outcome.TLS_FAILED})
UNWELL: Final = frozenset({429, 500, 502, 503, 504})


class Requests:
    def __init__(
        self,
        downloader: Downloader,
        clock: Clock,
        lease: Lease,
        *,
        delay_s: float,
        page_bytes: int,
        deadline_s: float,
        least_gap_s: dict[str, float],
        sitemaps: bool = False,
    ) -> None:
        self._downloader, self._clock, self._lease = downloader, clock, lease
        self._delay_s, self._page_bytes, self._deadline_s = delay_s, page_bytes, deadline_s
        self._sitemaps = sitemaps
        self._paces: OrderedDict[str, Pace] = OrderedDict()
        self._last_start: OrderedDict[str, float] = OrderedDict()
        self._least_gap_s = least_gap_s  # by domain, between two starts: what a server would have seen

    async def page(self, url: Url, asked: str, go: Go) -> tuple[Answer | Trouble, Visit]:
        request = Request(asked, go.allowance_bytes, self._page_bytes, self._deadline_s, types=True, sitemaps=self._sitemaps)
        return await self._ask(url.domain, request)

    async def robots(self, url: Url, asked: str, go: Go) -> tuple[Answer | Trouble, Visit]:
        request = Request(asked, go.allowance_bytes, ROBOTS_BYTES, self._deadline_s, types=False)
        return await self._ask(url.domain, request)

    def slow_down(self, domain: str, crawl_delay_s: float | None) -> None:
        """What robots.txt asks for is the least from here on."""
        if crawl_delay_s:
            self._paces[domain] = self._pace(domain).at_least(crawl_delay_s)

    def delay_s(self, domain: str) -> float:
        return self._pace(domain).delay_s

    @step("worker.download")
    async def _ask(self, domain: str, request: Request) -> tuple[Answer | Trouble, Visit]:
        result = await self._downloader.fetch(request, self._lease.check)
        now = self._clock.monotonic()
        if result.started_at is not None:
            self._note_start(domain, result.started_at)
        failed = _servers_failure(result)
        took_s = result.took_s if isinstance(result, Answer) else None
        pace = self._paces[domain] = self._pace(domain).after(took_s=took_s, well=failed is None)
        since_start_s = 0.0 if result.started_at is None else now - result.started_at
        return result, Visit(
            received_bytes=result.received_bytes,
            since_start_s=since_start_s,
            delay_s=pace.delay_s,
            failed=failed,
            answered=failed is None,
        )

    def _pace(self, domain: str) -> Pace:
        if domain in self._paces:
            self._paces.move_to_end(domain)
            return self._paces[domain]
        if len(self._paces) >= DOMAINS_KEPT:
            self._paces.popitem(last=False)
        return Pace(self._delay_s)

    def _note_start(self, domain: str, started_at: float) -> None:
        last = self._last_start.pop(domain, None)
        self._last_start[domain] = started_at
        if last is not None:
            self._least_gap_s[domain] = min(started_at - last, self._least_gap_s.get(domain, started_at - last))
        if len(self._last_start) > DOMAINS_KEPT:
            self._last_start.popitem(last=False)


def _servers_failure(result: Answer | Trouble) -> Outcome | None:
    if isinstance(result, Answer):
        return Outcome.HTTP_ERROR if result.status in UNWELL else None
    return result.outcome if result.outcome in SERVERS_OWN else None
