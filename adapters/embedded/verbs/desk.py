"""The desk: the rows that verbs are working on, as objects, and when they are written back.

A verb takes rows, says which it changes (`change`, `save`, `worker`, `books`: each time, since a query in between writes back
what it was told of), changes their fields as the protocol says, and writes no SQL for it. What was changed goes to the file
before a query could miss it (`written`) and before the group is committed. URLs and domains stay on the desk from one group to the
next until they are too many; so do the crawl and the workers, which are few. `tidy` throws everything away: after a rollback, and
when another process has written to the file.

Knows: the schema. Must not know: what a verb means.
"""

import sqlite3
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice
from typing import Any, Final

import msgspec

from adapters.embedded.verbs.bands import Bands
from gossamer.clock import Clock
from gossamer.errors import Fenced, NoCrawl
from gossamer.ids import Epoch, UrlId, WorkerId
from gossamer.messages import Url
from gossamer.outcomes import CrawlOutcome, Outcome
from gossamer.records import UNRANKED, CrawlStatus, Facts, Rules, Seat
from gossamer.states import State

DOMAINS_KEPT: Final = 20_000
URLS_KEPT: Final = 10_000
KNOWN_KEPT: Final = 100_000
REFUSALS_KEPT: Final = 3_000


class Crawl(msgspec.Struct, kw_only=True):
    """The crawl's record and its sums. Mutable: this is the row itself."""

    status: CrawlStatus
    rules: Rules
    created_at: float
    kept_until: float
    time: float = 0.0  #: the newest that was seen: it goes on from here, also if the machine's clock was set back meanwhile
    outcome: CrawlOutcome | None = None
    scope_hosts: int = 0
    states: list[int] = msgspec.field(default_factory=lambda: [0] * len(State))
    outcomes: dict[Outcome, int] = {}
    stored: int = 0
    requests: int = 0
    used_bytes: int = 0
    charged_bytes: int = 0
    reserved_bytes: int = 0
    domains: int = 0
    refused: dict[str, int] = {}
    budgets: dict[str, int] = {}

    @property
    def running(self) -> bool:
        return self.status is CrawlStatus.RUNNING

    @property
    def fetching(self) -> int:
        return self.states[State.FETCHING]


class UrlRow(msgspec.Struct, gc=False):
    """What verbs need of a URL. The rest of its row never changes, or only when it is closed."""

    n: int
    id: UrlId
    domain: int
    depth: int
    hop: int
    state: State = State.WAITING
    worker: WorkerId | None = None
    priority: int = UNRANKED
    suspect: int = 0
    deaths: int = 0
    pardoned: int = 0
    deferrals: int = 0


class DomainRow(msgspec.Struct, gc=False):
    n: int
    name: str
    owner: WorkerId | None
    owner_until: float
    out: int
    parked: int
    busy: int | None
    next_at: float
    delay_s: float
    not_before: float
    due_at: float | None
    failures: int
    rests: int
    stored: int
    closed: str | None
    site: str
    begun: int


class SiteRow(msgspec.Struct, gc=False):
    """A registered domain. One that is not in the file yet is one of which nothing was counted."""

    name: str
    hosts: int = 0
    begun: int = 0
    own: int = 0


class WorkerRow(msgspec.Struct, gc=False):
    id: WorkerId
    epoch: Epoch
    process: str
    lease_until: float
    load: int
    fetching: int
    knocking: int
    alone: int


class _Changed(msgspec.Struct):
    """What is to be written back."""

    crawl: bool = False
    urls: dict[int, UrlRow] = {}
    closed: dict[int, tuple[UrlRow, Outcome, str, bytes]] = {}  #: with outcome, reason and facts
    stored: list[tuple[int, bytes | None]] = []  #: pages, with their links if these are kept
    domains: dict[int, DomainRow] = {}
    sites: dict[str, SiteRow] = {}
    workers: dict[int, WorkerRow] = {}


