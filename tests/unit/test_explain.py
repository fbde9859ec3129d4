"""`explain`: what is said of a URL, in every standing it may have; and that nothing that the web wrote moves a cursor."""

import json
import re
from dataclasses import replace
from pathlib import Path

import pytest
from msgspec.structs import replace as changed

from gossamer.ids import CrawlId, UrlId, WorkerId
from gossamer.messages import Url
from gossamer.outcomes import CrawlOutcome, Flag, Outcome
from gossamer.ports.blobs import BlobRef
from gossamer.records import CrawlStatus, DomainRecord, Facts, Robots, Rules, SiteRecord, UrlRecord
from gossamer.settings import Settings, load
from gossamer.states import State
from services.controller.crawls import Place
from services.controller.engines import deciding
from services.controller.explain import Crawl, Explanation, Known, Unusable, asking
from services.controller.explain.budgets import shares
from services.controller.explain.fields import explain_json
from services.controller.explain.spelling import left_out
from services.controller.explain.verdict import verdict
from services.controller.explain.words import explain_text
from tests.unit.a_crawl import NOW, a_domain, a_record, an_open_url, some_counts

DOCS = Path(__file__).parents[2] / "docs" / "explain.md"
URL = "https://a.com/x"
BLOB = BlobRef("segment", 100, 2_345, bytes(32))


def settings_of(**flags: str | list[str]) -> Settings:
    return load(flags, {}, None).settings


def dry(text: str = URL, **flags: str | list[str]) -> Explanation:
    explained = asking.dry(text, settings_of(**flags), NOW)
    assert isinstance(explained, Explanation)
    return explained


def a_crawl(outcome: CrawlOutcome | None = None, *, alive: bool = False, refused: dict[str, int] | None = None) -> Crawl:
    status = CrawlStatus.RUNNING if outcome is None else CrawlStatus.ENDED
    return Crawl(
        place=Place(CrawlId("c-1"), Path("crawls/c-1"), ("https://a.com/",)),
        record=a_record(status, outcome, Rules(max_pages=120, max_bytes=50_000_000)),
        counts=some_counts(refused=refused or {}),
        process=4711 if alive else None,
        alive=alive,
    )


def known(
    *, outcome: Outcome | None = None, state: State = State.CLOSED, reason: str = "", facts: Facts | None = None, **more: object
) -> UrlRecord:
    record = changed(an_open_url(URL), url=Url(UrlId(b"x" * 16), URL, "a.com", 1, 0, UrlId(b"p" * 16)))
    return changed(record, state=state, outcome=outcome, reason=reason, facts=facts, **more)


def seen(
    record: UrlRecord,
    crawl: Crawl | None = None,
    *,
    parents: tuple[UrlRecord, ...] = (),
    twin: UrlRecord | None = None,
    domain: DomainRecord | None = None,
) -> Explanation:
    """In a crawl's ledger."""
    about = Known(record=record, parents=parents, twin=twin, band=deciding.band(record.priority, Settings()))
    return replace(dry(), url=record.url, crawl=crawl or a_crawl(alive=True), known=about, domain=domain)


def page(url: str, *, depth: int = 0, hop: int = 0, parent: bytes | None = None) -> UrlRecord:
    return changed(an_open_url(url), url=Url(UrlId(bytes(16)), url, "a.com", depth, hop, None if parent is None else UrlId(parent)))


# --- What became of it ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("record", "said"),
    [
        (known(outcome=Outcome.DONE, facts=Facts(status=200, blob=BLOB)), "stored"),
        (known(outcome=Outcome.DONE, facts=Facts(flags=(Flag.NOINDEX,))), "done, but not stored: the page asks not to be kept"),
        (known(outcome=Outcome.GONE, reason="status 404"), "gone: status 404"),
        (known(outcome=Outcome.GONE), "gone: 404 or 410"),
        (known(outcome=Outcome.REDIRECT, reason="to https://b.com/"), "redirect: to https://b.com/"),
        (known(outcome=Outcome.BUDGET, reason="max_hosts: 5 hosts are known"), "over budget: max_hosts: 5 hosts are known"),
        (known(state=State.WAITING), "known, and no worker has it yet"),
        (known(state=State.FETCHING), "worker 0 is fetching it"),
    ],
)
def test_what_the_ledger_knows_is_said_in_a_sentence(record: UrlRecord, said: str) -> None:
    assert verdict(seen(record)) == said


