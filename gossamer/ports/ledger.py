"""The ledger: every URL's state, changed in atomic verbs. It is the truth; messages are hints.

A crawler that keeps its place in queues loses something each time a part dies between two steps. So each verb here is atomic,
one round trip, and safe to repeat when its answer was lost; it takes a sequence where callers have several. What must hold
whatever happens, I1 to I7, is in docs/protocol.md; the legal steps of a URL are `gossamer.states.STEPS`.

Verbs of a worker carry its `Seat`. With an epoch that is not the newest of its id, or a lease that is over, a verb changes
nothing and raises `Fenced`: the worker cuts its requests, drops all it holds and registers again. Any verb may raise
`LedgerUnavailable`; the caller backs off and repeats it.

Time is the ledger's own. Must not know: HTTP, queues, what a priority is made of.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

from gossamer.answers import GateAnswer, Judgement, RouteAnswer, Routing
from gossamer.ids import UrlId
from gossamer.messages import Url
from gossamer.outcomes import CrawlOutcome
from gossamer.records import (
    NO_SITES,
    Closing,
    Content,
    Counts,
    CrawlRecord,
    Deferral,
    DomainRecord,
    Leaving,
    PassedUp,
    Robots,
    Rules,
    Seat,
    SiteRecord,
    UrlRecord,
    WorkerRecord,
)


class Ledger(Protocol):
    """One crawl's ledger."""

    # --- The crawl: by the controller ---

    async def create(self, rules: Rules) -> None:
        """The crawl's record, `running`. One that exists is left as it is: the call may be repeated."""
        ...

    async def resume(self, rules: Rules, *, nobody_lives: bool = False) -> None:
        """`ended` or dead → `running` under these rules, and every lease void at once.

        The operator says that nobody lives, so all that was held is given back now and not when leases run out; and nothing
        becomes a suspect, since the engine died and not the page. Operators err: domains whose requests were in flight wait until
        their workers' leases would have been over, unless the caller is certain (`nobody_lives`: it holds the only lock). A
        `complete` crawl stays as it is. Raises `NoCrawl`.
        """
        ...

    async def add(
        self, urls: Sequence[Url], scope: Sequence[str] = (), sites: Mapping[str, str] = NO_SITES, seat: Seat | None = None
    ) -> list[Url]:
        """Unknown ones become WAITING and are returned, to be hinted at; `scope` names hosts that count as the seeds'.

        `sites` has the registered domain of each domain and host that is named, where the two differ: the ledger doesn't know
        which names have owners of their own. Budgets keep out what they keep out of `finish`, but never a host that is in scope. A
        crawl that was complete is `running` again when there is something new. `seat`: of the worker that brings them, if one
        does; one whose lease is over would else wake a crawl that is complete, with nobody left to end it. Raises `Fenced`.
        """
        ...

    async def stop(self, outcome: CrawlOutcome) -> None:
        """`running` → `draining`: what is FETCHING goes on to its end, nothing else begins."""
        ...

    async def end(self) -> CrawlRecord:
        """To be called once all seeds are added: open = 0 → `ended`, `complete`; `draining` and nothing FETCHING → `ended`.

        Completion is read off the ledger alone: a queue that is empty says nothing.
        """
        ...

    async def keep(self) -> None:
        """Renews the time to live of a crawl that has not ended. Called by the keeper, at least once a lease."""
        ...

    # --- Workers' leases ---

    async def register(self, process: str, formerly: Seat | None = None) -> Seat:
        """Reaps; then the lowest id without a lease, under a new epoch.

        `process` names the operating system's process: what dies with it dies together. `formerly` is the seat that the
        caller was fenced from: it lives, so what it held killed nobody, and the suspicion is taken back, once for each URL.
        """
        ...

    async def renew(self, seat: Seat) -> CrawlRecord:
        """Prolongs a lease that is not over, and tells how the crawl stands."""
        ...

    async def release(self, seat: Seat) -> list[UrlId]:
        """Gives back all that the worker holds, to WAITING, and ends its lease. As `reap`, but nobody died."""
        ...

    async def reap(self) -> list[UrlId]:
        """For every worker whose lease is over: what it held becomes WAITING, its domains wait their delay from now.

        Bytes reserved for its requests in flight are charged: nobody knows what was received. What was FETCHING becomes a
        suspect; a suspect that was begun alone has died alone once more, and is closed as poison at the last.
        """
        ...

    # --- The frontier ---

    async def route(self, urls: Sequence[tuple[UrlId, int]]) -> list[RouteAnswer]:
        """WAITING → ROUTED to the domain's worker, or PARKED. An answer for each (id, priority), in order.

        Reaps first, so that a dead worker's URLs never stand beside a new owner's. While a domain has something out its
        worker stays; then its last one while `owner_s` is not over; else the live worker with the least load.
        """
        ...

    async def promote(self, most: int) -> list[Routing]:
        """For domains that are due: the best PARKED → ROUTED, while window and worker have room. Reaps first."""
        ...

    async def waiting(self, most: int, *, idle: bool) -> list[tuple[Url, int]]:
        """WAITING URLs with their priorities, to be hinted at again: three quarters the best, one quarter the oldest.

        None that was offered within the last lease, since its hint is probably on its way; unless `idle`: the queues are
        empty, so no hint is.
        """
        ...

    async def rank(self, urls: Sequence[tuple[UrlId, int]]) -> None:
        """Sets the priorities of those that are WAITING or PARKED; the others are passed over."""
        ...

    async def shed(self, open_max: int, most: int) -> int:
        """Closes the worst WAITING or PARKED URLs as `shed`, up to `most`, while more than `open_max` are open; how many."""
        ...

    async def outlinks(self, after: int, most: int) -> list[tuple[int, UrlId, bytes]]:
        """Stored pages in the order they were closed, past place `after`: (place, id, its links' ids, one behind another)."""
        ...

    # --- The worker ---

    async def held(self, seat: Seat) -> list[Url]:
        """What this worker holds by the ledger's word, FETCHING included: the rest of what it has in hand is not its."""
        ...

    async def begin(self, seat: Seat, ids: Sequence[UrlId]) -> list[GateAnswer]:
        """The gate. ROUTED → FETCHING if domain and budgets allow a request at this moment; an answer for each, in order.

        Each *go* to a ROUTED URL is counted against the page budgets of its domain and its site; once one of them is used up, the
        URL is closed as `budget`, with the rule and its number. A repeat after a lost answer says *go* again. Before the domain's
        not_before the URL is PARKED and *closed*. Told *budget*, a URL is to be deferred: that passes over one that is ROUTED, and
        keeps no other FETCHING.
        """
        ...

    async def knock(self, seat: Seat, id: UrlId) -> GateAnswer:
        """The same gate for a request that is not the URL's first: robots.txt (ROUTED), the one retry (FETCHING).

        Bytes are reserved as for any request, but no page; a request of this URL that nobody left is charged first, and over. A
        FETCHING one is never parked: *wait*, and its worker may rather
        `defer` it. Told *budget* (no bytes are left, and none will come back), it is to be deferred.
        """
        ...

    async def leave(self, seat: Seat, leavings: Sequence[Leaving]) -> None:
        """Requests of `begin` or `knock` are over, their URLs go on: bytes settled, domains idle.

        Each, in order, changes something only if this worker holds its URL and the domain is busy with it; the others are passed
        over. `until_s`: robots.txt can't be had before.
        """
        ...

    async def judge(self, seat: Seat, contents: Sequence[Content]) -> list[Judgement]:
        """Fresh (and entered under this id, in the same step), the twin of a stored page, or *wait*: its like is FETCHING.

        *closed* if the URL is not this worker's FETCHING. An entry of the URL's own is never its twin, so a page that comes
        again after a crash isn't its own duplicate.
        """
        ...

    async def finish(self, seat: Seat, closings: Sequence[Closing]) -> list[Url]:
        """FETCHING → CLOSED, let go, and the links added in the same step; returns those that are new, to be hinted at.

        What is not this worker's FETCHING is passed over, links and all: somebody else closes it. Links past a budget of their
        host, site or family are never added: they are counted as refused, so that a trap costs no more once its budget is used up.
        """
        ...

    async def defer(self, seat: Seat, deferrals: Sequence[Deferral]) -> None:
        """FETCHING → PARKED, let go; the domain's not_before moves on, never back. What isn't FETCHING here is passed over."""
        ...

    async def pass_up(self, seat: Seat, passed: Sequence[PassedUp]) -> None:
        """ROUTED → CLOSED without a request: robots forbid it, its address is refused. Others are passed over."""
        ...

    # --- Shared knowledge ---

    async def robots(self, origin: str) -> Robots | None:
        """What is known of an origin's robots.txt and not too old: shared, so that a new owner does not ask again."""
        ...

    async def know_robots(self, origin: str, robots: Robots, for_s: float) -> None: ...

    async def known_ranks(self, domains: Sequence[str]) -> dict[str, int]:
        """Of those domains whose rank somebody outside was asked for, and whose answer is not too old: its priority, 0 … 100."""
        ...

    async def know_ranks(self, ranks: Mapping[str, int], for_s: float) -> None:
        """Shared, so that no frontier asks for what another was told. One for each domain: the last."""
        ...

    async def lease(self, name: str, holder: str, for_s: float) -> bool:
        """Takes or prolongs a named lease (rank owner, sweeper); False while it is another's. Needs no crawl."""
        ...

    async def note(self, name: str, text: str) -> None:
        """Leaves a text for whoever watches the crawl, in the place of the last one of that name.

        What a worker knows and the ledger does not decide by (its modules' failures, the gaps it kept) is told across processes
        this way. Names are few: the caller's own seat, not a URL.
        """
        ...

    async def notes(self) -> dict[str, str]: ...

    # --- Reading ---

    async def crawl(self) -> CrawlRecord:
        """Raises `NoCrawl`."""
        ...

    async def counts(self) -> Counts: ...

    async def workers(self) -> list[WorkerRecord]:
        """Those whose lease lives, by id."""
        ...

    async def records(self, ids: Sequence[UrlId]) -> list[UrlRecord | None]:
        """What is known of each, in order."""
        ...

    async def pages(self, after: int, most: int) -> list[tuple[int, UrlRecord]]:
        """Stored pages in the order they were closed, past place `after`: (place, record). Places are 1, 2, 3 …"""
        ...

    async def domain(self, name: str) -> DomainRecord | None: ...

    async def site(self, name: str) -> SiteRecord | None:
        """A registered domain, and what its budgets have counted."""
        ...

    async def domains(self, most: int) -> list[DomainRecord]:
        """A sample for display: domains with something out or due."""
        ...

    async def unfinished(self, most: int) -> list[UrlRecord]:
        """Open URLs, those that are held first: what a stalled crawl names."""
        ...

    async def poisoned(self, most: int) -> list[UrlRecord]:
        """URLs that were closed because their workers died with them: the newest, at most so many."""
        ...

    async def refused(self) -> list[tuple[str, str]]:
        """A bounded sample of links that were never added, each once, the newest last: (reason, URL). `counts` has the sums."""
        ...

    async def close(self) -> None: ...