_URL_COLUMNS = "n, id, domain, depth, hop, state, worker, priority, suspect, deaths, pardoned, deferrals"
_DOMAIN_COLUMNS = (
    "n, name, owner, owner_until, out, parked, busy, next_at, delay_s, not_before, due_at, failures, rests, stored, closed, "
    "site, begun"
)
_URL_BY_ID = f"SELECT {_URL_COLUMNS} FROM url WHERE id = ?"
_DOMAIN_BY_N = f"SELECT {_DOMAIN_COLUMNS} FROM domain WHERE n = ?"
_DOMAIN_BY_NAME = f"SELECT {_DOMAIN_COLUMNS} FROM domain WHERE name = ?"
_ADD_URL = f"""
INSERT INTO url (n, id, url, domain, depth, hop, parent, state, priority, added_at, changed_at)
VALUES (?, ?, ?, ?, ?, ?, ?, {State.WAITING.value}, {UNRANKED}, ?, ?)
"""
_SAVE_URL = """
UPDATE url SET state = ?, worker = ?, priority = ?, suspect = ?, deaths = ?, pardoned = ?, deferrals = ?, changed_at = ?
WHERE n = ?
"""
_CLOSE_URL = f"""
UPDATE url SET state = {State.CLOSED.value}, worker = ?, priority = ?, suspect = ?, deaths = ?, pardoned = ?, deferrals = ?,
    changed_at = ?, outcome = ?, reason = ?, facts = ? WHERE n = ?
"""
_SAVE_DOMAIN = """
UPDATE domain SET owner = ?, owner_until = ?, out = ?, parked = ?, busy = ?, next_at = ?, delay_s = ?, not_before = ?,
    due_at = ?, failures = ?, rests = ?, stored = ?, closed = ?, begun = ? WHERE n = ?
"""
_KNOWN_AT_ONCE = 64
_SELECT_KNOWN = f"SELECT id FROM url WHERE id IN ({', '.join('?' * _KNOWN_AT_ONCE)})"

_encode = msgspec.json.Encoder().encode
_decode_crawl = msgspec.json.Decoder(Crawl).decode
_NO_FACTS = _encode(Facts())


