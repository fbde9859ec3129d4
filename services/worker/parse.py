"""From a page's markup to what the walk needs of it: title, text, links, what it asks of robots. One parse, and no second one.

The parser is called here and nowhere else, behind the guard. Its tree is asked as a whole (one selector for everything that has a
link or a rule, one call for all of the text) and never walked node by node: an object for each would cost more than the parse.

The *text* is what a reader sees of the body, with single blanks for white space, so that the same article gives the same text
whatever its indentation. Left out are scripts, styles, SVG, and what is shown only where scripts or frames are not: all that can
change while the article doesn't. Links count in noscript as well, and in SVG and MathML; templates are not part of the page.

The *main text* is what is left of it without the parts that are marked as the site's and not the article's: navigation, header,
footer, side bars. Pages are compared by it, so that a menu which all of them have makes no two articles alike.

Knows: HTML. Must not know: the page's URL, so links are as they stand in it; which of them are followed.
"""

import re
from typing import Final

import msgspec
from selectolax.lexbor import LexborHTMLParser, LexborNode

TITLE_LENGTH_MAX: Final = 500

#: A page that sends its reader on later than this is meant to be read.
REFRESH_DELAY_MAX_S: Final = 10


class Parsed(msgspec.Struct, frozen=True):
    """A page as its markup gives it."""

    title: str
    text: str  #: empty if nobody wants it, as is the next
    main: str  #: the text without what is marked as the site's own; its white space is as it comes
    hrefs: tuple[str, ...]  #: as they stand there, each once, in the page's order: of a, area, frame, iframe, in SVG and MathML
    nofollow: frozenset[str]  #: those of them that are marked rel=nofollow wherever they stand
    links_cut: bool  #: there were more than are kept
    base: str | None  #: the first <base> that can be one, as it stands there
    refresh: str | None  #: where <meta http-equiv=refresh> leads to at once
    robots: frozenset[str]  #: the directives of <meta name=robots>, and of those for our own name


def parse(html: str | bytes, *, max_links: int = 1000, agent: str = "gossamer", text: bool = True, main: bool = True) -> Parsed:
    """Reads a page that the guard let through. Broken markup is repaired as browsers do; no text makes it fail.

    Bytes are UTF-8. `agent` is our product token, in lower case. `text`, `main`: whether these are wanted; they cost as much as
    all the rest.
    """
    tree = LexborHTMLParser(html)
    in_math: frozenset[int] | None = None
    in_noscript: frozenset[int] | None = None
    hrefs: dict[str, None] = {}  # in order, each once
    nofollow: set[str] = set()
    links_cut = False
    base = refresh = None
    robots: set[str] = set()
    for node in tree.css(_LINKS_AND_RULES):
        tag = node.tag
        is_link = tag in _LINKS
        if not is_link and tag not in _NO_LINKS:
            in_math = _ids(tree, "math [href]") if in_math is None else in_math
            is_link = node.mem_id in in_math
        if is_link:
            attributes = node.attributes
            href = attributes.get("href")
            if href is None:  # so is that of `<a href>`, which is a link to the page itself
                href = attributes.get("src") or attributes.get("xlink:href") or ""
            if "rel" in attributes and "nofollow" in (attributes["rel"] or "").lower().split():
                if href not in hrefs:
                    nofollow.add(href)
            elif nofollow:
                nofollow.discard(href)
            hrefs[href] = None
            if len(hrefs) > max_links:
                links_cut = True
                hrefs.popitem()
        elif tag == "meta":
            attributes = node.attributes
            if (attributes.get("name") or "").strip().lower() in ("robots", agent):
                robots.update(_directives(attributes.get("content")))
            elif refresh is None and (attributes.get("http-equiv") or "").strip().lower() == "refresh":
                in_noscript = _ids(tree, "noscript meta") if in_noscript is None else in_noscript
                refresh = None if node.mem_id in in_noscript else _refresh(attributes.get("content"))
        elif tag == "base" and base is None:
            base = _base(node.attributes.get("href"))
    title = _title(tree)
    texts = _texts(tree, text=text, main=main)
    return Parsed(
        title=title,
        text=texts[0],
        main=texts[1],
        hrefs=tuple(hrefs),
        nofollow=frozenset(nofollow.intersection(hrefs)),
        links_cut=links_cut,
        base=base,
        refresh=refresh,
        robots=frozenset(robots),
    )


#: `[href]` also finds `xlink:href`, which is how links in SVG used to be written.
_LINKS_AND_RULES: Final = "[href],iframe[src],frame[src],meta"
_LINKS: Final = frozenset({"a", "area", "iframe", "frame"})
#: Elements that have a href and are no links; any other one is, in MathML.
_NO_LINKS: Final = frozenset({"link", "base", "meta", "use", "image"})

