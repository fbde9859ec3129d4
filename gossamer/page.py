"""A page as a module sees it: everything that is known of it, and nothing to change.

A module acts by side effect only, so a page is a value: what one module does with it reaches neither the next one nor the links.
Knows: one page. Must not know: where it is stored, or which crawl it is of (`CrawlInfo` does).
Standard library only, until somebody asks for the tree.
"""

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any

from gossamer.ids import UrlId


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A page that was fetched, read and stored.

    After a crash a module may be handed a page again: `id` is the same then, and on every machine.
    """

    id: UrlId  #: 16 bytes that stand for the URL's identity; `page.id.hex()` in files
    url: str  #: as requested: normalised, without fragment
    status: int  #: 200 to 299
    headers: tuple[tuple[str, str], ...]  #: of the response, in order; see `header`
    fetched_at: float  #: seconds since 1970
    depth: int  #: links from a seed; 0 for a seed
    domain: str  #: the unit of politeness that it belongs to, most often the host
    html: str  #: the body, decoded
    text: str  #: what a reader sees, without markup
    title: str  #: empty if it has none
    links: tuple[str, ...]  #: where it links to: URLs as they would be requested, in the page's order, also those not followed
    sha256: bytes  #: of the body, decompressed and not yet decoded: 32 bytes
    size: int  #: length of the body in bytes, decompressed and not yet decoded
    _tree: Any = field(default=None, init=False, repr=False, compare=False)

    def header(self, name: str) -> str | None:
        """The value of a response header, whatever the case of its name; one that came several times, with commas between."""
        wanted = name.lower()
        values = [value for each, value in self.headers if each.lower() == wanted]
        return ", ".join(values) if values else None

    @property
    def tree(self) -> Any:
        """The page as a selectolax `LexborHTMLParser`, parsed when it is first asked for. Each module has one of its own."""
        if self._tree is None:
            object.__setattr__(self, "_tree", _parsed(self.html))
        return self._tree


def _parsed(html: str) -> Any:
    try:
        lexbor = import_module("selectolax.lexbor")
    except ImportError as error:
        raise ImportError("page.tree needs selectolax: pip install selectolax") from error
    return lexbor.LexborHTMLParser(html)
