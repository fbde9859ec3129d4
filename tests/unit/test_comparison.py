"""The comparison after a crash finds each kind of loss: one that can't fail would be worth nothing."""

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import pytest

from gossamer.ids import UrlId
from gossamer.outcomes import CrawlOutcome, Outcome
from gossamer.urls import identity, url_id
from tests.chaos.comparison import Kind, Left, Line, UrlLeft, WebSaw, differences, read_output, requests_again


def an_id(name: str) -> UrlId:
    return UrlId(blake2b(name.encode(), digest_size=16).digest())


def url(
    name: str, outcome: Outcome | None = Outcome.DONE, *, stored: bool = False, twin: str | None = None
) -> tuple[UrlId, UrlLeft]:
    return an_id(name), UrlLeft(f"http://a.test/{name}", outcome, stored, None if twin is None else an_id(twin))


def line(name: str, *links: str, content: str | None = None) -> Line:
    return Line(an_id(name), content or f"content of {name}", frozenset(map(an_id, links)))


#: Home leads to a page, its copy, a dead link, and one that robots.txt forbids.
UNDISTURBED = Left(
    outcome=CrawlOutcome.COMPLETE,
    urls=dict(
        (
            url("home", stored=True),
            url("page", stored=True),
            url("copy", Outcome.DUPLICATE, twin="page"),
            url("dead", Outcome.GONE),
            url("secret", Outcome.ROBOTS_DENIED),
        )
    ),
    pages=[an_id("home"), an_id("page")],
    stored=2,
    lines=[line("home", "page", "copy", "dead", "secret", "picture, which is never followed"), line("page", "home")],
    web=WebSaw(
        asked={"http://a.test/robots.txt": 1, "http://a.test/home": 1, "http://a.test/page": 1, "http://a.test/copy": 1},
        least_gap_s={"a.test": 1.0},
        most_in_flight={"a.test": 1},
    ),
)
U = UNDISTURBED


def kinds(seen: Left, *, may_repeat: int = 0, max_pages: int | None = None) -> set[Kind]:
    found = differences(U, seen, delay_s=1.0, may_repeat=may_repeat, max_pages=max_pages)
    return {difference.kind for difference in found}


def without(*names: str) -> dict[UrlId, UrlLeft]:
    return {id: left for id, left in U.urls.items() if id not in map(an_id, names)}


def instead(*changed: tuple[UrlId, UrlLeft]) -> dict[UrlId, UrlLeft]:
    return {**U.urls, **dict(changed)}


def web(**changed: object) -> WebSaw:
    change: Callable[..., WebSaw] = replace
    return change(U.web, **changed)


def test_a_crawl_does_not_differ_from_itself() -> None:
    assert differences(U, U, delay_s=1.0, may_repeat=0) == []


