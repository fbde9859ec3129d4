"""`status`: how a crawl stands, for people and for programs. Changes nothing."""

import json
from collections.abc import Iterator
from typing import Final

from gossamer.records import CrawlStatus
from services.controller.cli import COMMAND
from services.controller.crawls import Place
from services.controller.display import told, waiting, why
from services.controller.engines import ended_as
from services.controller.reading import Glance
from services.controller.report import most_first
from services.controller.summary import going_on, in_words, laid_out, naming, ranking, tally
from services.controller.wording import safe, several

DOMAINS_SHOWN: Final = 5


def status_text(place: Place, glance: Glance) -> str:
    lines = [
        *tally(glance.record, glance.counts),
        *_at_work(glance),
        *ranking(glance.frontier),
        ("state", safe(str(place.folder), 500)),
        _next(place, glance),
    ]
    return laid_out(_head(place, glance), lines)


def status_json(place: Place, glance: Glance) -> str:
    record, counts = glance.record, glance.counts
    fields = {
        "crawl": place.id,
        "status": record.status,
        "process": glance.process,
        "outcome": ended_as(record, counts),
        "pages": counts.stored,
        "max_pages": record.rules.max_pages,
        "bytes": counts.used_bytes,
        "bytes_charged": counts.charged_bytes,
        "max_bytes": record.rules.max_bytes,
        "requests": counts.requests,
        "domains": counts.domains,
        "open": counts.open,
        "states": {state.name.lower(): count for state, count in counts.states.items()},
        "outcomes": most_first({str(outcome): count for outcome, count in counts.outcomes.items()}),
        "budgets": most_first(counts.budgets),
        "refused": most_first(counts.refused),
        "workers": [{"id": each.id, "load": each.load} for each in glance.workers] if glance.process is not None else [],
        "rank_api": told(glance.frontier.rank_api),
        "prioritizer": told(glance.frontier.prioritizer),
        "created_at": record.created_at,
        "kept_until": record.kept_until,
        "folder": str(place.folder),
    }
    return json.dumps(fields, indent=1) + "\n"


def _head(place: Place, glance: Glance) -> str:
    record = glance.record
    if glance.process is not None:
        return f"Crawl {place.id} {_DOING[record.status]}, in process {glance.process}."
    outcome = ended_as(record, glance.counts)
    if record.status is CrawlStatus.ENDED and outcome is not None:
        return f"Crawl {place.id}: {in_words(outcome, glance.counts)}."
    return f"Crawl {place.id} does not run: it was cut off, {several(glance.counts.open, 'URL')} still open."


_DOING: Final = {
    CrawlStatus.RUNNING: "is running",
    CrawlStatus.DRAINING: "is ending",
    CrawlStatus.ENDED: "has ended and is being wound up",
}


def _next(place: Place, glance: Glance) -> tuple[str, str]:
    if glance.process is not None:
        return "stop", f"{COMMAND} stop {naming(place)}"
    return going_on(place, glance.record, glance.record.outcome)


def _at_work(glance: Glance) -> Iterator[tuple[str, str]]:
    if glance.process is None:
        return
    yield "workers", ", ".join(f"{each.id} holds {several(each.load, 'URL')}" for each in glance.workers) or "none"
    for domain in waiting(glance.domains, glance.now)[:DOMAINS_SHOWN]:
        urls = several(domain.out + domain.parked, "URL")
        yield "waiting", f"{safe(domain.name, 50)} ({urls}): {why(domain, glance.now)}"
