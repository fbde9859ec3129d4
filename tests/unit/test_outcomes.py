"""Outcomes: docs/outcomes.md and the enums say the same, in the same words and order."""

import inspect
import re
from enum import StrEnum
from pathlib import Path

import pytest

from gossamer import urls
from gossamer.budgets import Budget
from gossamer.outcomes import CrawlOutcome, Flag, Outcome
from services.worker import links

DOCS = (Path(__file__).parents[2] / "docs" / "outcomes.md").read_text(encoding="utf-8")


def rows(heading: str) -> list[tuple[str, str]]:
    """Name and meaning in each row of the table under a heading."""
    section = DOCS.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return re.findall(r"^\| `(\w+)` \| (.+) \|$", section, re.M)


def commented(enum: type[StrEnum]) -> list[tuple[str, str]]:
    """Value and `#:` comment of each member, from the source."""
    return re.findall(r'^    [A-Z_]+ = "(\w+)"  #: (.+)$', inspect.getsource(enum), re.M)


def test_the_docs_have_every_outcome_with_its_meaning() -> None:
    assert rows("How a URL ends") == [(outcome.value, outcome.meaning) for outcome in Outcome]


@pytest.mark.parametrize(("heading", "enum"), [("Flags of a page that is done", Flag), ("How a crawl ends", CrawlOutcome)])
def test_the_docs_have_every_member_with_its_comment(heading: str, enum: type[StrEnum]) -> None:
    assert rows(heading) == commented(enum)
    assert [value for value, _ in commented(enum)] == [member.value for member in enum]


@pytest.mark.parametrize("outcome", Outcome)
def test_an_outcome_is_its_name(outcome: Outcome) -> None:
    assert outcome == outcome.name.lower()
    assert Outcome(outcome.value) is outcome


def test_the_docs_have_every_reason_for_which_a_link_is_refused() -> None:
    table = DOCS.partition("\n## Why a link is not followed\n")[2].partition("\n## ")[0]
    documented = set(re.findall(r"`([^`]+)`", "".join(re.findall(r"^\| (`.+?) \| ", table, re.M))))

    by_spelling = set(re.findall(r'raise UrlError\("(.+?)"\)', inspect.getsource(urls)))
    by_rule = set(re.findall(r'^[A-Z_]+: Final = "(.+)"$', inspect.getsource(links), re.M))
    by_budget = {budget.partition(":")[0] for budget in Budget}
    assert documented == by_spelling | by_rule | by_budget