@pytest.mark.parametrize(
    ("kind", "seen"),
    [
        pytest.param(Kind.LOST, replace(U, urls=without("dead")), id="a URL is not known"),
        pytest.param(Kind.LINK_LOST, replace(U, urls=without("secret")), id="a link of a stored page is not known"),
        pytest.param(Kind.LOST, replace(U, urls=instead(url("page", Outcome.DUPLICATE))), id="a content is nowhere stored"),
        pytest.param(Kind.LOST, replace(U, web=web(missed=frozenset({"http://a.test/other"}))), id="a page was never asked for"),
        pytest.param(Kind.DOUBLED, replace(U, pages=[*U.pages, an_id("page")]), id="a page is listed twice"),
        pytest.param(Kind.DOUBLED, replace(U, urls=instead(url("copy", stored=True))), id="a content is stored under two URLs"),
        pytest.param(Kind.OTHER_OUTCOME, replace(U, urls=instead(url("dead", Outcome.TIMEOUT))), id="a URL ended otherwise"),
        pytest.param(Kind.OTHER_OUTCOME, replace(U, urls=instead(url("home"))), id="a page is done, but not stored"),
        pytest.param(Kind.OTHER_OUTCOME, replace(U, urls=instead(url("home", Outcome.DUPLICATE))), id="a copy of nothing"),
        pytest.param(Kind.OTHER_OUTCOME, replace(U, urls=instead(url("strange"))), id="a URL from nowhere"),
        pytest.param(Kind.OTHER_OUTCOME, replace(U, outcome=CrawlOutcome.STALLED), id="the crawl ended otherwise"),
        pytest.param(Kind.BUDGET, replace(U, stored=3), id="pages are miscounted"),
        pytest.param(Kind.BUDGET, replace(U, pages=U.pages[:1], stored=1), id="fewer pages"),
        pytest.param(Kind.IMPOLITE, replace(U, web=web(least_gap_s={"a.test": 0.5})), id="too soon"),
        pytest.param(Kind.IMPOLITE, replace(U, web=web(most_in_flight={"a.test": 2})), id="two at a time"),
        pytest.param(Kind.IMPOLITE, replace(U, web=web(forbidden=1)), id="robots.txt was not heeded"),
        pytest.param(Kind.REPEATED, replace(U, web=web(asked={"http://a.test/home": 2})), id="a page was fetched again"),
        pytest.param(Kind.OUTSTANDING, replace(U, urls=instead(url("dead", None))), id="a URL is open"),
        pytest.param(Kind.OUTSTANDING, replace(U, outstanding=["worker 0 holds 3 URLs"]), id="a worker holds something"),
        pytest.param(Kind.NO_TTL, replace(U, without_ttl=["gossamer:{x}:crawl"]), id="a key stays for ever"),
        pytest.param(Kind.MISSING_BLOB, replace(U, missing_blobs=["http://a.test/home"]), id="a reference leads nowhere"),
        pytest.param(Kind.BROKEN, replace(U, broken=["I5 a.test is with workers [0, 1]"]), id="an invariant"),
        pytest.param(Kind.LINE, replace(U, lines=U.lines[:1]), id="a line is lost"),
        pytest.param(Kind.LINE, replace(U, lines=[*U.lines, U.lines[0]]), id="a line is doubled"),
        pytest.param(Kind.LINE, replace(U, halved=['{"id": "00']), id="a line is halved"),
        pytest.param(Kind.LINE, replace(U, lines=[*U.lines, line("dead")]), id="a line of a page that is not stored"),
        pytest.param(Kind.LINE, replace(U, lines=[U.lines[0], line("page", "home", content="x")]), id="another content"),
        pytest.param(Kind.LINE, replace(U, lines=[U.lines[0], line("page")]), id="a link is not in its line"),
    ],
)
def test_each_kind_of_loss_is_found(kind: Kind, seen: Left) -> None:
    assert kind in kinds(seen)


def test_which_of_two_copies_is_stored_may_differ() -> None:
    seen = replace(
        U,
        urls=instead(url("copy", stored=True), url("page", Outcome.DUPLICATE, twin="copy")),
        pages=[an_id("home"), an_id("copy")],
        lines=[U.lines[0], line("copy", "home", content="content of page")],
    )

    assert kinds(seen) == set()


def test_what_was_in_hand_when_a_worker_died_may_be_fetched_again_and_no_more() -> None:
    seen = replace(U, web=web(asked={**U.web.asked, "http://a.test/home": 2, "http://a.test/robots.txt": 2}))

    assert requests_again(U, seen) == 2
    assert kinds(seen, may_repeat=2) == set()
    assert kinds(seen, may_repeat=1) == {Kind.REPEATED}


def test_a_page_budget_leaves_urls_open_and_stores_exactly_so_many() -> None:
    seen = replace(
        U,
        outcome=CrawlOutcome.PAGE_BUDGET,
        urls={**without("copy"), **dict((url("copy", None), url("page", None)))},
        pages=[an_id("home")],
        stored=1,
        lines=U.lines[:1],
    )

    assert kinds(seen, max_pages=1) == set()
    assert kinds(seen, max_pages=2) == {Kind.BUDGET}
    assert kinds(replace(seen, urls={id: left for id, left in seen.urls.items() if id != an_id("dead")}), max_pages=1) == {
        Kind.LINK_LOST
    }
    assert kinds(replace(seen, outcome=CrawlOutcome.COMPLETE), max_pages=1) == {Kind.OTHER_OUTCOME}


LINK = "http://a.test/b?y=1&x=2"
READ = Line(an_id("home"), "abc", frozenset({url_id(identity(LINK))}))


def test_json_lines_are_read_with_what_is_none(tmp_path: Path) -> None:
    whole = json.dumps({"id": an_id("home").hex(), "url": "http://a.test/", "sha256": "abc", "links": [LINK]})
    (tmp_path / "pages.jsonl").write_text(f"{whole}\n{whole[:20]}\n{whole}")

    assert read_output(tmp_path / "pages.jsonl") == ([READ], [f"{whole[:20]}\n", whole])


def test_a_table_is_read_with_what_is_no_row(tmp_path: Path) -> None:
    row = f"{an_id('home').hex()},abc,{LINK}"
    (tmp_path / "pages.csv").write_text(f"id,sha256,links\r\n{row}\r\n{row[:10]}\r\n")

    lines, halved = read_output(tmp_path / "pages.csv")

    assert (lines, len(halved)) == ([READ], 1)


def test_a_file_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    assert read_output(tmp_path / "pages.jsonl") == ([], [])
