"""What the rules say of a URL: each kind for itself, with the rule that decides and its numbers."""

import pytest

from gossamer.records import Robots
from gossamer.settings import Settings, load
from services.controller.engines.deciding import Band, Check, band, refusal_meaning, ruling, seed_priority, url_of

URL = "https://www.site.com/a/b?x=1&y=2"
SEEDS = ["www.site.com"]


def given(**flags: str) -> Settings:
    return load(flags, {}, None).settings


@pytest.mark.parametrize(
    ("url", "flags", "passes", "why"),
    [
        pytest.param(
            URL, {}, True, "2 path components of at most 10, 2 query parameters, 32 characters of at most 2,048", id="fits"
        ),
        pytest.param("https://site.com/a.JPG", {}, False, "a file of type .JPG is no page", id="file type"),
        pytest.param(URL, {"max_path_components": "1"}, False, "2 path components of at most 1 (--max-path-components)", id="path"),
        pytest.param(URL, {"max_url_params": "1"}, False, "2 query parameters of at most 1 (--max-url-params)", id="parameters"),
        pytest.param("https://site.com/a/a/a/a/a", {}, False, "repeated path segments", id="repeats"),
        pytest.param(URL, {"include": "/c"}, False, "--include /c is not found in it", id="not included"),
        pytest.param(URL, {"include": "/a", "exclude": "y=[0-9]"}, False, "--exclude y=[0-9] is found in it", id="excluded"),
    ],
)
def test_the_shape_is_judged_by_the_rule_that_is_named(url: str, flags: dict[str, str], passes: bool, why: str) -> None:
    settings = load({key: [value] if key in ("include", "exclude") else value for key, value in flags.items()}, {}, None).settings

    assert ruling(url, settings, SEEDS, None).shape == Check(passes, why)


@pytest.mark.parametrize(
    ("scope", "url", "hosts", "expected"),
    [
        ("web", "http://other.org/", SEEDS, Check(True, "links are followed anywhere (--scope web)")),
        ("host", URL, SEEDS, Check(True, "www.site.com is a seed's host (--scope host)")),
        ("host", "http://site.com./", SEEDS, Check(False, "site.com is not a seed's host, as is www.site.com (--scope host)")),
        ("domain", "http://site.com./", SEEDS, Check(True, "site.com is a seed's domain (--scope domain)")),
        (
            "domain",
            "http://other.org/",
            ["b.b.com", "c.c.com", "a.a.com", "d.d.com"],
            Check(False, "other.org is not a seed's domain, as is a.com, b.com, c.com and 1 more (--scope domain)"),
        ),
        ("host", URL, None, Check(None, "no seed is given (--scope host)")),
    ],
)
def test_the_scope_names_what_is_in_it(scope: str, url: str, hosts: list[str] | None, expected: Check) -> None:
    assert ruling(url, given(scope=scope), hosts, None).scope == expected


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://10.1.2.3/", Check(False, "10.1.2.3 is private (10.0.0.0/8)")),
        ("http://site.com:6379/", Check(False, "port 6379 is Redis")),
        ("http://8.8.8.8:8080/", Check(True, "8.8.8.8 may be dialled, on port 8080")),
        (URL, Check(True, "port 443 is not refused; the name's addresses are judged when it is asked for")),
    ],
)
def test_addresses_and_ports_are_judged_without_a_look_up(url: str, expected: Check) -> None:
    assert ruling(url, given(), SEEDS, None).address == expected


ROBOTS = "User-agent: *\nDisallow: /a\nAllow: /a/b\nCrawl-delay: 3\n"


@pytest.mark.parametrize(
    ("robots", "path", "expected"),
    [
        (None, "/a", Check(None, "https://site.com/robots.txt is asked for before anything else of its site")),
        (Robots(ROBOTS), "/a", Check(False, "robots.txt, line 2: Disallow: /a, in the group for *")),
        (Robots(ROBOTS), "/a/b", Check(True, "line 3: Allow: /a/b, in the group for *")),
        (Robots(ROBOTS), "/c", Check(True, "no line is about it, in the group for *")),
        (Robots("User-agent: gossamer\nDisallow:\n"), "/c", Check(True, "no line is about it, in the group for gossamer")),
        (
            Robots("User-agent: other\nDisallow: /\n"),
            "/c",
            Check(True, "https://site.com/robots.txt has no rules for us, or is not there"),
        ),
        (Robots(None, "none"), "/c", Check(True, "https://site.com/robots.txt has no rules for us, or is not there")),
        (Robots(None, "dns_failed: no such name"), "/c", Check(False, "no such name")),
        (
            Robots(None, "moved: https://b.com/robots.txt#robots-1-0"),
            "/c",
            Check(None, "https://site.com/robots.txt is asked for before anything else of its site"),
        ),
        (
            Robots("User-agent: *\nCrawl-delay: 900\n"),
            "/c",
            Check(False, "robots.txt asks for a delay of 900 s, and 300 s are accepted, in the group for *"),
        ),
    ],
)
def test_the_line_of_robots_txt_is_named_with_its_group(robots: Robots | None, path: str, expected: Check) -> None:
    assert ruling(f"https://site.com{path}", given(), SEEDS, robots).robots == expected


def test_the_delay_that_robots_txt_asks_for_is_told() -> None:
    assert ruling(URL, given(), SEEDS, Robots(ROBOTS)).crawl_delay_s == 3
    assert ruling(URL, given(), SEEDS, None).crawl_delay_s is None


def test_a_link_is_refused_by_the_first_rule_that_refuses_it() -> None:
    refused = ruling("http://10.0.0.1/a.jpg", given(scope="host"), SEEDS, None)

    assert refused.of_a_link == refused.address
    assert ruling("http://other.org/a.jpg", given(scope="host"), SEEDS, None).of_a_link == Check(
        False, "other.org is not a seed's host, as is www.site.com (--scope host)"
    )
    assert ruling(URL, given(), SEEDS, Robots(ROBOTS)).of_a_link is None, "robots.txt is the worker's to ask"


def test_bands_are_those_of_the_settings() -> None:
    assert band(0, given()) == Band(0, 10, 0, 9)
    assert band(100, given()) == Band(9, 10, 90, 100)
    assert band(50, given(bands="3")) == Band(1, 3, 34, 66)
    assert seed_priority(url_of(URL, given()), given()) == 0
    assert seed_priority(url_of(URL, given()), given(prioritizer="constant")) == 50


def test_the_domain_is_the_unit_of_politeness() -> None:
    assert url_of(URL, given()).domain == "www.site.com"
    assert url_of(URL, given(politeness="domain")).domain == "site.com"


def test_a_refusal_that_the_url_does_not_tell_is_put_into_words() -> None:
    assert refusal_meaning("depth", given(max_depth="2")) == (
        "the page that links to it is 2 clicks from a seed, as deep as --max-depth goes"
    )
    assert refusal_meaning("nofollow", given()).startswith("the link, or the page")
    assert refusal_meaning("scope", given()) == ""