def test_a_duplicate_names_its_twin() -> None:
    twin = page("https://a.com/first")
    record = known(outcome=Outcome.DUPLICATE, facts=Facts(twin=twin.url.id, similarity=0.934))

    explained = seen(record, twin=twin)

    assert verdict(explained) == "a duplicate of https://a.com/first"
    assert "\n  twin      93% alike: https://a.com/first\n" in explain_text(explained)


@pytest.mark.parametrize(
    ("state", "domain", "said"),
    [
        (State.ROUTED, a_domain(next_at=NOW + 0.4), "worker 0 is to fetch it; its domain: its delay of 1.0 s, 0.4 s more"),
        (
            State.PARKED,
            a_domain(not_before=NOW + 90, rests=2),
            "parked until its domain may be asked and has room; its domain: rests after failures (rest 2), 1 min 30 s more",
        ),
    ],
)
def test_what_an_open_url_waits_for_is_said(state: State, domain: DomainRecord, said: str) -> None:
    assert verdict(seen(known(state=state), domain=domain)) == said


@pytest.mark.parametrize(
    ("outcome", "said"),
    [
        (CrawlOutcome.PAGE_BUDGET, "still open: over budget, the crawl had its --max-pages (120) before its turn"),
        (CrawlOutcome.BYTE_BUDGET, "still open: over budget, the crawl was near its --max-bytes (50 MB) before its turn"),
        (CrawlOutcome.STOPPED, "still open: the crawl was stopped before its turn"),
        (CrawlOutcome.STALLED, "still open: the crawl ended as stalled before its turn"),
        (None, "still open: the crawl was killed before its turn"),
    ],
)
def test_what_is_open_when_nobody_works_on_it_is_said_with_how_to_go_on(outcome: CrawlOutcome | None, said: str) -> None:
    explained = seen(known(state=State.WAITING), a_crawl(outcome))

    assert verdict(explained) == said
    assert "\n  resume    python controller.py resume --crawl c-1" in explain_text(explained)


# --- What would become of it ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("explained", "said"),
    [
        (dry(), "would be followed, if robots.txt allows it"),
        (dry(scope="host"), "would be followed if it is in scope, if robots.txt allows it"),
        (dry(max_depth="2"), "would be followed, if it is at most 2 clicks from a seed (--max-depth), if robots.txt allows it"),
        (dry(seed=["https://a.com/x?utm_source=y"]), "would be fetched as a seed, if robots.txt allows it"),
        (dry(seed=["https://a.com/"], exclude=["/x"]), "would not be followed: --exclude /x is found in it"),
        (dry(seed=[URL], exclude=["/x"]), "would be fetched as a seed, if robots.txt allows it"),
        (dry("http://10.0.0.1/", seed=["http://10.0.0.1/"]), "would not be followed: 10.0.0.1 is private (10.0.0.0/8)"),
    ],
)
def test_without_a_crawl_the_rules_answer(explained: Explanation, said: str) -> None:
    assert verdict(explained) == said


def test_a_url_that_no_page_links_to_is_said_to_be_one() -> None:
    explained = replace(dry(), crawl=a_crawl(refused={"scope": 1_200}))

    assert verdict(explained) == (
        "never seen, no page links to it as far as is known; by the rules it would be followed, if robots.txt allows it"
    )
    assert "\n  refused   not known: it is none of the examples kept of 1,200 refused links\n" in explain_text(explained)


def test_a_url_that_robots_txt_would_forbid_is_said_to_be_so() -> None:
    ruling = deciding.ruling(URL, Settings(), None, Robots("User-agent: *\nDisallow: /x\n"))

    assert verdict(replace(dry(), ruling=ruling)) == "would be forbidden: robots.txt, line 2: Disallow: /x, in the group for *"


def test_a_refused_link_is_told_with_its_rule() -> None:
    by_shape = replace(dry(exclude=["/x"]), crawl=a_crawl(), refused="excluded")
    by_page = replace(dry(), crawl=a_crawl(), refused="nofollow", refused_means="its page asks for it")

    assert verdict(by_shape) == "never added, a link to it was refused (excluded): --exclude /x is found in it"
    assert verdict(by_page) == "never added, a link to it was refused (nofollow): its page asks for it"


