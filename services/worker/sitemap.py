"""Sitemaps: is a body one, and what does it list? By its bytes alone, whoever named it and whatever its label says.

Known are XML whose root is `urlset` (pages) or `sitemapindex` (more sitemaps), plain text of nothing but URLs, one a line, and
either of them as gzip. What is cut off, broken or past a bound costs the entries behind it and never those before.

There is no XML parser here: real sitemaps are full of bare ampersands, at which one has to stop, and a document type with its
entities is what parsers are attacked with. One that has any is no sitemap; tags and CDATA are found by one pass that never looks
at anything twice. `lastmod`, `priority` and `changefreq` are not used; neither are images and translations of a page.

Pure. Must not know: which URLs are followed, how the body came.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from services.worker.decode import unpacked_part
from services.worker.types import FIRST_BYTES, Headers, label_of

#: Kept of one sitemap. They are entered in one step, a tenth of a second of the ledger's time.
LOCS_MAX: Final = 10_000

#: How much longer than the page cap a sitemap may be once it is unpacked: XML shrinks to a tenth, pages to a quarter.
UNPACKED_TIMES: Final = 4

#: What may come of the first bytes.
FIRST_UNPACKED_BYTES: Final = 8 * FIRST_BYTES

#: What sitemaps are labelled as. Bodies of other types are not looked at: images and films are still refused by their head.
TYPES: Final = frozenset(
    {"application/xml", "text/xml", "text/plain", "application/gzip", "application/x-gzip"}
    | {"application/octet-stream", "binary/octet-stream"}
)
HTML_TYPES: Final = frozenset({"text/html", "application/xhtml+xml"})


class Sitemap(msgspec.Struct, frozen=True):
    """What a sitemap lists."""

    locs: tuple[str, ...]  #: as they stand there, each once, in its order
    of_sitemaps: bool  #: it is an index: they are sitemaps, and not pages
    cut: bool  #: there was more


def may_be_one(headers: Headers) -> bool:
    """Whether the head leaves it open."""
    type = label_of(headers).type
    return type is None or type in TYPES or type.endswith("+xml")


def begins_as_one(headers: Headers, body: bytes) -> bool:
    """Whether a body that begins so is a sitemap. `body` is the whole one if it is shorter than what is looked at."""
    first, whole = unpacked_part(headers, body[:FIRST_BYTES], FIRST_UNPACKED_BYTES)
    text = _text(first)
    if _ROOT(text) is not None:
        return True
    return label_of(headers).type not in HTML_TYPES and _is_list(text, whole=whole and len(body) <= FIRST_BYTES)


def read(headers: Headers, body: bytes, cap_bytes: int, *, cut: bool = False) -> Sitemap | None:
    """What it lists; None for what is no sitemap. `cut`: there was more of the body."""
    if not begins_as_one(headers, body):
        return None
    raw, whole = unpacked_part(headers, body, UNPACKED_TIMES * cap_bytes)
    cut = cut or not whole
    text = _text(raw)
    root = _ROOT(text)
    found = _lines(text, cut) if root is None else _locs(text, root.end(), root["prefix"] or "")
    locs: dict[str, None] = {}  # in order, each once
    for loc in found:
        locs[loc] = None
        if len(locs) > LOCS_MAX:
            locs.popitem()
            cut = True
            break
    return Sitemap(tuple(locs), root is not None and root["root"] == "sitemapindex", cut)


def _text(raw: bytes) -> str:
    """UTF-8, as the protocol of sitemaps has it, or UTF-16 that says so. Where it is neither, URLs are ASCII all the same."""
    return raw.decode("utf-16" if raw.startswith((b"\xff\xfe", b"\xfe\xff")) else "utf-8-sig", "replace")


# --- XML ---

#: Nothing but white space, declarations and comments may stand before the root: a page begins otherwise, as does a document type.
_ROOT: Final = re.compile(
    r"\s*+(?:<\?.*?\?>\s*+|<!--.*?-->\s*+)*+<(?:(?P<prefix>[\w.-]++):)?+(?P<root>urlset|sitemapindex)(?=[\s/>])", re.DOTALL
).match

#: What has no end ends with the text, so that no beginning is looked at again.
_TOKENS: Final = re.compile(
    r"<!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|<!\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)"
    r"|<(?P<end>/?)(?:(?P<prefix>[\w.-]++):)?+loc(?:\s[^<>]*+)?+>",
    re.DOTALL,
).finditer


def _locs(text: str, start: int, prefix: str) -> Iterator[str]:
    """What stands in each <loc> of the root's own namespace, as its prefix tells it: that of an image is no page."""
    parts: list[str] | None = None  # of the one that is open
    at = start
    for token in _TOKENS(text, start):
        if parts is not None:
            parts.append(_resolved(text[at : token.start()]))
            if token["cdata"] is not None:
                parts.append(token["cdata"])
        at = token.end()
        if token["end"] is None or (token["prefix"] or "") != prefix:
            continue
        if token["end"] == "":
            parts = []
        elif parts is not None:
            if loc := _loc("".join(parts)):
                yield loc
            parts = None


def _loc(content: str) -> str:
    """Empty if there is markup in it: then it is not what it says it is."""
    return "" if "<" in content else content.strip()


def _resolved(text: str) -> str:
    return _REFERENCE(_character, text) if "&" in text else text


#: The five of XML, and numbers. An ampersand that begins none of them is itself.
_REFERENCE: Final = re.compile(r"&(?:(amp|lt|gt|quot|apos)|#([0-9]{1,7})|#[xX]([0-9a-fA-F]{1,6}));").sub
_NAMED: Final = {"amp": "&", "lt": "<", "gt": ">", "quot": '"', "apos": "'"}


def _character(found: re.Match[str]) -> str:
    named, decimal, hexadecimal = found.groups()
    if named is not None:
        return _NAMED[named]
    code = int(decimal) if decimal is not None else int(hexadecimal, 16)
    return "\ufffd" if code == 0 or code > 0x10FFFF or 0xD800 <= code <= 0xDFFF else chr(code)


# --- Plain text ---

_URL: Final = re.compile(r"(?ai:https?)://[^\s<>\"]++").fullmatch


def _is_list(text: str, *, whole: bool) -> bool:
    """Whether every line is a URL; of a text that goes on the last one is not whole."""
    lines = [line.strip() for line in text.split("\n")]
    urls = [line for line in (lines if whole else lines[:-1]) if line]
    return bool(urls) and all(map(_URL, urls))


def _lines(text: str, cut: bool) -> Iterator[str]:
    lines = text.split("\n")
    for line in lines[:-1] if cut else lines:
        if _URL(loc := line.strip()):
            yield loc
