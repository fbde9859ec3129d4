"""`explain` after real crawls of a small site, on both engines: what became of each kind of URL, and why."""

import json
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from gossamer.budgets import Budget
from tests.system.small_site import NEIGHBOUR
from tests.system.stack import running_stack
from tests.system.web import FREELY, PATIENCE_S, run, small_site, start

OVER = Budget.HOST_PAGES.used_up(1)


@dataclass(frozen=True)
class Crawled:
    """A site that was crawled, and a folder with crawls of it: the whole, one that ended after its first page, and one that may
    ask for one page of each other host.
    """

    site: str
    folder: Path
    environ: Mapping[str, str]
    refused: Mapping[str, int]  #: as the report of the whole counts them

    def explained(self, path: str, crawl: str = "whole") -> dict[str, Any]:
        """The object; the sentence for people stands in it too."""
        answer: dict[str, Any] = json.loads(self.said(path, "--state", crawl, "--json"))
        return answer

    def verdict(self, path: str) -> str:
        return str(self.explained(path)["verdict"])

    def said(self, path: str, *words: str) -> str:
        url = path if "://" in path else self.site + path
        process = start(self.folder, "explain", url, *words, environ=self.environ)
        said, _ = process.communicate(timeout=PATIENCE_S)
        assert process.returncode == 0, said
        return said


@pytest.fixture(scope="module", params=["embedded", "external"])
def crawled(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Crawled]:
    with ExitStack() as opened:
        folder, site = tmp_path_factory.mktemp(request.param), opened.enter_context(small_site())
        environ = opened.enter_context(running_stack()).environ if request.param == "external" else {}
        common = ("--engine", request.param, "--seed", site, "--scope", "host", "--prioritizer", "breadth", *FREELY)
        whole = run(folder, *common, "--state", "whole", environ=environ)
        assert whole.report["outcome"] == "complete", whole.said
        cut = run(folder, *common, "--state", "cut", "--max-pages", "1", environ=environ)
        assert cut.report["outcome"] == "page_budget", cut.said
        trap = run(
            folder,
            *("--engine", request.param, "--seed", f"{site}/neighbour", "--state", "trap", "--max-host-pages", "1", *FREELY),
            environ=environ,
        )
        assert trap.report["outcomes"] == {"budget": 2, "done": 2}, trap.said
        assert trap.report["budgets"] == {OVER: 2}
        assert "\n  budgets   URLs left out: max_host_pages 2\n" in trap.said
        yield Crawled(site, folder, environ, whole.report["refused"])


def test_a_stored_page_is_explained_from_its_seed_to_its_segment(crawled: Crawled) -> None:
    answer = crawled.explained("/x?utm_campaign=z#part")

    assert answer["verdict"] == "stored"
    assert answer["url"] == f"{crawled.site}/x?utm_source=a", "as it was found"
    assert (answer["identity"], answer["left_out"]) == (f"{crawled.site}/x", ["the fragment", "utm_campaign", "utm_source"])
    known = answer["known"]
    assert (known["state"], known["outcome"], known["status"], known["title"]) == ("closed", "done", 200, "/x")
    assert known["stored"]["length"] > 0
    assert (known["depth"], known["hops"], known["parents"]) == (1, 0, [f"{crawled.site}/"])
    assert known["band"] == {"number": 1, "of": 10, "first": 10, "last": 19}
    assert answer["scope"] == {"passes": True, "why": "127.0.3.4 is a seed's host (--scope host)"}
    assert answer["robots"] == {"passes": True, "why": "no line is about it, in the group for *"}
    assert answer["domain"]["stored"] == 3


def test_a_forbidden_page_is_explained_by_the_line_that_forbids_it(crawled: Crawled) -> None:
    answer = crawled.explained("/secret")

    assert answer["verdict"] == "robots_denied: robots.txt, line 2: Disallow: /secret"
    assert answer["robots"]["why"] == "robots.txt, line 2: Disallow: /secret, in the group for *"


def test_a_duplicate_is_explained_by_its_twin(crawled: Crawled) -> None:
    answer = crawled.explained("/twin")

    assert answer["verdict"] == f"a duplicate of {crawled.site}/"
    assert (answer["known"]["twin"], answer["known"]["similarity"]) == (f"{crawled.site}/", 1.0)


def test_redirects_are_explained_forwards_and_back_to_the_seed(crawled: Crawled) -> None:
    answer = crawled.explained("/loop2")

    assert answer["verdict"] == f"redirect: to {crawled.site}/loop3"
    assert answer["known"]["hops"] == 2
    assert answer["known"]["parents"] == [f"{crawled.site}{path}" for path in ("/loop1", "/loop0", "/")]


def test_a_link_out_of_scope_is_explained_though_the_ledger_never_had_it(crawled: Crawled) -> None:
    answer = crawled.explained("http://127.0.3.9/")

    why = "127.0.3.9 is not a seed's host, as is 127.0.3.4 (--scope host)"
    assert answer["verdict"] == f"never added, a link to it was refused (scope): {why}"
    assert (answer["known"], answer["refused"]) == (None, "scope")
    assert crawled.refused == {"scope": 1}, "and it is counted"


def test_a_page_that_the_budget_left_is_explained_with_how_to_go_on(crawled: Crawled) -> None:
    answer = crawled.explained("/gone", "cut")

    assert answer["verdict"] == "still open: over budget, the crawl had its --max-pages (1) before its turn"
    assert answer["known"]["outcome"] is None
    assert "\n  resume    python controller.py resume --state cut --max-pages 2 " in crawled.said("/gone", "--state", "cut")


def test_pages_beyond_the_budget_of_their_host_are_explained_by_the_rule(crawled: Crawled) -> None:
    neighbour = crawled.site.replace("127.0.3.4", NEIGHBOUR)
    answers = [crawled.explained(f"{neighbour}/n{number}", "trap") for number in range(3)]

    assert sorted(answer["verdict"] for answer in answers) == [f"over budget: {OVER}"] * 2 + ["stored"]
    assert answers[0]["budgets"][0] == {"rule": "host_pages", "count": 1, "most": 1}
    assert crawled.explained(f"{neighbour}/n9", "trap")["verdict"].endswith(f"by the rules it would be over budget: {OVER}")


def test_a_url_that_nobody_links_to_is_explained_by_the_rules(crawled: Crawled) -> None:
    never = "never seen, no page links to it as far as is known; by the rules it would "
    assert crawled.verdict("/nowhere") == never + "be followed"
    assert crawled.verdict("/secret/place") == never + "be forbidden: robots.txt, line 2: Disallow: /secret, in the group for *"
    assert crawled.verdict("/nowhere.zip") == never + "not be followed: a file of type .zip is no page"
