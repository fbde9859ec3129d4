"""Kinds of values: the spellings that are taken, and those that are not."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer import kinds
from gossamer.kinds import Kind
from gossamer.settings import Scope

KINDS: list[Kind[Any]] = [
    kinds.text(),
    kinds.header("a text", "TEXT"),
    kinds.count(),
    kinds.size(),
    kinds.duration(),
    kinds.share(),
    kinds.number(),
    kinds.whole(),
    kinds.yes_or_no(),
    kinds.switch(),
    kinds.choice(Scope),
    kinds.regex(),
    kinds.network(),
    kinds.host(),
    kinds.path(),
    kinds.server("redis", example="redis://host"),
    kinds.optional(kinds.count()),
]


@given(st.sampled_from(KINDS), st.text() | st.from_regex(r"[0-9._eE+-]{1,8}[a-zA-Z]{0,3}"))
def test_any_text_is_a_value_or_a_value_error(kind: Kind[Any], text: str) -> None:
    try:
        value = kind.parse(text)
    except ValueError:
        return

    assert kind.parse(kind.show(value)) == value


@given(st.integers(0, kinds.COUNT_MAX))
def test_sizes_and_counts_are_shown_as_they_are_written(number: int) -> None:
    assert kinds.size().parse(kinds.size().show(number)) == number
    assert kinds.count().parse(kinds.count().show(number)) == number


@given(st.floats(0, kinds.DURATION_MAX_S) | st.integers(0, 1000).map(lambda minutes: minutes * 60.0))
def test_durations_are_shown_as_they_are_written(seconds: float) -> None:
    assert kinds.duration().parse(kinds.duration().show(seconds)) == seconds


@pytest.mark.parametrize(
    ("text", "number"),
    [
        ("0", 0),
        ("4096", 4096),
        ("500KB", 500_000),
        ("500 kb", 500_000),
        ("50MB", 50_000_000),
        ("1KiB", 1024),
        ("2MiB", 2 * 2**20),
        ("1GB", 10**9),
        ("0.3MB", 300_000),
        ("12B", 12),
    ],
)
def test_sizes(text: str, number: int) -> None:
    assert kinds.size().parse(text) == number


@pytest.mark.parametrize(
    ("number", "text"),
    [(0, "0"), (1, "1"), (500_000, "500KB"), (50_000_000, "50MB"), (2**20, "1MiB"), (4096, "4KiB"), (1001, "1001")],
)
def test_sizes_are_shown_in_the_unit_that_fits(number: int, text: str) -> None:
    assert kinds.size().show(number) == text


@pytest.mark.parametrize("text", ["", "KB", "1K", "1 M", "-1", "1.5", "0.0001KB", "1e3", "1__0x", "٣", "9" * 40, "10000000000GB"])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match=r"^$"):
        kinds.size().parse(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1.5", 1.5), ("90s", 90), ("5m", 300), ("1h", 3600), ("0", 0), (".5", 0.5), ("1e-05", 0.00001), ("1.5h", 5400)],
)
def test_durations(text: str, seconds: float) -> None:
    assert kinds.duration().parse(text) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"), [(0.0, "0s"), (0.05, "0.05s"), (1.0, "1s"), (90.0, "90s"), (300.0, "5m"), (3600.0, "1h")]
)
def test_durations_are_shown_in_the_unit_that_fits(seconds: float, text: str) -> None:
    assert kinds.duration().show(seconds) == text


@pytest.mark.parametrize("text", ["", "s", "-1", "nan", "inf", "1e999", "1d", "1 hour", "1:30", "1e10"])
def test_what_is_no_duration(text: str) -> None:
    with pytest.raises(ValueError, match=r"^$"):
        kinds.duration().parse(text)


def test_a_duration_may_have_to_be_above_nothing() -> None:
    with pytest.raises(ValueError, match=r"^$"):
        kinds.duration(positive=True).parse("0")


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        pytest.param(kinds.count(), "1.0", id="a count with decimals"),
        pytest.param(kinds.count(), str(2**53), id="a count that a double can't hold"),
        pytest.param(kinds.count(1, 3), "4", id="a count above its bound"),
        pytest.param(kinds.share(), "0", id="no share"),
        pytest.param(kinds.share(), "1.1", id="more than all"),
        pytest.param(kinds.number(), "1e999", id="a number that is not finite"),
        pytest.param(kinds.header("a text", "T"), "a\r\nHost: b", id="a header in a header"),
        pytest.param(kinds.network(), "10.0.0.1/8", id="a network with bits behind its prefix"),
        pytest.param(kinds.network(), "fe80::%lo/64", id="a network with a zone"),
        pytest.param(kinds.host(), "http://example.com/", id="a URL where a name is wanted"),
        pytest.param(kinds.host(), "*.example.com", id="a name with a star"),
        pytest.param(kinds.host(), "example..com", id="a name with an empty label"),
        pytest.param(kinds.regex(), "(", id="a regular expression with an open bracket"),
        pytest.param(kinds.path(), "http://h/", id="a URL where a path is wanted"),
        pytest.param(kinds.path(), "a\0b", id="a path with a NUL"),
        pytest.param(kinds.server("redis", example=""), "http://h/", id="a server of another kind"),
        pytest.param(kinds.server("redis", example=""), "redis://", id="a server without a host"),
        pytest.param(kinds.server("redis", example=""), "redis://h:99999", id="a server with a port that is none"),
        pytest.param(kinds.server("http", example="", path=True), "http://h/", id="a server without its bucket"),
        pytest.param(kinds.yes_or_no(), "maybe", id="neither yes nor no"),
        pytest.param(kinds.switch(), "", id="a switch set to nothing"),
        pytest.param(kinds.choice(Scope), "Web", id="a choice in another case"),
    ],
)
def test_what_is_not_accepted(kind: Kind[object], text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # whichever: the words are the caller's
        kind.parse(text)


def test_none_has_a_word() -> None:
    similarity = kinds.optional(kinds.share(), none="off")

    assert similarity.parse("off") is None
    assert similarity.show(None) == "off"
    assert similarity.parse("0.9") == 0.9
    assert kinds.optional(kinds.path()).parse("x") == Path("x")


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("amqp://guest:secret@host:5672/vhost", "amqp://guest:***@host:5672/vhost"),
        ("redis://:secret@host/0", "redis://:***@host/0"),
        ("redis://host/0", "redis://host/0"),
        ("redis://host/0?password=secret", "redis://host/0?***"),
        ("http://secret@host/bucket", "http://***@host/bucket"),
        ("redis://:sec@ret/sec?ret#sec@host/0", "redis://:***@host/0"),
        ("redis://u:secret\nsecret@host", "redis://u:***@host"),
        ("a-key-and-no-url", "***"),
    ],
)
def test_a_masked_url_has_no_password(url: str, shown: str) -> None:
    assert kinds.masked(url) == shown


@pytest.mark.parametrize("url", ["https://r.example/api/v1.0/getPageRank", "http://127.0.0.1:8090/x", "https://[::1]/"])
def test_an_endpoint_is_a_url(url: str) -> None:
    assert kinds.endpoint("https", "http", example="x").parse(url) == url


@pytest.mark.parametrize(
    "text",
    [
        "",
        "r.example",
        "ftp://r.example/",
        "https:///x",
        "https://user:password@r.example/",
        "https://r.example/?key=secret",
        "https://r.example/#x",
        "https://r.example:0/",
        "https://r.example/a b",
        "https://r.example/\n",
    ],
)
def test_an_endpoint_has_no_room_for_secrets(text: str) -> None:
    with pytest.raises(ValueError, match=r"^$"):
        kinds.endpoint("https", "http", example="x").parse(text)


@pytest.mark.parametrize("text", ["", "two words", "line\nline", "a:b", "x" * 201, "schlüssel"])
def test_a_key_can_stand_in_a_header(text: str) -> None:
    assert kinds.token().parse("aA0._~+/=-") == "aA0._~+/=-"
    with pytest.raises(ValueError, match=r"^$"):
        kinds.token().parse(text)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("example.com", "example.com"),
        ("WWW.Example.COM.", "www.example.com"),
        ("bücher.example", "xn--bcher-kva.example"),
        ("a", "a"),
    ],
)
def test_a_host_is_named_as_it_stands_in_urls(text: str, name: str) -> None:
    assert kinds.host().parse(text) == name
