"""The gate: may this worker ask this domain now?

Politeness and budgets are decided here and nowhere else. Never waits: it says how long, and the caller waits.
"""

from collections.abc import Sequence
from typing import Final

from adapters.embedded.verbs import budgets
from adapters.embedded.verbs.desk import Desk, DomainRow, UrlRow, WorkerRow
from adapters.embedded.verbs.hands import close_with_domain, end_request, hold_off, is_over, let_go, start_request
from gossamer.answers import Dropped, GateAnswer, Go, Wait, Why
from gossamer.ids import UrlId
from gossamer.outcomes import CrawlOutcome
from gossamer.records import CrawlStatus, Leaving, Seat
from gossamer.states import State

#: When to ask again if what is waited for has no time of its own: another request's end.
ASK_AGAIN_S: Final = 0.1


def begin(desk: Desk, seat: Seat, ids: Sequence[UrlId]) -> list[GateAnswer]:
    worker = desk.seated(seat)
    return [_begin(desk, worker, id) for id in ids]


def knock(desk: Desk, seat: Seat, id: UrlId) -> GateAnswer:
    worker = desk.seated(seat)
    url = _in_hand(desk, worker, id)
    if url is None:
        return Dropped.CLOSED
    domain = desk.domain(url.domain)
    if url.state is State.ROUTED and (dropped := _may_not_start(desk, url, domain)) is not None:
        return dropped
    return _knock(desk, url, domain, worker)


def leave(desk: Desk, seat: Seat, leavings: Sequence[Leaving]) -> None:
    worker = desk.seated(seat)
    for leaving in leavings:
        url = _in_hand(desk, worker, leaving.id)
        if url is None:
            continue
        domain = desk.domain(url.domain)
        if domain.busy == url.n:
            end_request(desk, url, domain, leaving.visit)
            if leaving.until_s is not None:
                hold_off(desk, domain, leaving.until_s)


def _begin(desk: Desk, worker: WorkerRow, id: UrlId) -> GateAnswer:
    url = _in_hand(desk, worker, id)
    if url is None:
        return Dropped.CLOSED
    domain = desk.domain(url.domain)
    if url.state is State.FETCHING:
        if domain.busy == url.n:
            return _go(desk)  # its first answer was lost
        return _knock(desk, url, domain, worker)  # its request is over, and nobody knew: a ledger that forgot its last second
    if (dropped := _may_not_start(desk, url, domain)) is not None:
        return dropped
    if (wait := _closed_gate(desk, url, domain) or _company(desk, url, worker)) is not None:
        return wait
    if (spent := _out_of_pages(desk) or _out_of_bytes(desk)) is not None:
        return spent
    desk.move(url, State.FETCHING, worker.id)
    start_request(desk, url, domain)
    budgets.count_page(desk, domain)
    desk.worker(worker.id).fetching += 1
    if url.suspect:
        worker.alone += 1
    return _go(desk)


def _knock(desk: Desk, url: UrlRow, domain: DomainRow, worker: WorkerRow) -> GateAnswer:
    _write_off(desk, url, domain)
    if (wait := _closed_gate(desk, url, domain)) is not None:
        return wait
    if url.state is State.ROUTED and (wait := _company(desk, url, worker)) is not None:
        return wait
    if (spent := _out_of_bytes(desk)) is not None:
        return spent
    start_request(desk, url, domain)
    return _go(desk)


def _in_hand(desk: Desk, worker: WorkerRow, id: UrlId) -> UrlRow | None:
    """The URL, if this worker holds it."""
    url = desk.url(id)
    return url if url is not None and url.worker == worker.id else None


def _may_not_start(desk: Desk, url: UrlRow, domain: DomainRow) -> Dropped | None:
    """Whether a ROUTED URL has to leave the worker's hand instead; then it has left the ledger's as well."""
    _write_off(desk, url, domain)
    if not desk.crawl.running:
        return Dropped.BUDGET
    if is_over(desk, domain):
        close_with_domain(desk, url, domain)
        return Dropped.CLOSED
    if desk.now < domain.not_before:
        let_go(desk, url, State.PARKED)
        return Dropped.CLOSED
    return None


def _write_off(desk: Desk, url: UrlRow, domain: DomainRow) -> None:
    """A request of this URL that was begun and never ended: the *go* was lost, or its end was. It is charged, and over."""
    if domain.busy == url.n:
        end_request(desk, url, domain, None)


def _closed_gate(desk: Desk, url: UrlRow, domain: DomainRow) -> Wait | None:
    """I3: one request in flight, starts a delay apart, none before not_before."""
    if domain.busy is not None:
        return Wait(max(domain.next_at - desk.now, ASK_AGAIN_S), Why.BUSY)
    if desk.now < domain.not_before:
        return Wait(domain.not_before - desk.now, Why.NOT_BEFORE)
    if desk.now < domain.next_at:
        return Wait(domain.next_at - desk.now, Why.DELAY)
    return None


def _company(desk: Desk, url: UrlRow, worker: WorkerRow) -> Wait | None:
    """A suspect is fetched alone in its process, so that if it dies again nobody else is to blame, nor blamed.

    Nobody else: no other page, and no robots.txt either.
    """
    together = [other for other in desk.workers.values() if other.process == worker.process]
    busy = any(other.fetching or other.knocking for other in together)
    crowded = any(other.alone for other in together) or (url.suspect and busy)
    return Wait(ASK_AGAIN_S, Why.ALONE) if crowded else None


def _out_of_pages(desk: Desk) -> Wait | Dropped | None:
    """I4: stored + reserved never passes max_pages. While something is reserved it may yet fail, and free its share."""
    crawl = desk.crawl
    if crawl.stored + crawl.fetching < crawl.rules.max_pages:
        return None
    return Wait(ASK_AGAIN_S, Why.BUDGET) if crawl.fetching else _drain(desk, CrawlOutcome.PAGE_BUDGET)


def _out_of_bytes(desk: Desk) -> Wait | Dropped | None:
    """I4: used + charged + reserved never passes max_bytes."""
    crawl = desk.crawl
    committed = crawl.used_bytes + crawl.charged_bytes + crawl.reserved_bytes
    if committed + crawl.rules.request_bytes <= crawl.rules.max_bytes:
        return None
    return Wait(ASK_AGAIN_S, Why.BUDGET) if crawl.reserved_bytes else _drain(desk, CrawlOutcome.BYTE_BUDGET)


def _drain(desk: Desk, outcome: CrawlOutcome) -> Dropped:
    if desk.crawl.running:
        desk.books.status, desk.books.outcome = CrawlStatus.DRAINING, outcome
    return Dropped.BUDGET


def _go(desk: Desk) -> Go:
    return Go(desk.crawl.rules.request_bytes, desk.crawl.scope_hosts)
