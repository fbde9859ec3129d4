"""A small site with one of everything: each URL ends as it should, and the modules see what they should."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.system.web import FREELY, run, small_site

RAISES = """
from gossamer import Module, Page

class Raises(Module):
    def visit(self, page: Page) -> None:
        raise ValueError(page.url)
"""


@pytest.fixture
def site() -> Iterator[str]:
    with small_site() as address:
        yield address


def paths(file: Path) -> list[str]:
    return sorted(json.loads(line)["url"].split("/", 3)[3] for line in file.read_text().splitlines())


def test_every_url_ends_in_its_own_way(site: str, tmp_path: Path) -> None:
    ran = run(tmp_path, "--seed", site, "--scope", "host", "--module", "jsonl:path=pages.jsonl", *FREELY)

    assert (ran.code, ran.report["outcome"]) == (0, "complete")
    assert ran.report["outcomes"] == {
        "done": 4,  # home, /x under its first spelling, /noindex, and what it links to
        "redirect": 5,
        "redirect_limit": 1,
        "duplicate": 1,
        "robots_denied": 1,
        "gone": 1,
        "too_large": 1,
        "wrong_type": 1,
        "no_content": 1,
    }
    assert ran.report["refused"] == {"scope": 1}
    assert ran.report["pages"] == 3
    assert paths(tmp_path / "pages.jsonl") == ["", "from-noindex", "x?utm_source=a"]


def test_a_module_that_raises_costs_neither_page_nor_links(site: str, tmp_path: Path) -> None:
    (tmp_path / "raises.py").write_text(RAISES)

    ran = run(tmp_path, "--seed", site, "--module", "./raises.py", "--module", "jsonl:path=pages.jsonl", "--scope", "host", *FREELY)

    assert (ran.code, ran.report["outcome"], ran.report["pages"]) == (0, "complete", 3)
    assert len(paths(tmp_path / "pages.jsonl")) == 3
    assert "3 failures" in ran.said


def test_include_exclude_and_depth_bound_what_is_followed(site: str, tmp_path: Path) -> None:
    ran = run(tmp_path, "--seed", site, "--scope", "host", "--include", "/x|/noindex", "--exclude", "noindex$", *FREELY)

    assert ran.report["outcomes"] == {"done": 2}
    assert run(tmp_path, "--seed", site, "--max-depth", "0", *FREELY).report["outcomes"] == {"done": 1}