def test_what_is_no_url_is_said_with_what_was_meant() -> None:
    no_url = asking.dry("a.com/x", Settings(), NOW)
    too_long = asking.dry("https://a.com/" + "x" * 3_000, Settings(), NOW)
    linked = Unusable("mailto:x@a.com", "not http or https", a_crawl(), seen=True)

    assert verdict(no_url) == "can't be asked for: not a URL; did you mean https://a.com/x?"
    assert verdict(too_long) == "can't be asked for: too long: 3,014 characters, of at most 2,048 (--max-url-length)"
    assert explain_text(no_url).startswith("a.com/x: can't be asked for: not a URL; did you mean https://a.com/x?\n")
    assert "a page links to it" in explain_text(linked)
    assert json.loads(explain_json(linked))["refused"] == "not http or https"


# --- Budgets of its host ----------------------------------------------------------------------------------------------


def on_a_host(*, begun: int, own: bool = False, rules: Rules | None = None) -> Explanation:
    crawl = a_crawl()
    record = changed(crawl.record, rules=rules or Rules(max_host_pages=5, max_domain_pages=9, max_hosts=3))
    record = changed(record, scope=frozenset({"a.com"} if own else ()))
    domain = changed(a_domain("a.com"), begun=begun)
    site = SiteRecord(name="a.com", hosts=3, begun=begun, own=own)
    return replace(dry(), crawl=replace(crawl, record=record), domain=domain, site=site)


def test_a_host_that_has_used_its_budget_up_is_said_to_have() -> None:
    over = on_a_host(begun=5)

    assert verdict(over).endswith("by the rules it would be over budget: max_host_pages: 5 pages of its host were asked for")
    assert verdict(on_a_host(begun=4)).endswith("by the rules it would be followed, if robots.txt allows it")
    line = "5 pages of its host asked for (at most 5), 5 of its registered domain (at most 9), which has 3 hosts (at most 3)"
    assert f"\n  budgets   {line}\n" in explain_text(over)


def test_a_seed_and_a_domain_that_is_lifted_have_no_budget_of_their_own() -> None:
    lifted = on_a_host(begun=50, rules=Rules(max_host_pages=5, lifted=("a.com",)))

    assert [share.most for share in shares(on_a_host(begun=50, own=True))] == [None, None, 3]
    assert [share.most for share in shares(lifted)] == [None, None, None]
    assert verdict(lifted).endswith("would be followed, if robots.txt allows it")


def test_a_new_host_of_a_crowded_domain_is_said_to_be_one_too_many() -> None:
    known = on_a_host(begun=1)

    said = "would be over budget: max_hosts: 3 hosts of its registered domain are known"
    assert verdict(replace(known, domain=None)).endswith(said)
    assert said not in verdict(known), "its host is one of the three"


def test_a_url_that_combines_parameters_may_be_one_too_many_of_its_path() -> None:
    found = on_a_host(begun=1, rules=Rules(max_variants=7, max_hosts=None))
    lifted = on_a_host(begun=1, rules=Rules(max_variants=7, lifted=("a.com",)))
    said = "unless 7 URLs of its path are known (--max-variants)"

    assert verdict(replace(found, identity="https://a.com/x?a=1&b=2")).endswith(f"if robots.txt allows it, {said}")
    assert said not in verdict(replace(found, identity="https://a.com/x?a=1"))
    assert said not in verdict(replace(lifted, identity="https://a.com/x?a=1&b=2"))


# --- Its spelling -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("https://a.com/x", []),
        ("https://a.com/x#top", ["the fragment"]),
        ("https://a.com/x?b=1&utm_source=y&fbclid=z", ["utm_source", "fbclid"]),
        ("https://a.com/x?b=1&a=2", ["the order of parameters"]),
        ("https://a.com/x?b=1&&a", ["an empty parameter", "the order of parameters"]),
        ("https://a.com./x", ["the dot at the host's end"]),
        ("https://a.com/x;jsessionid=12", ["a session id in the path"]),
        ("https://a.com/(S(abcdefghijklmnopqrstuvwx))/x", ["a session id in the path"]),
        ("https://a.com/x?%75tm_source=y", ["%75tm_source"]),
    ],
)
def test_what_the_identity_leaves_out_is_named(text: str, words: list[str]) -> None:
    assert left_out(text, text.partition("#")[0]) == words


