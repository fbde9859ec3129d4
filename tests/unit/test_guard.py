"""The parser's guard: what it refuses, what it must not refuse, and that nothing hides behind what it skips."""

import time
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from selectolax.lexbor import LexborHTMLParser, LexborNode

from services.worker.guard import (
    TOO_DEEP,
    TOO_MANY_ATTRIBUTES,
    TOO_MANY_NODES,
    TOO_MANY_OPTIONS,
    UNCLEAR,
    Limits,
    refusal,
)

CAP = 500_000
DEEP = "<div>" * 20_000


def numbered(template: str, count: int) -> str:
    return "".join(template.replace("#", str(number)) for number in range(count))


def filled(piece: str, cap: int = CAP) -> str:
    return piece * (cap // len(piece))


REFUSED = {
    "nested blocks": (filled("<div>"), TOO_DEEP),
    "nested lists": (filled("<ul><li>"), TOO_DEEP),
    "blocks and paragraphs": (filled("<div><p>"), TOO_DEEP),
    "unknown elements, and end tags of others": ("<x>" * 83_000 + "</y>" * 62_000, TOO_DEEP),
    "inline elements": (filled("<span>"), TOO_DEEP),
    "tables in cells": (filled("<table><tr><td>"), TOO_DEEP),
    "drawings": ("<svg>" + filled("<g>"), TOO_DEEP),
    "templates": (filled("<template>"), TOO_DEEP),
    "list items and definitions in turn": (filled("<li><dd>"), TOO_DEEP),
    "ruby texts without ruby": (filled("<rt>"), TOO_DEEP),
    "option groups without a select": (filled("<optgroup>"), TOO_DEEP),
    "options in a drawing": ("<svg>" + filled("<option>") + "</y>" * 1_000, TOO_DEEP),
    "the same formatting again and again": (filled("<b>"), TOO_DEEP),
    "formatting closed crosswise": (
        numbered("<b #>", 3_000) + numbered("<i #>", 3_000) + "x</b>" * 3_000,
        TOO_DEEP,
    ),
    "formatting that comes back in each paragraph": ("<p>" + numbered("<b #>", 100) + filled("<p>x"), TOO_MANY_NODES),
    "formatting without end": (numbered("<font a=#>", 35_000), TOO_DEEP),
    "formatting and blocks": (filled("<font><div>"), TOO_DEEP),
    "formatting that a cell protects from its end tags": (
        f"<div>{numbered('<b #>', 60)}<table><td>{'</b>' * 60}</table></div>" + filled("<p>x"),
        TOO_MANY_NODES,
    ),
    "formatting around more blocks than its end tag gets through": (
        numbered(f"<b #>{'<div>' * 9}</b>{'</div>' * 9}", 60) + filled("<p>x"),
        TOO_MANY_NODES,
    ),
    "attributes": ("<a " + numbered("a# ", 71_000) + ">", TOO_MANY_ATTRIBUTES),
    "attributes with the end of the tag in each": ("<a " + numbered('a#=">"', 50_000) + ">", TOO_MANY_ATTRIBUTES),
    "attributes of the root": (numbered("<html a#>", 35_000), TOO_MANY_ATTRIBUTES),
    "attributes of the body": (numbered("<body a#>", 35_000), TOO_MANY_ATTRIBUTES),
    "options": ("<select>" + filled("<option>"), TOO_MANY_OPTIONS),
}


@pytest.mark.parametrize(("html", "reason"), REFUSED.values(), ids=REFUSED)
def test_markup_that_blows_up_is_refused_at_once(html: str, reason: str) -> None:
    began = time.process_time()

    assert refusal(html[: 2 * CAP]) == reason
    assert time.process_time() - began < 0.5  # 0.05 on an idle machine


PADDING = "<p>words</p>" * 5_000
ALLOWED = {
    "four hundred levels": "<div>" * 400 + PADDING,
    "list items without end tags": "<ul>" + "<li>one<p>two" * 5_000 + "</ul>",
    "definitions without end tags": "<dl>" + "<dt>one<dd>two" * 5_000 + "</dl>",
    "rows and cells without end tags": "<table>" + "<tr><td>one<td>two" * 5_000 + "</table>",
    "sections, rows and cells without end tags": "<table>" + "<tbody><tr><th>one<td><p>two" * 2_000 + "</table>",
    "tables in blocks in cells": "<table><tr><td><div><div><table><tr><td>x</table></div></div></table>" * 2_000,
    "options without end tags": ("<select>" + "<option>one" * 200 + "</select>") * 50,
    "rubies without end tags": "<ruby>一<rp>(<rt>yi<rp>)</ruby>" * 5_000,
    "headings that are never closed": "<h2>one" * 5_000,
    "anchors that are never closed": numbered('<a name="#">one', 5_000),
    "paragraphs in a font that is never closed": '<p><font face="Arial">one' * 400,
    "formatting closed crosswise": "<b><i>one</b></i>" * 5_000,
    "cells with formatting that is never closed": "<table>" + "<tr><td><font size=2>one" * 4_000 + "</table>",
    "formatting around a block": "<b><p>one</b></p>" * 5_000,
    "links": numbered("<a href=#>x</a>", 33_000),
    "one text": "x" * CAP,
    "character references": filled("&amp;"),
    "stray ampersands": filled("&"),
    "tags in scripts": "<script>" + "document.write('<div><b>');" * 15_000 + "</script>",
    "tags in a style, a title and a textarea": f"<title>{DEEP}</title><style>{DEEP}</style><textarea>{DEEP}</textarea>",
    "tags in a comment": f"<!--{DEEP}-->",
    "tags in attributes": f"<p title='{DEEP}'>",
    "tags in a comment that is never closed": f"<!--{DEEP}",
    "tags in a title that is never closed": f"<title>{DEEP}",
    "tags in plain text": f"<plaintext>{DEEP}",
    "drawings on a page with scripts": ("<svg><style>a > b {}</style><title>x</title><path d=''></svg>" * 500)
    + f"<script>{DEEP}</script>",
    "XHTML in a drawing": "<svg><foreignObject><div><p>x</p><br></div></foreignObject><path/></svg>" * 3_000
    + f"<script>{DEEP}</script>",
    "formulas": "<math><mrow><mi>x</mi><mo>+</mo><mn>1</mn></mrow><annotation-xml><ci/><plus/></annotation-xml></math>" * 2_000,
}


@pytest.mark.parametrize("html", ALLOWED.values(), ids=ALLOWED)
def test_markup_that_is_only_large_or_sloppy_passes(html: str) -> None:
    assert refusal(html) is None


HIDING: dict[str, Callable[[str], str]] = {
    "behind a comment that is empty": lambda deep: f"<!-->{deep}-->",
    "behind a comment that is nearly empty": lambda deep: f"<!--->{deep}-->",
    "behind a comment that ends with an exclamation": lambda deep: f"<!-- x --!>{deep}-->",
    "behind a quote that is part of a name": lambda deep: f'<p a"b>{deep}<p ">',
    "behind a quote at the beginning of a name": lambda deep: f'<p ="x>{deep}<p ">',
    "behind a quote that is part of a value": lambda deep: f'<p a=b"c>{deep}<p ">',
    "behind a quote in an end tag of raw text": lambda deep: f"<style></style a='>'>{deep}<p '>",
    "behind a comment in a script": lambda deep: f"<script><!--</script>{deep}<!-- -->",
    "behind a second script in a comment": lambda deep: f'<script><!--<script></script><p "--></script>{deep}',
    "behind raw text in a drawing": lambda deep: f"<svg><style>{deep.replace('div', 'g')}",
    "behind a section of characters": lambda deep: f"<![CDATA[>{deep}]]>",
    "behind a section of characters in a drawing": lambda deep: f"<svg><![CDATA[<p a=']]></svg>{deep}<p '>",
    "behind a name that only looks like that of an empty element": lambda deep: deep.replace("div", "lin\u212a"),
    "behind a script that only looks like ending": lambda deep: f"<script></\u017fcript><plaintext></script>{deep}",
    "behind a style that only looks like ending": lambda deep: f"<style></\u017ftyle><plaintext></style>{deep}",
    "behind raw text in a script that only looks like ending": lambda deep: f"<script></\u017fcript ><xmp></script>{deep}",
    "behind a second script that only looks like one": lambda deep: f"<script><!--<\u017fcript></script>-->{deep}",
    "behind slashes that close nothing": lambda deep: deep.replace("<div>", "<div/>"),
    "in a drawing, behind slashes in a value": lambda deep: "<svg>" + deep.replace("<div>", "<g a=b/>"),
    "behind an end tag that closes something else": lambda deep: deep.replace("<div>", "<span><div></span>"),
    "in cells, behind tables": lambda deep: "<table><td>" + deep.replace("<div>", "<div><table></table>"),
    "behind end tags that a cell keeps from reaching them": lambda deep: deep.replace("<div>", "<div><table><td></div>"),
}


@pytest.mark.parametrize("hide", HIDING.values(), ids=HIDING)
def test_nothing_hides_where_the_parser_reads_on(hide: Callable[[str], str]) -> None:
    html = hide(DEEP)

    assert refusal(html) == TOO_DEEP


@pytest.mark.parametrize(
    "html",
    [
        pytest.param("<svg><desc><p><style><a b='</style>" + DEEP, id="raw text in HTML in a drawing"),
        pytest.param("<template><col><style></template>" + DEEP, id="raw text where a template ignores it"),
        pytest.param("<frameset><style>" + DEEP, id="raw text where frames ignore it"),
        pytest.param("<svg><desc><![CDATA[" + DEEP, id="a section of characters that may be none"),
    ],
)
def test_what_can_be_read_in_two_ways_is_refused(html: str) -> None:
    assert refusal(html) == UNCLEAR


def test_small_pages_need_no_scan() -> None:
    page = "<div>" * 700

    assert refusal(page) is None
    assert refusal(page, Limits()) == TOO_DEEP


def depth(node: LexborNode) -> int:
    deepest, left = 0, [(node, 1)]
    while left:
        node, level = left.pop()
        deepest = max(deepest, level)
        left.extend((child, level + 1) for child in node.iter())
    return deepest


NAMES = [
    "div",
    "p",
    "li",
    "dd",
    "ul",
    "span",
    "x",
    "b",
    "i",
    "a",
    "font",
    "table",
    "tr",
    "td",
    "tbody",
    "caption",
    "select",
    "option",
    "button",
    "object",
    "template",
    "svg",
    "g",
    "math",
    "mi",
    "desc",
    "title",
    "foreignObject",
    "style",
    "script",
    "textarea",
    "form",
    "h1",
    "h2",
    "ruby",
    "rt",
    "br",
    "center",
]
TAGS = st.one_of(
    st.sampled_from(NAMES).map("<{}>".format),
    st.sampled_from(NAMES).map("</{}>".format),
    st.builds("<{} a{}>".format, st.sampled_from(NAMES), st.integers(0, 50)),
    st.sampled_from(["x", " ", "<!--", "-->", "<![CDATA[", "]]>", "<p a='", "'", '"', "<g/>"]),
)
STRICT = Limits(depth=12, loose=4)


@settings(deadline=None, max_examples=400)
@given(st.lists(TAGS, max_size=30), st.integers(1, 12))
def test_the_tree_is_never_much_deeper_than_the_guard_thinks(tags: list[str], times: int) -> None:
    html = "".join(tags) * times

    if refusal(html, STRICT) is None:
        root = LexborHTMLParser(html).root
        assert root is not None
        assert depth(root) <= 3 * (STRICT.depth + STRICT.loose)


@settings(deadline=None)
@given(st.text(st.sampled_from("<>/!-='\"[]abpsvg \t\0\u212a") | st.characters(), max_size=200))
def test_no_text_makes_the_guard_fail(html: str) -> None:
    assert refusal(html, STRICT) is None or refusal(html, STRICT)
