"""The report: one JSON object for programs that start crawls. docs/report.md tells what each key means; a test compares.

Written at every end of a run that began, also one that failed, so that whoever waits for it always finds one.
Knows: counts. Must not know: who reads it, or how the run was shown.
"""

import json
from collections.abc import Mapping
from pathlib import Path

import msgspec

from gossamer.ids import CrawlId
from gossamer.outcomes import CrawlOutcome
from gossamer.records import Counts
from services.controller.whole import write_whole


class Report(msgspec.Struct, frozen=True, kw_only=True):
    """Its fields are the report's keys."""

    crawl: CrawlId
    outcome: CrawlOutcome
    pages: int
    bytes: int
    bytes_charged: int
    requests: int
    workers: int
    domains: int
    seconds: float
    outcomes: Mapping[str, int]
    budgets: Mapping[str, int]
    refused: Mapping[str, int]


def report_of(crawl: CrawlId, outcome: CrawlOutcome, counts: Counts | None, *, workers: int, seconds: float) -> Report:
    """Without counts, the crawl failed before there were any."""
    return Report(
        crawl=crawl,
        outcome=outcome,
        pages=counts.stored if counts else 0,
        bytes=counts.used_bytes if counts else 0,
        bytes_charged=counts.charged_bytes if counts else 0,
        requests=counts.requests if counts else 0,
        workers=workers,
        domains=counts.domains if counts else 0,
        seconds=round(seconds, 3),
        outcomes=most_first({str(outcome): count for outcome, count in counts.outcomes.items()}) if counts else {},
        budgets=most_first(counts.budgets) if counts else {},
        refused=most_first(counts.refused) if counts else {},
    )


def write(report: Report, path: Path) -> None:
    """Raises OSError."""
    write_whole(path, json.dumps(msgspec.structs.asdict(report), indent=1) + "\n")


def most_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(counts.items(), key=lambda each: (-each[1], each[0])))