# --- All of it --------------------------------------------------------------------------------------------------------


def a_stored_page() -> Explanation:
    facts = Facts(status=200, blob=BLOB, title="Ti\x1b[2Jtle", took_s=0.25, flags=(Flag.LINKS_CUT,))
    record = known(outcome=Outcome.DONE, facts=facts, deferrals=2, changed_at=NOW + 3.5, worker=None, priority=20)
    record = changed(record, url=Url(record.url.id, URL, "a.com", 2, 1, UrlId(b"p" * 16)))
    parents = (page("https://a.com/moved", depth=2, parent=b"q" * 16), page("https://a.com/list", depth=1, parent=b"r" * 16))
    return seen(record, a_crawl(CrawlOutcome.COMPLETE), parents=(*parents, page("https://a.com/")), domain=a_domain("a.com"))


def test_all_that_is_known_stands_in_lines_for_people() -> None:
    lines = explain_text(a_stored_page()).splitlines()

    assert lines[0] == f"{URL}: stored."
    assert lines[2] == f"  id        {(b'x' * 16).hex()}"
    assert lines[3:15] == [
        "  state     closed as done, found 2025-11-18 14:26:40 UTC, closed 3.5 s later",
        "  outcome   fetched, parsed and recorded; stored unless the page forbids it (noindex)",
        "  answer    status 200, in 250 ms",
        "  title     Ti\\x1b[2Jtle",
        "  flags     links_cut",
        "  stored    2,345 bytes at 100 in segment segment",
        "  attempts  put off 2 times, no worker died of it",
        "  depth     2 clicks from a seed, 1 redirect on",
        "  moved by  https://a.com/moved",
        "  linked by https://a.com/list",
        "  linked by https://a.com/, a seed",
        "  address   accepted: port 443 is not refused; the name's addresses are judged when it is asked for",
    ]
    assert "  priority  20 (0 is first, 100 last), in band 2 of 10: 20 to 29" in lines


def test_a_long_way_to_the_seed_is_cut() -> None:
    parents = tuple(page(f"https://a.com/{n}", depth=20 - n, parent=b"p" * 16) for n in range(asking.PARENTS_MAX))

    text = explain_text(seen(known(outcome=Outcome.GONE), parents=parents))

    assert "\n  linked by https://a.com/9\n            and on: that one is 11 clicks from a seed\n" in text


def test_a_suspect_and_a_domain_that_was_given_up_are_told() -> None:
    record = known(state=State.WAITING, suspect=True, deaths=1)

    text = explain_text(seen(record, domain=a_domain("a.com", closed=Outcome.TIMEOUT)))

    assert "its worker died with it alone 1 time: it is fetched alone next\n" in text
    assert "; given up as timeout\n" in text


def test_what_the_web_wrote_never_reaches_the_terminal_raw() -> None:
    nasty = "\x1b[31m\u202e\n"
    record = known(outcome=Outcome.GONE, reason=nasty, facts=Facts(title=nasty, blob=replace(BLOB, segment=nasty)))

    text = explain_text(replace(seen(record), refused=nasty, text=nasty, left_out=[nasty]))

    assert all(line.isprintable() for line in text.splitlines())


def test_every_key_of_the_object_is_documented() -> None:
    fields = json.loads(explain_json(a_stored_page()))
    names = [*fields, *fields["known"], *fields["domain"]]

    assert re.findall(r"^\| `(\w+)` \|", DOCS.read_text(encoding="utf-8"), re.MULTILINE) == names
    assert fields["known"]["stored"] == {"segment": "segment", "offset": 100, "length": 2_345, "sha256": "00" * 32}
    assert fields["known"]["parents"] == ["https://a.com/moved", "https://a.com/list", "https://a.com/"]
    assert fields["known"]["worker"] is None
    assert WorkerId(fields["domain"]["owner"]) == 0
