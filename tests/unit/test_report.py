"""The report: whole, at its place, and as docs/report.md says."""

import json
import re
from pathlib import Path

import pytest
from msgspec.structs import fields

from gossamer.ids import CrawlId
from gossamer.outcomes import CrawlOutcome, Outcome
from services.controller.report import Report, report_of, write
from services.controller.whole import write_whole
from tests.unit.a_crawl import some_counts

DOCS = Path(__file__).parents[2] / "docs" / "report.md"


def a_report() -> Report:
    counts = some_counts(
        outcomes={Outcome.GONE: 1, Outcome.DONE: 7}, refused={"scheme": 2, "scope": 9}, charged_bytes=500, budgets={"max_hosts": 3}
    )
    return report_of(CrawlId("c"), CrawlOutcome.PAGE_BUDGET, counts, workers=4, seconds=1.23456)


def test_the_report_is_one_object_with_the_crawl_in_numbers(tmp_path: Path) -> None:
    file = tmp_path / "report.json"

    write(a_report(), file)

    assert json.loads(file.read_text(encoding="utf-8")) == {
        "crawl": "c",
        "outcome": "page_budget",
        "pages": 120,
        "bytes": 5_100_000,
        "bytes_charged": 500,
        "requests": 150,
        "workers": 4,
        "domains": 7,
        "seconds": 1.235,
        "outcomes": {"done": 7, "gone": 1},
        "budgets": {"max_hosts": 3},
        "refused": {"scope": 9, "scheme": 2},
    }
    assert list(tmp_path.iterdir()) == [file], "nothing temporary is left"


def test_a_crawl_that_failed_before_it_counted_has_a_report_too() -> None:
    report = report_of(CrawlId("c"), CrawlOutcome.FAILED, None, workers=4, seconds=0.0)

    assert (report.outcome, report.pages, report.bytes, report.outcomes) == ("failed", 0, 0, {})


def test_every_key_is_documented() -> None:
    documented = re.findall(r"^\| `(\w+)` \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE)

    assert documented == [field.name for field in fields(Report)]


def test_every_outcome_of_a_crawl_is_documented() -> None:
    text = DOCS.read_text(encoding="utf-8")

    assert all(f"`{outcome}`" in text for outcome in CrawlOutcome)


def test_a_file_that_can_not_be_replaced_stays_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "report.json"
    file.write_text("old", encoding="utf-8")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_whole(file, "new")

    assert file.read_text(encoding="utf-8") == "old"
    assert list(tmp_path.iterdir()) == [file]
