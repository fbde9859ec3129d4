"""Pages: read-only, and parsed only for who asks."""

import dataclasses
import sys
from types import ModuleType

import pytest

from gossamer import Page
from gossamer.ids import UrlId


def a_page(html: str = "<title>t</title>") -> Page:
    return Page(
        id=UrlId(bytes(16)),
        url="http://h/x",
        status=200,
        headers=(("Content-Type", "text/html"), ("X-Robots-Tag", "noarchive"), ("x-robots-tag", "nosnippet")),
        fetched_at=1_700_000_000.0,
        depth=1,
        domain="h",
        html=html,
        text="",
        title="t",
        links=("http://h/y",),
        sha256=bytes(32),
        size=16,
    )


@pytest.fixture
def parsers(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Stands in for selectolax; the texts that were parsed."""
    parsed: list[str] = []

    class Parser:
        def __init__(self, html: str) -> None:
            parsed.append(html)

    lexbor = ModuleType("selectolax.lexbor")
    lexbor.LexborHTMLParser = Parser  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "selectolax", ModuleType("selectolax"))
    monkeypatch.setitem(sys.modules, "selectolax.lexbor", lexbor)
    return parsed


@pytest.mark.parametrize("name", [*(field.name for field in dataclasses.fields(Page)), "tree", "mine"])
def test_nothing_of_a_page_can_be_changed(name: str) -> None:
    page = a_page()

    with pytest.raises((AttributeError, TypeError)):
        setattr(page, name, "changed")
    with pytest.raises((AttributeError, TypeError)):
        delattr(page, name)

    assert page == a_page()


def test_what_a_page_holds_can_not_be_changed_either() -> None:
    hash(a_page())


def test_headers_are_found_whatever_their_case() -> None:
    page = a_page()

    assert page.header("content-type") == "text/html"
    assert page.header("X-ROBOTS-TAG") == "noarchive, nosnippet"
    assert page.header("etag") is None


def test_the_tree_is_parsed_once_and_only_when_asked_for(parsers: list[str]) -> None:
    page = a_page("<p>x")
    assert parsers == []

    assert page.tree is page.tree

    assert parsers == ["<p>x"]


def test_a_copy_has_a_tree_of_its_own(parsers: list[str]) -> None:
    page = a_page()
    copy = dataclasses.replace(page)

    assert copy == page
    assert copy.tree is not page.tree


def test_without_selectolax_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "selectolax", None)
    monkeypatch.setitem(sys.modules, "selectolax.lexbor", None)

    with pytest.raises(ImportError, match="pip install selectolax"):
        _ = a_page().tree


def test_neither_html_nor_tree_is_in_what_is_printed_twice(parsers: list[str]) -> None:
    page = a_page()
    before = repr(page)

    _ = page.tree

    assert repr(page) == before
