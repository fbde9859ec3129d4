"""Which worker a URL goes to: `route` for what waits, `promote` for what is parked."""

from collections.abc import Sequence

from adapters.embedded.verbs.desk import Desk, DomainRow, UrlRow
from adapters.embedded.verbs.hands import close_with_domain, is_over, live_workers, make_due, take_in_hand
from adapters.embedded.verbs.leases import reap
from gossamer.answers import RouteAnswer, Routing, Unrouted
from gossamer.ids import UrlId, WorkerId
from gossamer.messages import Url
from gossamer.records import window
from gossamer.states import State


def route(desk: Desk, urls: Sequence[tuple[UrlId, int]]) -> list[RouteAnswer]:
    reap(desk)
    return [_route(desk, id, priority) for id, priority in urls]


def promote(desk: Desk, most: int) -> list[tuple[WorkerId, UrlRow]]:
    reap(desk)
    if not desk.crawl.running:
        return []
    routed: list[tuple[WorkerId, UrlRow]] = []
    left = most
    for domain in desk.domains_where("due_at <= ? ORDER BY due_at, name LIMIT ?", (desk.now, most)):
        if left <= 0:
            break
        parked = domain.parked
        routed += _promote(desk, domain, left)
        left -= parked - domain.parked  # those that were closed count as well: a verb's work has an end
    return routed


def as_routings(desk: Desk, routed: list[tuple[WorkerId, UrlRow]]) -> list[Routing]:
    """With the URLs' own words, which `promote` did not need to decide."""
    select = "SELECT u.id, u.url, d.name, u.depth, u.hop, u.parent FROM url u JOIN domain d ON d.n = u.domain WHERE u.n = ?"
    return [Routing(worker, Url(*desk.sql.execute(select, (url.n,)).fetchone()), url.priority) for worker, url in routed]


def _route(desk: Desk, id: UrlId, priority: int) -> RouteAnswer:
    url = desk.url(id)
    if url is None or url.state is not State.WAITING:
        return Unrouted.CLOSED
    if not desk.crawl.running:
        return Unrouted.NO_ROOM
    domain = desk.domain(url.domain)
    if is_over(desk, domain):
        close_with_domain(desk, url, domain)
        return Unrouted.CLOSED
    url.priority = priority
    if domain.parked or not _may_take_more(desk, domain):  # those who are parked may be better: `promote` chooses
        _park(desk, url, domain)
        return Unrouted.PARKED
    owner = _owner(desk, domain)
    if owner is None:
        desk.save(url)
        return Unrouted.NO_ROOM
    take_in_hand(desk, url, domain, owner)
    return owner


def _promote(desk: Desk, domain: DomainRow, most: int) -> list[tuple[WorkerId, UrlRow]]:
    """The best parked URLs of one due domain, as many as fit."""
    desk.change(domain).due_at = None
    if is_over(desk, domain):
        for url in _best_parked(desk, domain, most):
            close_with_domain(desk, url, domain)
        make_due(desk, domain)
        return []
    routed: list[tuple[WorkerId, UrlRow]] = []
    fits = min(most, window(domain.delay_s) - domain.out)
    for url in _best_parked(desk, domain, fits):
        owner = _owner(desk, domain) if _may_take_more(desk, domain) else None
        if owner is None:
            break
        take_in_hand(desk, url, domain, owner)
        routed.append((owner, url))
    if not domain.out:  # nobody had room, or it may not be asked yet; else letting go will make it due
        make_due(desk, domain)
    return routed


def _best_parked(desk: Desk, domain: DomainRow, most: int) -> list[UrlRow]:
    """Of a domain that was looked for in the file: only other domains' URLs were changed since."""
    return desk.urls_where("state = 1 AND domain = ? ORDER BY priority, n LIMIT ?", (domain.n, max(most, 0)), as_filed=True)


def _park(desk: Desk, url: UrlRow, domain: DomainRow) -> None:
    desk.change(domain).parked += 1
    desk.move(url, State.PARKED)
    if not domain.out:
        make_due(desk, domain)


def _may_take_more(desk: Desk, domain: DomainRow) -> bool:
    """Whether window, not_before and, while it has something out, the owner's load leave room for one more of the domain."""
    if domain.out >= window(domain.delay_s) or desk.now < domain.not_before:
        return False
    if not domain.out:
        return True
    assert domain.owner is not None
    return desk.workers[domain.owner].load < desk.crawl.rules.queue_size


def _owner(desk: Desk, domain: DomainRow) -> WorkerId | None:
    """While something is out, the worker that has it; else the last one if it may still be; else the least loaded."""
    if domain.out:
        return domain.owner
    roomy = [worker for worker in live_workers(desk) if worker.load < desk.crawl.rules.queue_size]
    if domain.owner_until > desk.now and any(worker.id == domain.owner for worker in roomy):
        return domain.owner
    return min(roomy, key=lambda worker: (worker.load, worker.id)).id if roomy else None
