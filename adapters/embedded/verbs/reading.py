"""What display, `status`, `explain` and the report read. Changes nothing."""

from collections.abc import Sequence

import msgspec

from adapters.embedded.verbs.desk import Crawl, Desk, DomainRow
from adapters.embedded.verbs.hands import live_workers
from gossamer.ids import UrlId
from gossamer.messages import Url
from gossamer.outcomes import Outcome
from gossamer.records import Counts, CrawlRecord, DomainRecord, Facts, SiteRecord, UrlRecord, WorkerRecord
from gossamer.states import State

_RECORD = """
SELECT u.id, u.url, d.name, u.depth, u.hop, u.parent, u.state, u.worker, u.priority, u.suspect, u.deaths, u.deferrals,
    u.added_at, u.changed_at, u.outcome, u.reason, u.facts
FROM url u JOIN domain d ON d.n = u.domain WHERE
"""
_decode_facts = msgspec.json.Decoder(Facts).decode


def crawl(desk: Desk) -> CrawlRecord:
    return crawl_record(desk, desk.crawl)


def crawl_record(desk: Desk, crawl: Crawl) -> CrawlRecord:
    return CrawlRecord(
        status=crawl.status,
        outcome=crawl.outcome,
        rules=crawl.rules,
        scope=desk.scope,
        created_at=crawl.created_at,
        kept_until=crawl.kept_until,
    )


def counts(desk: Desk) -> Counts:
    crawl = desk.crawl
    return Counts(
        states={state: crawl.states[state] for state in State},
        outcomes=dict(crawl.outcomes),
        stored=crawl.stored,
        requests=crawl.requests,
        used_bytes=crawl.used_bytes,
        charged_bytes=crawl.charged_bytes,
        reserved_bytes=crawl.reserved_bytes,
        domains=crawl.domains,
        refused=dict(crawl.refused),
        budgets=dict(crawl.budgets),
    )


def workers(desk: Desk) -> list[WorkerRecord]:
    return [
        WorkerRecord(id=row.id, epoch=row.epoch, process=row.process, lease_until=row.lease_until, load=row.load)
        for row in live_workers(desk)
    ]


def records(desk: Desk, ids: Sequence[UrlId]) -> list[UrlRecord | None]:
    sql = desk.written()
    rows = (sql.execute(f"{_RECORD} u.id = ?", (id,)).fetchone() for id in ids)
    return [None if row is None else _url_record(row) for row in rows]


def unfinished(desk: Desk, most: int) -> list[UrlRecord]:
    sql = desk.written()
    found: list[UrlRecord] = []
    for state in ("IN (2, 3)", "= 1", "= 0"):
        rows = sql.execute(f"{_RECORD} u.state {state} LIMIT ?", (most - len(found),))
        found += [_url_record(row) for row in rows]
    return found


def poisoned(desk: Desk, most: int) -> list[UrlRecord]:
    rows = desk.written().execute(f"{_RECORD} u.outcome = 'poison' ORDER BY u.changed_at DESC, u.n DESC LIMIT ?", (most,))
    return [_url_record(row) for row in rows]


def pages(desk: Desk, after: int, most: int) -> list[tuple[int, UrlRecord]]:
    places = "SELECT place, n FROM page WHERE place > ? ORDER BY place LIMIT ?"
    sql = desk.written()
    found = sql.execute(places, (after, max(most, 0))).fetchall()
    return [(place, _url_record(sql.execute(f"{_RECORD} u.n = ?", (n,)).fetchone())) for place, n in found]


def domain(desk: Desk, name: str) -> DomainRecord | None:
    row = desk.domain_named(name)
    return None if row is None else _domain_record(desk, row)


def domains(desk: Desk, most: int) -> list[DomainRecord]:
    rows = desk.domains_where("out > 0 LIMIT ?", (most,))
    rows += desk.domains_where("due_at IS NOT NULL AND out = 0 ORDER BY due_at LIMIT ?", (most - len(rows),))
    return [_domain_record(desk, row) for row in rows]


def site(desk: Desk, name: str) -> SiteRecord | None:
    row = desk.site(name)
    return SiteRecord(name=name, hosts=row.hosts, begun=row.begun, own=bool(row.own)) if row.hosts or row.own else None


def refused(desk: Desk) -> list[tuple[str, str]]:
    return desk.sql.execute("SELECT reason, url FROM refusal ORDER BY place").fetchall()


def _url_record(row: tuple) -> UrlRecord:  # type: ignore[type-arg]  # the columns of _RECORD, in order
    id, url, name, depth, hop, parent, state, worker, priority, suspect, deaths, deferrals, *rest = row
    added_at, changed_at, outcome, reason, facts = rest
    return UrlRecord(
        url=Url(id, url, name, depth, hop, parent),
        state=State(state),
        worker=worker,
        priority=priority,
        suspect=bool(suspect),
        deaths=deaths,
        deferrals=deferrals,
        added_at=added_at,
        changed_at=changed_at,
        outcome=None if outcome is None else Outcome(outcome),
        reason=reason or "",
        facts=None if facts is None else _decode_facts(facts),
    )


def _domain_record(desk: Desk, row: DomainRow) -> DomainRecord:
    busy = None
    if row.busy is not None:
        (busy,) = desk.sql.execute("SELECT id FROM url WHERE n = ?", (row.busy,)).fetchone()
    return DomainRecord(
        name=row.name,
        site=row.site,
        owner=row.owner,
        owner_until=row.owner_until,
        out=row.out,
        parked=row.parked,
        busy=busy,
        next_at=row.next_at,
        delay_s=row.delay_s,
        not_before=row.not_before,
        due_at=row.due_at,
        failures=row.failures,
        rests=row.rests,
        stored=row.stored,
        begun=row.begun,
        closed=None if row.closed is None else Outcome(row.closed),
    )
