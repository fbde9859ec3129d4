"""A plain ledger: the protocol's text as directly as it can be written, to hold real ledgers against.

Nothing is kept that can be counted: `out`, load, reservations and open URLs are read off the URLs each time, so a real ledger's
sums are checked by not having any here. Slow, in memory, without groups or threads; the verbs are in docs/protocol.md's order.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from gossamer.answers import Dropped, Fresh, GateAnswer, Go, Judgement, RouteAnswer, Twin, Unrouted, Wait, Why
from gossamer.budgets import Budget
from gossamer.errors import Fenced
from gossamer.ids import Epoch, UrlId, WorkerId
from gossamer.messages import Link, Url
from gossamer.outcomes import CrawlOutcome, Outcome
from gossamer.records import (
    NO_SITES,
    UNRANKED,
    Closing,
    Content,
    CrawlStatus,
    Deferral,
    Facts,
    Leaving,
    PassedUp,
    Rules,
    Seat,
    Visit,
    window,
)
from gossamer.states import HELD, State


@dataclass
class PlainUrl:
    url: Url
    place: int  # the order in which URLs became known
    state: State = State.WAITING
    worker: WorkerId | None = None
    priority: int = UNRANKED
    suspect: int = 0
    deaths: int = 0
    pardoned: bool = False
    deferrals: int = 0
    outcome: Outcome | None = None
    reason: str = ""  # of a budget
    facts: Facts | None = None
    family: bytes = b""


@dataclass
class PlainDomain:
    name: str
    delay_s: float
    site: str
    owner: WorkerId | None = None
    owner_until: float = 0.0
    busy: UrlId | None = None
    next_at: float = 0.0
    not_before: float = 0.0
    due_at: float | None = None
    failures: int = 0
    rests: int = 0
    begun: int = 0
    closed: Outcome | None = None


@dataclass
class PlainWorker:
    id: WorkerId
    epoch: Epoch
    process: str
    lease_until: float


@dataclass
class PlainLedger:
    rules: Rules
    clock: Callable[[], float]
    status: CrawlStatus = CrawlStatus.RUNNING
    outcome: CrawlOutcome | None = None
    urls: dict[UrlId, PlainUrl] = field(default_factory=dict)
    domains: dict[str, PlainDomain] = field(default_factory=dict)
    workers: dict[WorkerId, PlainWorker] = field(default_factory=dict)
    contents: dict[UrlId, Content] = field(default_factory=dict)
    scope: set[str] = field(default_factory=set)
    own: set[str] = field(default_factory=set)  # sites of the seeds
    refused: Counter[str] = field(default_factory=Counter)  # by the budget that did it
    used_bytes: int = 0
    charged_bytes: int = 0

    # --- What can be counted ---

    @property
    def now(self) -> float:
        return self.clock()

    def those(self, *states: State, domain: str | None = None, worker: WorkerId | None = None) -> list[PlainUrl]:
        """The URLs in these states, the best first."""
        found = [
            u for u in self.urls.values() if u.state in states and domain in (None, u.url.domain) and worker in (None, u.worker)
        ]
        return sorted(found, key=lambda u: (u.priority, u.place))

    @property
    def stored(self) -> int:
        return sum(1 for u in self.urls.values() if u.facts is not None and u.facts.blob is not None)

    @property
    def fetching(self) -> int:
        return len(self.those(State.FETCHING))

    @property
    def reserved_bytes(self) -> int:
        return self.rules.request_bytes * sum(1 for d in self.domains.values() if d.busy is not None)

    def out(self, domain: PlainDomain) -> int:
        return len(self.those(*HELD, domain=domain.name))

    def load(self, worker: PlainWorker) -> int:
        return len(self.those(*HELD, worker=worker.id))

    def hosts(self, site: str) -> int:
        return sum(1 for d in self.domains.values() if d.site == site)

    def begun(self, site: str) -> int:
        return sum(d.begun for d in self.domains.values() if d.site == site)

    # --- Budgets ---

    def lifted(self, domain: PlainDomain) -> bool:
        return domain.name in self.rules.lifted or domain.site in self.rules.lifted

    def spent(self, domain: PlainDomain) -> str:
        """Why no page of it is asked for any more."""
        rules = self.rules
        if self.lifted(domain):
            return ""
        if rules.max_host_pages is not None and domain.begun >= rules.max_host_pages and domain.name not in self.scope:
            return Budget.HOST_PAGES.used_up(rules.max_host_pages)
        if rules.max_domain_pages is not None and self.begun(domain.site) >= rules.max_domain_pages and domain.site not in self.own:
            return Budget.DOMAIN_PAGES.used_up(rules.max_domain_pages)
        return ""

    def refusal(self, link: Link, sites: Mapping[str, str]) -> str:
        """Why a link that is unknown is not entered."""
        rules, known = self.rules, self.domains.get(link.domain)
        domain = known or PlainDomain(link.domain, 0.0, sites.get(link.domain, link.domain))
        if self.lifted(domain) or (reason := self.spent(domain)):
            return "" if self.lifted(domain) else reason
        named = known is not None or domain.name in self.scope
        if not named and rules.max_hosts is not None and self.hosts(domain.site) >= rules.max_hosts:
            return Budget.HOSTS.used_up(rules.max_hosts)
        variants = 1 + sum(1 for u in self.urls.values() if u.family == link.family)
        if link.combines and rules.max_variants is not None and variants >= rules.max_variants:
            return Budget.VARIANTS.used_up(rules.max_variants)
        return ""

    def is_over(self, domain: PlainDomain) -> bool:
        return domain.closed is not None or self.spent(domain) != ""

    # --- The crawl ---

    def resume(self, rules: Rules, *, nobody_lives: bool = False) -> None:
        for worker in self.workers.values():
            held_until, worker.lease_until = worker.lease_until, min(worker.lease_until, self.now)
            held = {u.url.id: self.domains[u.url.domain] for u in self.those(*HELD, worker=worker.id)}
            in_flight = [domain for id, domain in held.items() if domain.busy == id]
            self._give_back(worker, blame=False)
            for domain in in_flight:
                if not nobody_lives:
                    domain.next_at = max(domain.next_at, held_until + domain.delay_s)
        if self.outcome is not CrawlOutcome.COMPLETE:
            self.status, self.outcome, self.rules = CrawlStatus.RUNNING, None, rules

    def add(self, urls: Sequence[Url], scope: Sequence[str] = (), sites: Mapping[str, str] = NO_SITES) -> list[Url]:
        self._widen_scope(scope, sites)
        new = [new for url in urls for new in self._follow(Link(url.id, url.url, url.domain), url, sites)]
        if new and self.outcome is CrawlOutcome.COMPLETE:
            self.status, self.outcome = CrawlStatus.RUNNING, None
        return new

    def _widen_scope(self, hosts: Sequence[str], sites: Mapping[str, str]) -> None:
        self.scope.update(hosts)
        self.own.update(sites.get(host, host) for host in hosts)

    def _enter(self, url: Url, family: bytes, sites: Mapping[str, str]) -> bool:
        """False: it is known."""
        if url.id in self.urls:
            return False
        self.urls[url.id] = PlainUrl(url, len(self.urls), family=family)
        self.domains.setdefault(url.domain, PlainDomain(url.domain, self.rules.delay_s, sites.get(url.domain, url.domain)))
        return True

    def stop(self, outcome: CrawlOutcome) -> None:
        if self.status is CrawlStatus.RUNNING:
            self.status, self.outcome = CrawlStatus.DRAINING, outcome

    def end(self) -> None:
        if self.status is CrawlStatus.ENDED:
            return
        if all(u.state is State.CLOSED for u in self.urls.values()):
            self.status, self.outcome = CrawlStatus.ENDED, CrawlOutcome.COMPLETE
        elif self.status is CrawlStatus.DRAINING and not self.fetching and not self.reserved_bytes:
            self.status = CrawlStatus.ENDED

    # --- Leases ---

    def register(self, process: str, formerly: Seat | None = None) -> WorkerId:
        """The id alone: the epoch is the real ledger's to choose, and is told by `seat`."""
        self.reap()
        if formerly is not None:
            for u in self.urls.values():
                if u.suspect == formerly.epoch and u.state not in (State.FETCHING, State.CLOSED) and not u.pardoned:
                    u.suspect, u.deaths, u.pardoned = 0, max(0, u.deaths - 1), True
        id = WorkerId(0)
        while id in self.workers and self.workers[id].lease_until > self.now:
            id = WorkerId(id + 1)
        self.workers[id] = PlainWorker(id, Epoch(0), process, self.now + self.rules.lease_s)
        return id

    def seat(self, seat: Seat) -> None:
        self.workers[seat.worker].epoch = seat.epoch

    def seated(self, seat: Seat) -> PlainWorker:
        worker = self.workers[seat.worker]
        if worker.epoch != seat.epoch or worker.lease_until <= self.now:
            raise Fenced
        return worker

    def renew(self, seat: Seat) -> None:
        self.seated(seat).lease_until = self.now + self.rules.lease_s

    def release(self, seat: Seat) -> list[UrlId]:
        worker = self.seated(seat)
        worker.lease_until = self.now
        return self._give_back(worker, blame=False)

    def reap(self) -> list[UrlId]:
        dead = [worker for worker in self.workers.values() if worker.lease_until <= self.now]
        return [id for worker in dead for id in self._give_back(worker, blame=True)]

    def _give_back(self, worker: PlainWorker, *, blame: bool) -> list[UrlId]:
        held = self.those(*HELD, worker=worker.id)
        for u in held:
            domain = self.domains[u.url.domain]
            died_of_robots = blame and u.state is State.ROUTED and domain.busy == u.url.id
            suspect = blame and u.state is State.FETCHING and self.rules.poison_deaths > 0
            if suspect and u.suspect:
                u.deaths += 1
            poisoned = suspect and 0 < self.rules.poison_deaths <= u.deaths
            self._let_go(u, State.CLOSED if poisoned else State.WAITING)
            if poisoned:
                u.outcome = Outcome.POISON
            elif suspect:
                u.suspect = worker.epoch
            if died_of_robots:
                self._count_failure(domain, Outcome.ROBOTS_DENIED)
                self._make_due(domain)
        return [u.url.id for u in held]

    # --- Letting go ---

    def _let_go(self, u: PlainUrl, to: State, visit: Visit | None = None, *, stored: bool = False) -> None:
        domain = self.domains[u.url.domain]
        if not stored:
            self.contents.pop(u.url.id, None)
        if domain.busy == u.url.id:
            domain.busy = None
            if visit is None:
                self.charged_bytes += self.rules.request_bytes
                domain.next_at = max(domain.next_at, self.now + domain.delay_s)
            else:
                self.used_bytes += visit.received_bytes
                self._settle(domain, visit)
                domain.next_at = max(domain.next_at, self.now - visit.since_start_s + domain.delay_s)
        elif visit is not None:
            self._settle(domain, visit)
            if visit.delay_s is not None:
                domain.next_at = max(domain.next_at, self.now - visit.since_start_s + domain.delay_s)
        u.state, u.worker = to, None
        self._make_due(domain)

    def _settle(self, domain: PlainDomain, visit: Visit) -> None:
        if visit.delay_s is not None:
            domain.delay_s = visit.delay_s
        if visit.failed is not None:
            self._count_failure(domain, visit.failed)
        elif visit.answered:
            domain.failures = domain.rests = 0

    def _count_failure(self, domain: PlainDomain, outcome: Outcome) -> None:
        if domain.closed:
            return
        domain.failures += 1
        if domain.failures >= self.rules.domain_failures and self.now >= domain.not_before:
            if domain.rests >= self.rules.domain_rests:
                domain.closed = outcome
            else:
                self._hold_off(domain, self.rules.domain_rest_s * 2**domain.rests)
                domain.rests += 1

    def _hold_off(self, domain: PlainDomain, seconds: float) -> None:
        domain.not_before = max(domain.not_before, self.now + seconds)
        if domain.due_at is not None and not self.is_over(domain):
            domain.due_at = max(domain.due_at, domain.not_before)

    def _make_due(self, domain: PlainDomain) -> None:
        if self.those(State.PARKED, domain=domain.name):
            domain.due_at = self.now if self.is_over(domain) else max(self.now, domain.not_before)

    def _close(self, u: PlainUrl, outcome: Outcome) -> None:
        if u.state in HELD:
            self._let_go(u, State.CLOSED)
        u.state, u.outcome = State.CLOSED, outcome

    def _close_with_domain(self, u: PlainUrl, domain: PlainDomain) -> None:
        reason = "" if domain.closed else self.spent(domain)
        self._close(u, domain.closed or Outcome.BUDGET)
        u.reason = reason

    # --- The frontier ---

    def route(self, urls: Sequence[tuple[UrlId, int]]) -> list[RouteAnswer]:
        self.reap()
        return [self._route(id, priority) for id, priority in urls]

    def _route(self, id: UrlId, priority: int) -> RouteAnswer:
        u = self.urls.get(id)
        if u is None or u.state is not State.WAITING:
            return Unrouted.CLOSED
        if self.status is not CrawlStatus.RUNNING:
            return Unrouted.NO_ROOM
        domain = self.domains[u.url.domain]
        if self.is_over(domain):
            self._close_with_domain(u, domain)
            return Unrouted.CLOSED
        u.priority = priority
        if self.those(State.PARKED, domain=domain.name) or not self._takes_more(domain):
            u.state = State.PARKED
            if not self.out(domain):
                self._make_due(domain)
            return Unrouted.PARKED
        owner = self._owner(domain)
        if owner is None:
            return Unrouted.NO_ROOM
        self._give(u, domain, owner)
        return owner.id

    def promote(self) -> set[tuple[WorkerId, UrlId]]:
        """All that are due, without a limit."""
        self.reap()
        routed: set[tuple[WorkerId, UrlId]] = set()
        if self.status is not CrawlStatus.RUNNING:
            return routed
        due = [d for d in self.domains.values() if d.due_at is not None and d.due_at <= self.now]
        for domain in sorted(due, key=lambda d: (d.due_at, d.name)):
            domain.due_at = None
            for u in self.those(State.PARKED, domain=domain.name):
                if self.is_over(domain):
                    self._close_with_domain(u, domain)
                elif self._takes_more(domain) and (owner := self._owner(domain)) is not None:
                    self._give(u, domain, owner)
                    routed.add((owner.id, u.url.id))
            if not self.out(domain):
                self._make_due(domain)
        return routed

    def _takes_more(self, domain: PlainDomain) -> bool:
        out = self.out(domain)
        if out >= window(domain.delay_s) or self.now < domain.not_before:
            return False
        return not out or self.load(self._holder(domain)) < self.rules.queue_size

    def _holder(self, domain: PlainDomain) -> PlainWorker:
        (holder,) = {u.worker for u in self.those(*HELD, domain=domain.name)}
        assert holder is not None
        return self.workers[holder]

    def _owner(self, domain: PlainDomain) -> PlainWorker | None:
        if self.out(domain):
            return self._holder(domain)
        roomy = [w for w in self.workers.values() if w.lease_until > self.now and self.load(w) < self.rules.queue_size]
        last = [w for w in roomy if w.id == domain.owner and domain.owner_until > self.now]
        return min(last or roomy, key=lambda w: (self.load(w), w.id), default=None)

    def _give(self, u: PlainUrl, domain: PlainDomain, owner: PlainWorker) -> None:
        u.state, u.worker = State.ROUTED, owner.id
        domain.owner, domain.owner_until = owner.id, self.now + self.rules.owner_s

    def rank(self, urls: Sequence[tuple[UrlId, int]]) -> None:
        for id, priority in urls:
            u = self.urls.get(id)
            if u is not None and u.state in (State.WAITING, State.PARKED):
                u.priority = priority

    def shed(self, open_max: int, most: int) -> int:
        excess = sum(1 for u in self.urls.values() if u.state is not State.CLOSED) - open_max
        worst = self.those(State.WAITING, State.PARKED)[::-1][: max(0, min(most, excess))]
        for u in worst:
            self._close(u, Outcome.SHED)
        return len(worst)

    # --- The worker ---

    def _in_hand(self, seat: Seat, id: UrlId, *states: State) -> PlainUrl | None:
        self.seated(seat)
        u = self.urls.get(id)
        return u if u is not None and u.worker == seat.worker and u.state in states else None

    def begin(self, seat: Seat, ids: Sequence[UrlId]) -> list[GateAnswer]:
        return [self._begin(self.seated(seat), self._in_hand(seat, id, *HELD)) for id in ids]

    def _begin(self, worker: PlainWorker, u: PlainUrl | None) -> GateAnswer:
        if u is None:
            return Dropped.CLOSED
        domain = self.domains[u.url.domain]
        if u.state is State.FETCHING:
            if domain.busy == u.url.id:
                return self._go()
            return self._knock(u, domain, worker)
        if (dropped := self._may_not_start(u, domain)) is not None:
            return dropped
        if (wait := self._closed_gate(u, domain)) is not None:
            return wait
        if self._crowded(u, worker):
            return Wait(0, Why.ALONE)
        if self.stored + self.fetching >= self.rules.max_pages:
            return Wait(0, Why.BUDGET) if self.fetching else self._drain(CrawlOutcome.PAGE_BUDGET)
        if (spent := self._out_of_bytes()) is not None:
            return spent
        u.state = State.FETCHING
        domain.begun += 1
        return self._start(u, domain)

    def knock(self, seat: Seat, id: UrlId) -> GateAnswer:
        u = self._in_hand(seat, id, *HELD)
        if u is None:
            return Dropped.CLOSED
        domain = self.domains[u.url.domain]
        if u.state is State.ROUTED and (dropped := self._may_not_start(u, domain)) is not None:
            return dropped
        return self._knock(u, domain, self.seated(seat))

    def _knock(self, u: PlainUrl, domain: PlainDomain, worker: PlainWorker) -> GateAnswer:
        self._write_off(u, domain)
        if (wait := self._closed_gate(u, domain)) is not None:
            return wait
        if u.state is State.ROUTED and self._crowded(u, worker):
            return Wait(0, Why.ALONE)
        if (spent := self._out_of_bytes()) is not None:
            return spent
        return self._start(u, domain)

    def _may_not_start(self, u: PlainUrl, domain: PlainDomain) -> Dropped | None:
        self._write_off(u, domain)
        if self.status is not CrawlStatus.RUNNING:
            return Dropped.BUDGET
        if self.is_over(domain):
            self._close_with_domain(u, domain)
            return Dropped.CLOSED
        if self.now < domain.not_before:
            self._let_go(u, State.PARKED)
            return Dropped.CLOSED
        return None

    def _write_off(self, u: PlainUrl, domain: PlainDomain) -> None:
        if domain.busy == u.url.id:
            domain.busy = None
            self.charged_bytes += self.rules.request_bytes
            domain.next_at = max(domain.next_at, self.now + domain.delay_s)

    def _crowded(self, u: PlainUrl, worker: PlainWorker) -> bool:
        """Whether a suspect would not be alone: with a page that is fetched in its process, or a robots.txt."""
        flying = [v for v in self.urls.values() if v.state is State.FETCHING or self.domains[v.url.domain].busy == v.url.id]
        company = [v for v in flying if v.worker is not None and self.workers[v.worker].process == worker.process]
        lonely = any(v.suspect for v in company if v.state is State.FETCHING)
        return lonely or (bool(u.suspect) and bool(company))

    def _closed_gate(self, u: PlainUrl, domain: PlainDomain) -> Wait | None:
        if domain.busy is not None:
            return Wait(0, Why.BUSY)
        if self.now < domain.not_before:
            return Wait(domain.not_before - self.now, Why.NOT_BEFORE)
        if self.now < domain.next_at:
            return Wait(domain.next_at - self.now, Why.DELAY)
        return None

    def _out_of_bytes(self) -> Wait | Dropped | None:
        committed = self.used_bytes + self.charged_bytes + self.reserved_bytes
        if committed + self.rules.request_bytes <= self.rules.max_bytes:
            return None
        return Wait(0, Why.BUDGET) if self.reserved_bytes else self._drain(CrawlOutcome.BYTE_BUDGET)

    def _drain(self, outcome: CrawlOutcome) -> Dropped:
        self.stop(outcome)
        return Dropped.BUDGET

    def _start(self, u: PlainUrl, domain: PlainDomain) -> Go:
        domain.busy, domain.next_at = u.url.id, self.now + domain.delay_s
        return self._go()

    def _go(self) -> Go:
        return Go(self.rules.request_bytes, len(self.scope))

    def leave(self, seat: Seat, leavings: Sequence[Leaving]) -> None:
        self.seated(seat)
        for leaving in leavings:
            u, visit = self._in_hand(seat, leaving.id, *HELD), leaving.visit
            if u is None or self.domains[u.url.domain].busy != leaving.id:
                continue
            domain = self.domains[u.url.domain]
            domain.busy = None
            self.used_bytes += visit.received_bytes
            self._settle(domain, visit)
            domain.next_at = max(domain.next_at, self.now - visit.since_start_s + domain.delay_s)
            if leaving.until_s is not None:
                self._hold_off(domain, leaving.until_s)

    def judge(self, seat: Seat, content: Content) -> Judgement:
        if self._in_hand(seat, content.id, State.FETCHING) is None:
            return Dropped.CLOSED
        own = self.contents.get(content.id)
        if own is not None and own.exact == content.exact:
            return Fresh()
        self.contents.pop(content.id, None)
        alike = [(self._similarity(content, other), id) for id, other in self.contents.items()]
        stored = [(s, id) for s, id in alike if s is not None and self.urls[id].state is State.CLOSED]
        if stored:
            similarity, twin = max(stored, key=lambda pair: pair[0] or 0)
            return Twin(twin, similarity or 0)
        if any(s is not None for s, _ in alike):
            return Wait(0, Why.TWIN)
        self.contents[content.id] = content
        return Fresh()

    def _similarity(self, one: Content, other: Content) -> float | None:
        """How alike two pages are, or None if not alike enough."""
        if one.exact == other.exact:
            return 1.0
        if self.rules.similarity is None or not set(one.bands) & set(other.bands):
            return None
        values = [(one.signature[n : n + 4], other.signature[n : n + 4]) for n in range(0, len(one.signature), 4)]
        similarity = sum(a == b for a, b in values) / len(values)
        return similarity if similarity >= self.rules.similarity else None

    def finish(self, seat: Seat, closings: Sequence[Closing]) -> list[Url]:
        self.seated(seat)
        new: list[Url] = []
        for closing in closings:
            u = self._in_hand(seat, closing.id, State.FETCHING)
            if u is None:
                continue
            self._let_go(u, State.CLOSED, closing.visit, stored=closing.facts.blob is not None)
            u.outcome, u.facts = closing.outcome, closing.facts
            if closing.scope_host is not None:
                self._widen_scope([closing.scope_host], closing.sites)
            if closing.target is not None:
                new += self._follow(closing.target, closing.target.found(u.url.depth, u.url.hop + 1, closing.id), closing.sites)
            for link in closing.links:
                new += self._follow(link, link.found(u.url.depth + 1, 0, closing.id), closing.sites)
        return new

    def _follow(self, link: Link, found: Url, sites: Mapping[str, str]) -> list[Url]:
        """The link as a URL that is new; nothing if it is known, or refused."""
        if link.id not in self.urls and (reason := self.refusal(link, sites)):
            self.refused[reason] += 1
            return []
        return [found] if self._enter(found, link.family, sites) else []

    def defer(self, seat: Seat, deferrals: Sequence[Deferral]) -> None:
        self.seated(seat)
        for deferral in deferrals:
            u = self._in_hand(seat, deferral.id, State.FETCHING)
            if u is None:
                continue
            domain = self.domains[u.url.domain]
            self._let_go(u, State.PARKED, deferral.visit)
            if deferral.until_s is not None:
                self._hold_off(domain, deferral.until_s)
                u.deferrals += 1
            u.suspect = 0

    def pass_up(self, seat: Seat, endings: Sequence[PassedUp]) -> None:
        self.seated(seat)
        for ending in endings:
            u = self._in_hand(seat, ending.id, State.ROUTED)
            if u is not None:
                self._close(u, ending.outcome)