#: A title stands in the body when something in front of it has closed the head.
_UNSEEN: Final = ["script", "style", "noscript", "iframe", "svg", "title"]

#: What a site says on all of its pages, by element, by role, and by the ids and classes that templates had before there were such
#: elements. None that is also used for articles' own parts: a class `header` or `menu` may be anything.
_SITE_ELEMENTS: Final = ["nav", "header", "footer", "aside", "menu", "dialog"]
_UNSEEN_OR_SITE: Final = _UNSEEN + _SITE_ELEMENTS
_SITE_ROLES: Final = frozenset({"navigation", "banner", "contentinfo", "complementary", "search", "dialog"})
_SITE_IDS: Final = frozenset(
    {
        *("banner", "breadcrumb", "breadcrumbs", "footer", "header", "masthead", "menu", "nav", "navbar", "navigation"),
        *("sidebar", "sidebar-left", "sidebar-right", "topbar"),
    }
)
_SITE_CLASSES: Final = frozenset({"breadcrumbs", "footer", "navbar", "sidebar", "site-footer", "site-header"})
_MAYBE_SITE: Final = ",".join(("body [id]", "body [role]", *(f"body .{name}" for name in sorted(_SITE_CLASSES))))


def _ids(tree: LexborHTMLParser, selector: str) -> frozenset[int]:
    """What is inside of something, by the parser's own means: to look upwards from each would take a page's depth, each time."""
    return frozenset(node.mem_id for node in tree.css(selector))


def _directives(content: str | None) -> list[str]:
    return [each for each in _SEPARATORS((content or "").lower()) if each]


_SEPARATORS: Final = re.compile(r"[\s,]+").split


def _base(href: str | None) -> str | None:
    """None for `data:`, `javascript:` and the like, on which no link can be based."""
    scheme = _SCHEME(_IGNORED("", href or "").lstrip(_CONTROLS))
    return None if scheme is not None and scheme[1].lower() not in ("http", "https") else href or ""


_SCHEME: Final = re.compile(r"([a-zA-Z][a-zA-Z0-9+.-]*):").match
#: What URL parsers take out wherever it is, and at the beginning (URL Standard, section 4.4).
_IGNORED: Final = re.compile(r"[\t\n\r]").sub
_CONTROLS: Final = "".join(map(chr, range(0x21)))


def _refresh(content: str | None) -> str | None:
    """The target of a refresh that is due soon (HTML Standard, "shared declarative refresh steps"). None: the page itself."""
    found = _REFRESH(content or "")
    # Looked at as a text: a page may well write a number of a million digits.
    if found is None or len(delay := found["delay"].lstrip("0")) > 2 or int(delay or 0) > REFRESH_DELAY_MAX_S:
        return None
    target = found["double"] or found["single"] or found["bare"] or ""
    return target.strip() or None


_WS: Final = r"[\t\n\f\r ]"
_REFRESH: Final = re.compile(
    rf"{_WS}*+(?=[0-9.])(?P<delay>[0-9]*+)[0-9.]*+(?:{_WS}*+[;,]|{_WS}){_WS}*+(?:url{_WS}*+={_WS}*+)?+"
    r"""(?:"(?P<double>[^"]*+)|'(?P<single>[^']*+)|(?P<bare>.*+))""",
    re.I | re.S,
).match


def _title(tree: LexborHTMLParser) -> str:
    """The first that is not of a drawing."""
    titles = tree.tags("title")
    if not titles:
        return ""
    first: LexborNode | None = titles[0]
    if first is not None and first.parent is not None and first.parent.tag != "head":
        first = tree.css_first("title:not(svg title)")
    return "" if first is None else " ".join(first.text().split())[:TITLE_LENGTH_MAX].rstrip()


def _texts(tree: LexborHTMLParser, *, text: bool, main: bool) -> tuple[str, str]:
    """Text and main text. Takes the rest out of the tree: nothing else can be asked of it afterwards."""
    body = tree.body
    if body is None or not (text or main):  # no body: a page of frames
        return "", ""
    whole = ""
    if text:
        tree.strip_tags(_UNSEEN)
        whole = " ".join(body.text(separator=" ").split())
    if not main:
        return whole, ""
    tree.strip_tags(_SITE_ELEMENTS if text else _UNSEEN_OR_SITE)  # in one go, if that will do
    for node in tree.css(_MAYBE_SITE):
        if _is_the_sites(node.attributes):
            node.decompose(recursive=False)  # from the tree, not from memory: one inside of another is harmless
    return whole, body.text(separator=" ")


def _is_the_sites(attributes: dict[str, str | None]) -> bool:
    if (attributes.get("role") or "").lower() in _SITE_ROLES or (attributes.get("id") or "").lower() in _SITE_IDS:
        return True
    return not _SITE_CLASSES.isdisjoint((attributes.get("class") or "").split())
