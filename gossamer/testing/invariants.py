"""I1-I7 of docs/protocol.md, as far as a ledger shows them by itself: for a crawl that was killed, at any moment."""

from collections import Counter
from collections.abc import Iterable

from gossamer.ids import UrlId
from gossamer.ports.ledger import Ledger
from gossamer.records import CrawlStatus, UrlRecord
from gossamer.states import HELD, State


async def broken_invariants(ledger: Ledger, ids: Iterable[UrlId]) -> list[str]:
    """What doesn't hold; nothing if all does. `ids`: every URL that the crawl may know."""
    records = [record for record in await ledger.records(list(ids)) if record is not None]
    return [
        *await _lost(ledger, records),
        *_doubled(records),
        *await _over_budget(ledger, records),
        *await _over_budget_of_its_own(ledger, records),
        *_shared_domains(records),
        *await _falsely_ended(ledger, records),
    ]


async def _lost(ledger: Ledger, records: list[UrlRecord]) -> list[str]:
    lost = []
    for name in {record.url.domain for record in records if record.state is State.PARKED}:
        domain = await ledger.domain(name)
        if domain is None or (domain.due_at is None and not domain.out):
            lost.append(f"I1 {name} has parked URLs, and is neither due nor has something out")
    return lost


def _doubled(records: list[UrlRecord]) -> list[str]:
    stored = {record.url.id for record in records if record.facts is not None and record.facts.blob is not None}
    twins = [record for record in records if record.facts is not None and record.facts.twin is not None]
    return [
        f"I2 {record.url.url} is closed as the twin of a page that isn't stored"
        for record in twins
        if record.facts is not None and record.facts.twin not in stored
    ]


async def _over_budget(ledger: Ledger, records: list[UrlRecord]) -> list[str]:
    counts, rules = await ledger.counts(), (await ledger.crawl()).rules
    tally = Counter(record.state for record in records)
    stored = sum(1 for record in records if record.facts is not None and record.facts.blob is not None)
    in_flight = 0
    for name in {record.url.domain for record in records}:
        domain = await ledger.domain(name)
        in_flight += domain is not None and domain.busy is not None
    wrong = []
    if counts.states != {state: tally[state] for state in State}:
        wrong.append(f"I4 the counts of states are {counts.states}, the URLs say {dict(tally)}")
    if counts.stored != stored:
        wrong.append(f"I4 {counts.stored} pages are counted as stored, {stored} are")
    if counts.stored + counts.fetching > rules.max_pages:
        wrong.append("I4 more pages than the budget")
    if counts.reserved_bytes != in_flight * rules.request_bytes:
        wrong.append(f"I4 {counts.reserved_bytes} bytes are reserved for {in_flight} requests in flight")
    if counts.used_bytes + counts.charged_bytes + counts.reserved_bytes > rules.max_bytes:
        wrong.append("I4 more bytes than the budget")
    return wrong


async def _over_budget_of_its_own(ledger: Ledger, records: list[UrlRecord]) -> list[str]:
    """What hosts and sites have counted adds up, and none but a seed's has begun more pages than it may."""
    crawl, wrong = await ledger.crawl(), []
    begun: Counter[str] = Counter()
    most = crawl.rules.max_host_pages
    for name in {record.url.domain for record in records}:
        domain = await ledger.domain(name)
        assert domain is not None
        begun[domain.site] += domain.begun
        lifted = name in crawl.scope or not {name, domain.site}.isdisjoint(crawl.rules.lifted)
        if most is not None and domain.begun > most and not lifted:
            wrong.append(f"I4 {domain.begun} pages of {name} were begun, of at most {most}")
    for name, pages in begun.items():
        site = await ledger.site(name)
        if site is None or site.begun != pages:
            wrong.append(f"I4 the hosts of {name} have begun {pages} pages, and it says {site}")
    return wrong


def _shared_domains(records: list[UrlRecord]) -> list[str]:
    owners: dict[str, set[int | None]] = {}
    for record in records:
        if record.state in HELD:
            owners.setdefault(record.url.domain, set()).add(record.worker)
    return [f"I5 {name} is with workers {sorted(map(str, workers))}" for name, workers in owners.items() if len(workers) > 1]


async def _falsely_ended(ledger: Ledger, records: list[UrlRecord]) -> list[str]:
    crawl = await ledger.crawl()
    if crawl.status is CrawlStatus.ENDED and any(record.state is State.FETCHING for record in records):
        return ["I7 ended with requests in flight"]
    if crawl.outcome == "complete" and any(record.state is not State.CLOSED for record in records):
        return ["I7 complete with open URLs"]
    return []
