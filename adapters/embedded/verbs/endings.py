"""How URLs end: fetched, deferred, passed up or shed; and the crawl with the last of them."""

from collections import Counter
from collections.abc import Mapping, Sequence

from adapters.embedded.verbs import budgets
from adapters.embedded.verbs.desk import Crawl, Desk, UrlRow
from adapters.embedded.verbs.hands import close_open, hold_off, let_go
from gossamer.messages import Link, Url
from gossamer.outcomes import CrawlOutcome, Outcome
from gossamer.records import Closing, CrawlStatus, Deferral, PassedUp, Refused, Seat
from gossamer.states import State


def finish(desk: Desk, seat: Seat, closings: Sequence[Closing]) -> list[Url]:
    desk.seated(seat)
    ended = []
    for closing in closings:
        url = desk.url(closing.id)
        if url is not None and url.state is State.FETCHING and url.worker == seat.worker:
            _finish(desk, url, closing)
            ended.append((url, closing))
    return _enter_links(desk, ended)


def defer(desk: Desk, seat: Seat, deferrals: Sequence[Deferral]) -> None:
    desk.seated(seat)
    for deferral in deferrals:
        url = desk.url(deferral.id)
        if url is None or url.state is not State.FETCHING or url.worker != seat.worker:
            continue
        let_go(desk, url, State.PARKED, deferral.visit)
        if deferral.until_s is not None:  # after the visit was settled: this wait is no rest that would excuse its failure
            hold_off(desk, desk.domain(url.domain), deferral.until_s)
            url.deferrals += 1
        if deferral.reason:
            desk.note(url, deferral.reason)
        url.suspect = 0  # it was begun, and its worker lives


def pass_up(desk: Desk, seat: Seat, endings: Sequence[PassedUp]) -> None:
    desk.seated(seat)
    for ending in endings:
        url = desk.url(ending.id)
        if url is not None and url.state is State.ROUTED and url.worker == seat.worker:
            close_open(desk, url, ending.outcome, ending.reason)


def shed(desk: Desk, open_max: int, most: int) -> int:
    open_now = sum(desk.crawl.states) - desk.crawl.states[State.CLOSED]
    most = max(0, min(most, open_now - open_max))
    worst = sorted(
        (
            *desk.urls_where("state = 0 ORDER BY priority DESC, n DESC LIMIT ?", (most,)),
            *desk.urls_where("state = 1 ORDER BY priority DESC, n DESC LIMIT ?", (most,)),
        ),
        key=lambda url: (-url.priority, -url.n),
    )[:most]
    for url in worst:
        close_open(desk, url, Outcome.SHED, f"more open URLs than the crawl may hold; its priority was {url.priority}")
    return len(worst)


def add(desk: Desk, seat: Seat | None, urls: Sequence[Url], scope: Sequence[str], sites: Mapping[str, str]) -> list[Url]:
    if seat is not None:
        desk.seated(seat)
    desk.widen_scope(scope, sites)
    unknown = desk.unknown({url.id for url in urls})
    new, refused = [], _Refusals()
    for url in urls:
        if url.id not in unknown:
            continue
        if reason := budgets.refusal(desk, Link(url.id, url.url, url.domain), sites):
            refused.add(reason, url.url)
        else:
            unknown.remove(url.id)
            new.append(url)
    desk.enter(new)
    refused.note(desk)
    if new and desk.crawl.outcome is CrawlOutcome.COMPLETE:  # it was, and is no longer
        desk.books.status, desk.books.outcome = CrawlStatus.RUNNING, None
    return new


def end(desk: Desk) -> Crawl:
    crawl = desk.crawl
    if crawl.status is CrawlStatus.ENDED:
        return crawl
    if sum(crawl.states) == crawl.states[State.CLOSED]:
        desk.books.outcome = CrawlOutcome.COMPLETE
    elif crawl.status is not CrawlStatus.DRAINING or crawl.fetching or crawl.reserved_bytes:
        return crawl
    desk.books.status = CrawlStatus.ENDED
    desk.books.kept_until = desk.now + crawl.rules.ttl_s  # this is its last step: its time runs from here
    return crawl


def _finish(desk: Desk, url: UrlRow, closing: Closing) -> None:
    stored = closing.facts.blob is not None
    let_go(desk, url, State.CLOSED, closing.visit, stored=stored)
    desk.close(url, closing.outcome, closing.reason, closing.facts)
    if stored:
        desk.books.stored += 1
        desk.change(desk.domain(url.domain)).stored += 1
        desk.store(url, b"".join([link.id for link in closing.links]) if desk.crawl.rules.keep_outlinks else None)
    if closing.scope_host is not None:
        desk.widen_scope((closing.scope_host,), closing.sites)
    if closing.refused:
        _note_refused(desk, closing.refused)


def _enter_links(desk: Desk, ended: Sequence[tuple[UrlRow, Closing]]) -> list[Url]:
    """The links of all these pages at once: what they share is looked up once."""
    ids = {link.id for _, closing in ended for link in closing.links}
    ids.update(closing.target.id for _, closing in ended if closing.target is not None)
    unknown = desk.unknown(ids)
    new: list[Url] = []
    refused = _Refusals()

    def enter(link: Link, found: Url, sites: Mapping[str, str]) -> None:
        if reason := budgets.refusal(desk, link, sites):
            refused.add(reason, link.url)
        else:
            unknown.remove(link.id)
            new.append(found)

    for url, closing in ended:
        if (target := closing.target) is not None and target.id in unknown:
            enter(target, target.found(url.depth, url.hop + 1, url.id), closing.sites)
        if not unknown:
            continue
        for link in closing.links:
            if link.id in unknown:
                enter(link, link.found(url.depth + 1, 0, url.id), closing.sites)
    desk.enter(new)
    refused.note(desk)
    return new


class _Refusals:
    """What budgets have kept out in one verb: a count for each reason, and the first to show."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._examples: dict[str, str] = {}

    def add(self, reason: str, url: str) -> None:
        self._counts[reason] += 1
        self._examples.setdefault(reason, url)

    def note(self, desk: Desk) -> None:
        if self._counts:
            _note_refused(desk, [Refused(reason, count, self._examples[reason]) for reason, count in self._counts.items()])


def _note_refused(desk: Desk, refused: Sequence[Refused]) -> None:
    counts = desk.books.refused
    for one in refused:
        counts[one.reason] = counts.get(one.reason, 0) + one.count
    desk.show_refused((one.reason, one.example) for one in refused)