class Desk:
    """One connection, and the rows of it that are being worked on."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.sql: Final = connection
        self.now = 0.0
        self._time_offset: float | None = None
        self._scope: frozenset[str] | None = None
        self._changed = _Changed()
        self._crawl: Crawl | None = None
        self._workers: dict[int, WorkerRow] | None = None
        self._urls: dict[UrlId, UrlRow] = {}
        self._last_n: int | None = None  # of all URLs; None: to be read
        self._domains: dict[int, DomainRow] = {}
        self._domain_ns: dict[str, int] = {}
        self._sites: dict[str, SiteRow] = {}
        self._known: dict[UrlId, None] = {}
        self._shown: set[tuple[str, str]] = set()  # of refused links, those that were shown lately
        self.bands: Final = Bands(connection)
        self._version = self._data_version()

    # --- One group of verbs ---

    def begin(self, clock: Clock) -> None:
        """Opens a transaction, and reads the clock: not before, since another process may have to end its own first.

        Time is what the wall showed once, and runs by the monotonic clock from there: whoever sets the machine's clock moves no
        lease and no delay. It never begins before what the file has seen.
        """
        self.sql.execute("BEGIN IMMEDIATE")
        if (version := self._data_version()) != self._version:
            self.tidy()
            self._version = version
        if self._time_offset is None:
            self._time_offset = max(clock.now(), self._time_seen()) - clock.monotonic()
        self.now = self._time_offset + clock.monotonic()

    def _time_seen(self) -> float:
        try:
            return self.crawl.time
        except NoCrawl:
            return 0.0

    def commit(self) -> None:
        self.written()
        self.bands.file()
        self.sql.execute("COMMIT")
        if len(self._urls) > URLS_KEPT:
            self._put_away()
        if max(len(self._domains), len(self._domain_ns)) > DOMAINS_KEPT:
            self._domains.clear()
            self._domain_ns.clear()
            self._sites.clear()

    def _put_away(self) -> None:
        """URLs that are closed, as most of the oldest are; if that is not enough, the older half of all."""
        self._urls = {id: row for id, row in self._urls.items() if row.state is not State.CLOSED}
        if len(self._urls) > URLS_KEPT // 2:
            self._urls = dict(islice(self._urls.items(), len(self._urls) // 2, None))

    def rollback(self) -> None:
        if self.sql.in_transaction:
            self.sql.execute("ROLLBACK")
        self.tidy()

    def tidy(self) -> None:
        """Everything is to be read from the file again."""
        self._changed = _Changed()
        self._crawl = self._workers = self._scope = self._last_n = None
        for kept in (self._urls, self._domains, self._domain_ns, self._sites, self._known, self._shown):
            kept.clear()
        self.bands.tidy()

    def written(self) -> sqlite3.Connection:
        """Writes back what was changed, so that a query sees it; the connection, for that query."""
        changed, now = self._changed, self.now
        if changed.closed:
            for n in changed.closed:
                changed.urls.pop(n, None)
            self.sql.executemany(
                _CLOSE_URL,
                [
                    (u.worker, u.priority, u.suspect, u.deaths, u.pardoned, u.deferrals, now, outcome, reason, facts, u.n)
                    for u, outcome, reason, facts in changed.closed.values()
                ],
            )
            changed.closed.clear()
        if changed.stored:
            self.sql.executemany("INSERT INTO page (n) VALUES (?)", [(n,) for n, _ in changed.stored])
            kept = [(n, links) for n, links in changed.stored if links is not None]
            self.sql.executemany("INSERT INTO outlinks (n, links) VALUES (?, ?)", kept)
            changed.stored.clear()
        if changed.urls:
            self.sql.executemany(
                _SAVE_URL,
                [
                    (u.state, u.worker, u.priority, u.suspect, u.deaths, u.pardoned, u.deferrals, now, u.n)
                    for u in changed.urls.values()
                ],
            )
            changed.urls.clear()
        if changed.domains:
            self.sql.executemany(_SAVE_DOMAIN, [_domain_values(d) for d in changed.domains.values()])
            changed.domains.clear()
        if changed.sites:
            rows = [(s.name, s.hosts, s.begun, s.own) for s in changed.sites.values()]
            self.sql.executemany("INSERT OR REPLACE INTO site VALUES (?, ?, ?, ?)", rows)
            changed.sites.clear()
        if changed.workers:
            self.sql.executemany(
                "INSERT OR REPLACE INTO worker VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                [
                    (w.id, w.epoch, w.process, w.lease_until, w.load, w.fetching, w.knocking, w.alone)
                    for w in changed.workers.values()
                ],
            )
            changed.workers.clear()
        if changed.crawl and self._crawl is not None:
            self._crawl.time = self.now
            self.sql.execute("INSERT OR REPLACE INTO crawl VALUES (1, ?)", (_encode(self._crawl),))
            changed.crawl = False
        return self.sql

    # --- The crawl and its workers ---

    @property
    def crawl(self) -> Crawl:
        """For reading. Raises `NoCrawl`."""
        if self._crawl is None:
            row = self.sql.execute("SELECT doc FROM crawl").fetchone()
            if row is None:
                raise NoCrawl("the ledger holds no crawl")
            self._crawl = _decode_crawl(row[0])
        return self._crawl

    @property
    def books(self) -> Crawl:
        """The crawl, to be changed."""
        crawl = self.crawl  # first: it may raise, and then there is nothing to write back
        self._changed.crawl = True
        return crawl

    def create(self, crawl: Crawl) -> None:
        self._crawl = crawl
        self._changed.crawl = True

    @property
    def scope(self) -> frozenset[str]:
        """Hosts that count as the seeds'."""
        if self._scope is None:
            self._scope = frozenset(host for (host,) in self.sql.execute("SELECT host FROM scope"))
        return self._scope

    def widen_scope(self, hosts: Iterable[str], sites: Mapping[str, str]) -> None:
        new = set(hosts) - self.scope
        if new:
            for host in new:
                self.change_site(sites.get(host, host)).own = 1
            self.books.scope_hosts = len(self.scope) + len(new)
            self.sql.executemany("INSERT INTO scope VALUES (?)", [(host,) for host in new])
            self._scope = self.scope | new

    @property
    def workers(self) -> dict[int, WorkerRow]:
        """All that ever registered, by id."""
        if self._workers is None:
            rows = self.sql.execute("SELECT * FROM worker ORDER BY id")
            self._workers = {row[0]: WorkerRow(*row) for row in rows}
        return self._workers

    def worker(self, id: WorkerId) -> WorkerRow:
        """To be changed."""
        worker = self.workers[id]
        self._changed.workers[id] = worker
        return worker

    def enroll(self, worker: WorkerRow) -> None:
        self.workers[worker.id] = self._changed.workers[worker.id] = worker

    def seated(self, seat: Seat) -> WorkerRow:
        """The worker, to be read, if its seat is still its own. Raises `Fenced`. Every verb of a worker begins here."""
        worker = self.workers.get(seat.worker)
        if worker is None or worker.epoch != seat.epoch:
            raise Fenced(f"worker {seat.worker} has a newer epoch")
        if worker.lease_until <= self.now:
            raise Fenced(f"the lease of worker {seat.worker} is over")
        return worker

    # --- URLs ---

    def url(self, id: UrlId) -> UrlRow | None:
        row = self._urls.get(id)
        if row is None:
            found = self.sql.execute(_URL_BY_ID, (id,)).fetchone()
            if found is None:
                return None
            row = self._urls[id] = _url_row(found)
        return row

    def state_of(self, id: UrlId, filed: int) -> State:
        """As it is now, of a URL whose state in the file was read without writing back what was changed."""
        row = self._urls.get(id)
        return _STATES[filed] if row is None else row.state

    def urls_where(self, where: str, values: Sequence[object] = (), *, as_filed: bool = False) -> list[UrlRow]:
        """Rows by a condition on `url`, order and limit included.

        `as_filed`: whatever waits to be written back changes nothing about which these are.
        """
        sql = self.sql if as_filed else self.written()
        found = sql.execute(f"SELECT {_URL_COLUMNS} FROM url WHERE {where}", values).fetchall()
        return [self._urls.get(row[1]) or self._urls.setdefault(row[1], _url_row(row)) for row in found]

    def save(self, url: UrlRow) -> None:
        self._changed.urls[url.n] = url

    def move(self, url: UrlRow, state: State, worker: WorkerId | None = None) -> None:
        """A URL's only way from one state to another: the counts go with it."""
        states = self.books.states
        states[url.state] -= 1
        states[state] += 1
        url.state, url.worker = state, worker
        self._changed.urls[url.n] = url

    def note(self, url: UrlRow, reason: str) -> None:
        """Why it is where it is, for `explain`."""
        self.sql.execute("UPDATE url SET reason = ? WHERE n = ?", (reason, url.n))

    def close(self, url: UrlRow, outcome: Outcome, reason: str, facts: Facts | None = None) -> None:
        """Notes how a URL ended that was moved to CLOSED."""
        assert url.state is State.CLOSED
        self._changed.closed[url.n] = (url, outcome, reason, _NO_FACTS if facts is None else _encode(facts))
        outcomes = self.books.outcomes
        outcomes[outcome] = outcomes.get(outcome, 0) + 1

    def store(self, url: UrlRow, links: bytes | None) -> None:
        """Enters the page of a URL, and the ids of its links, one behind another, if they are to be kept."""
        self._changed.stored.append((url.n, links))

    def unknown(self, ids: set[UrlId]) -> set[UrlId]:
        """Those of the ids that the ledger doesn't have."""
        missing = ids.difference(self._known)
        # In order: neighbours lie on the same page of the index.
        in_order = iter(sorted(missing))
        while some := tuple(islice(in_order, _KNOWN_AT_ONCE)):
            padded = some + some[-1:] * (_KNOWN_AT_ONCE - len(some))
            found = [id for (id,) in self.sql.execute(_SELECT_KNOWN, padded)]
            missing.difference_update(found)
            self._remember(found)
        return missing

    def enter(self, urls: Sequence[Url]) -> None:
        """New URLs, WAITING. Their ids must be unknown, and their domains entered."""
        if not urls:
            return
        now, first = self.now, self._new_n(len(urls))
        rows = [UrlRow(n, u.id, self._domain_ns[u.domain], u.depth, u.hop) for n, u in enumerate(urls, first)]
        self.sql.executemany(
            _ADD_URL,
            [(row.n, u.id, u.url, row.domain, u.depth, u.hop, u.parent, now, now) for row, u in zip(rows, urls, strict=True)],
        )
        self._urls.update({row.id: row for row in rows})  # they will be routed soon
        self.books.states[State.WAITING] += len(urls)
        self._remember([u.id for u in urls])

    def _new_n(self, count: int) -> int:
        """The first of so many numbers that no URL has."""
        if self._last_n is None:
            (self._last_n,) = self.sql.execute("SELECT coalesce(max(n), 0) FROM url").fetchone()
        self._last_n += count
        return self._last_n - count + 1

    def _remember(self, ids: Sequence[UrlId]) -> None:
        """Known ids stay known, so most links need no look into the file; the oldest are forgotten first."""
        self._known.update(dict.fromkeys(ids))
        if len(self._known) > KNOWN_KEPT:
            for id in list(islice(self._known, len(self._known) - KNOWN_KEPT * 3 // 4)):
                del self._known[id]

    def show_refused(self, reasons: Iterable[tuple[str, str]]) -> None:
        """Examples of links that were refused: reason and URL. What a site has on every page is shown once."""
        new = set(reasons) - self._shown
        if new:
            self.sql.executemany("INSERT OR IGNORE INTO refusal (reason, url) VALUES (?, ?)", sorted(new))
            self.sql.execute("DELETE FROM refusal WHERE place <= (SELECT max(place) FROM refusal) - ?", (REFUSALS_KEPT,))
            if len(self._shown) > REFUSALS_KEPT:
                self._shown.clear()
            self._shown |= new

    # --- Domains ---

    def domain(self, n: int) -> DomainRow:
        """For reading; `change` says that it will be written."""
        row = self._domains.get(n)
        if row is None:
            row = self._domains[n] = DomainRow(*self.sql.execute(_DOMAIN_BY_N, (n,)).fetchone())
        return row

    def change(self, domain: DomainRow) -> DomainRow:
        self._changed.domains[domain.n] = domain
        return domain

    def domain_named(self, name: str) -> DomainRow | None:
        row = self.written().execute(_DOMAIN_BY_NAME, (name,)).fetchone()
        return None if row is None else DomainRow(*row)

    def domains_where(self, where: str, values: Sequence[object] = ()) -> list[DomainRow]:
        """Rows by a condition on `domain`, order and limit included."""
        found = self.written().execute(f"SELECT n FROM domain WHERE {where}", values).fetchall()
        return [self.domain(n) for (n,) in found]

    def find_domain(self, name: str) -> DomainRow | None:
        """For reading, as `domain`; None if there is none of that name."""
        n = self._domain_ns.get(name)
        if n is None:
            found = self.sql.execute("SELECT n FROM domain WHERE name = ?", (name,)).fetchone()
            if found is None:
                return None
            n = self._domain_ns[name] = found[0]
        return self.domain(n)

    def enter_domain(self, name: str, site: str) -> None:
        """A new one."""
        books = self.books
        books.domains += 1
        delay_s = books.rules.delay_s
        values = (name, None, 0.0, 0, 0, None, 0.0, delay_s, 0.0, None, 0, 0, 0, None, site, 0)
        n = self.sql.execute(
            f"INSERT INTO domain ({_DOMAIN_COLUMNS[3:]}) VALUES ({', '.join('?' * len(values))})", values
        ).lastrowid
        assert n is not None
        self._domain_ns[name] = n

    # --- What budgets count ---

    def site(self, name: str) -> SiteRow:
        """For reading; `change_site` says that it will be written."""
        row = self._sites.get(name)
        if row is None:
            found = self.sql.execute("SELECT name, hosts, begun, own FROM site WHERE name = ?", (name,)).fetchone()
            row = self._sites[name] = SiteRow(*found) if found else SiteRow(name)
        return row

    def change_site(self, name: str) -> SiteRow:
        row = self._changed.sites[name] = self.site(name)
        return row

    def knows_host(self, name: str) -> bool:
        return self.sql.execute("SELECT 1 FROM host WHERE name = ?", (name,)).fetchone() is not None

    def enter_host(self, name: str) -> None:
        self.sql.execute("INSERT INTO host VALUES (?)", (name,))

    def variants(self, family: bytes) -> int:
        """How many URLs of a path there are: with a query, and the one without."""
        found = self.sql.execute("SELECT urls FROM family WHERE key = ?", (family,)).fetchone()
        return found[0] if found else 1

    def count_variant(self, family: bytes) -> None:
        self.sql.execute("INSERT INTO family VALUES (?, 2) ON CONFLICT (key) DO UPDATE SET urls = urls + 1", (family,))

    def _data_version(self) -> int:
        """Changes when another connection has committed."""
        version: int = self.sql.execute("PRAGMA data_version").fetchone()[0]
        return version


_STATES = tuple(State)


def _url_row(row: Any) -> UrlRow:  # _URL_COLUMNS, in order
    n, id, domain, depth, hop, state, *rest = row
    return UrlRow(n, id, domain, depth, hop, _STATES[state], *rest)


def _domain_values(d: DomainRow) -> tuple[object, ...]:
    return (
        d.owner, d.owner_until, d.out, d.parked, d.busy, d.next_at, d.delay_s, d.not_before,
        d.due_at, d.failures, d.rests, d.stored, d.closed, d.begun, d.n,
    )  # fmt: skip
