"""Into a worker's hands and out of them: the two moves that every other verb is made of.

A URL is taken in hand in one way and let go in one way, whichever verb does it, so that load, window, reservation, the busy
mark, the content entry and *due* can't drift apart.
"""

from adapters.embedded.verbs import budgets, content
from adapters.embedded.verbs.desk import Desk, DomainRow, UrlRow, WorkerRow
from gossamer.ids import WorkerId
from gossamer.outcomes import Outcome
from gossamer.records import Facts, Visit
from gossamer.states import HELD, State


def take_in_hand(desk: Desk, url: UrlRow, domain: DomainRow, worker: WorkerId) -> None:
    """WAITING or PARKED → ROUTED(worker)."""
    desk.change(domain)
    if url.state is State.PARKED:
        domain.parked -= 1
    domain.out += 1
    domain.owner, domain.owner_until = worker, desk.now + desk.crawl.rules.owner_s
    desk.worker(worker).load += 1
    desk.move(url, State.ROUTED, worker)


def let_go(desk: Desk, url: UrlRow, to: State, visit: Visit | None = None, *, stored: bool = False) -> None:
    """ROUTED or FETCHING → `to`. Without a visit nobody saw the end of the request that may be in flight."""
    assert url.state in HELD
    assert url.worker is not None
    domain, worker = desk.change(desk.domain(url.domain)), desk.worker(url.worker)
    domain.out -= 1
    worker.load -= 1
    if url.state is State.FETCHING:
        worker.fetching -= 1
        if url.suspect:
            worker.alone -= 1
        if not stored:
            content.withdraw(desk, url)
    if domain.busy == url.n:
        end_request(desk, url, domain, visit)
    elif visit is not None:
        judge_health(desk, domain, visit)
        if visit.delay_s is not None:  # its request was written off, and only now tells how long the domain is to be left alone
            domain.next_at = max(domain.next_at, desk.now - visit.since_start_s + domain.delay_s)
    desk.move(url, to)
    if to is State.PARKED:
        domain.parked += 1
    make_due(desk, domain)


def close_open(desk: Desk, url: UrlRow, outcome: Outcome, reason: str, facts: Facts | None = None) -> None:
    """Closes a URL from whatever open state it is in, without a request."""
    if url.state in HELD:
        let_go(desk, url, State.CLOSED)
    else:
        if url.state is State.PARKED:
            desk.change(desk.domain(url.domain)).parked -= 1
        desk.move(url, State.CLOSED)
    desk.close(url, outcome, reason, facts)


def is_over(desk: Desk, domain: DomainRow) -> bool:
    """Whether the domain is asked no more: it was given up, or a page budget of it is used up."""
    return domain.closed is not None or budgets.spent(desk, domain) != ""


def close_with_domain(desk: Desk, url: UrlRow, domain: DomainRow) -> None:
    """The domain is asked no more: its URLs end as it did, each as it is met."""
    if domain.closed is not None:
        close_open(desk, url, Outcome(domain.closed), "its domain was given up after failing again and again")
        return
    reason = budgets.spent(desk, domain)
    close_open(desk, url, Outcome.BUDGET, reason)
    desk.books.budgets[reason] = desk.books.budgets.get(reason, 0) + 1


def make_due(desk: Desk, domain: DomainRow) -> None:
    """Enters a domain with PARKED URLs in *due*: when it may be asked again, or now."""
    if domain.parked:
        desk.change(domain).due_at = desk.now if is_over(desk, domain) else max(desk.now, domain.not_before)


def start_request(desk: Desk, url: UrlRow, domain: DomainRow) -> None:
    """The gate said go: the domain is busy with this URL, its next start a delay away, and bytes are reserved."""
    assert domain.busy is None
    assert url.worker is not None
    books = desk.books
    books.reserved_bytes += books.rules.request_bytes
    books.requests += 1
    if url.state is State.ROUTED:
        desk.worker(url.worker).knocking += 1
    desk.change(domain).busy = url.n
    domain.next_at = desk.now + domain.delay_s


def end_request(desk: Desk, url: UrlRow, domain: DomainRow, visit: Visit | None) -> None:
    """The domain is idle again. A request whose end nobody saw is charged whole, and counts as started just now."""
    assert url.worker is not None
    books = desk.books
    if url.state is State.ROUTED:
        desk.worker(url.worker).knocking -= 1
    desk.change(domain).busy = None
    books.reserved_bytes -= books.rules.request_bytes
    if visit is None:
        books.charged_bytes += books.rules.request_bytes
        domain.next_at = max(domain.next_at, desk.now + domain.delay_s)
    else:
        books.used_bytes += visit.received_bytes
        judge_health(desk, domain, visit)
        # From the request's start and not from the gate's *go*: a slow dial would bring two starts together.
        domain.next_at = max(domain.next_at, desk.now - visit.since_start_s + domain.delay_s)


def judge_health(desk: Desk, domain: DomainRow, visit: Visit) -> None:
    """What a visit says of the domain: its delay as it now is, how it is doing."""
    desk.change(domain)
    if visit.delay_s is not None:
        domain.delay_s = visit.delay_s
    if visit.failed is not None:
        count_failure(desk, domain, visit.failed)
    elif visit.answered:
        domain.failures = domain.rests = 0


def hold_off(desk: Desk, domain: DomainRow, seconds: float) -> None:
    """The domain is not to be asked for so long; never sooner than was said before. If it is due, it is due then."""
    desk.change(domain).not_before = max(domain.not_before, desk.now + seconds)
    if domain.due_at is not None and not is_over(desk, domain):
        domain.due_at = max(domain.due_at, domain.not_before)


def count_failure(desk: Desk, domain: DomainRow, outcome: Outcome) -> None:
    """Enough of them in a row, and the domain rests; after its last rest it is given up, for good."""
    if domain.closed:
        return
    rules = desk.crawl.rules
    desk.change(domain).failures += 1
    if domain.failures < rules.domain_failures or desk.now < domain.not_before:
        return  # well enough, or resting already: a late retry is no reason to rest once more
    if domain.rests >= rules.domain_rests:
        domain.closed = outcome.value
    else:
        hold_off(desk, domain, rules.domain_rest_s * 2**domain.rests)
        domain.rests += 1


def live_workers(desk: Desk) -> list[WorkerRow]:
    return [worker for worker in desk.workers.values() if worker.lease_until > desk.now]
