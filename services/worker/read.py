"""Read: from an answer to a page. Decode, guard, and one parse for everything that is wanted of it. Pure.

The order matters: the guard stands between decoder and parser, since a page far below the cap can cost the parser gigabytes.
"""

import hashlib
import logging
from dataclasses import dataclass, replace
from typing import Final

from gossamer.crash import step
from gossamer.outcomes import Flag, Outcome
from services.worker import guard, sitemap
from services.worker.charsets import UTF_8
from services.worker.decode import Undecodable, decode
from services.worker.download import Answer
from services.worker.parse import Parsed, parse
from services.worker.robotstxt import page_rules

log = logging.getLogger("gossamer.worker")


@dataclass(frozen=True, slots=True)
class Reading:
    """A page, read."""

    html: str
    charset: str
    sha256: bytes  #: of the body without its content coding
    size: int  #: of the same, in bytes
    parsed: Parsed
    flags: tuple[Flag, ...]
    of_sitemaps: bool = False  #: it is an index of sitemaps: what it links to are no pages


@dataclass(frozen=True, slots=True)
class Unreadable:
    outcome: Outcome
    reason: str
    again: bool = False  #: it ended early: a second try is worth it


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads within limits."""

    cap_bytes: int
    max_links: int
    sitemaps: bool = False  #: are read as well
    text: bool = True  #: is wanted of a page
    main: bool = True  #: likewise

    def __call__(self, answer: Answer) -> Reading | Unreadable:
        """Whatever came: a page that we fail to read, by a fault of ours, costs itself and no crawl."""
        try:
            return read(answer, self)
        except Exception as fault:
            log.exception("page.unread")
            return Unreadable(Outcome.MALFORMED, f"a fault of ours: {type(fault).__name__} while it was read")


@step("worker.read")
def read(answer: Answer, limits: Reader) -> Reading | Unreadable:
    cap_bytes = limits.cap_bytes
    if limits.sitemaps and (found := sitemap.read(answer.headers, answer.body, cap_bytes, cut=answer.cut)) is not None:
        return _listing(found, answer)
    decoded = decode(answer.headers, answer.body, cap_bytes)
    if isinstance(decoded, Undecodable):
        return Unreadable(decoded.outcome, decoded.reason, decoded.again)
    if (reason := guard.refusal(decoded.html)) is not None:
        return Unreadable(Outcome.TOO_COMPLEX, reason)
    parsed = parse(decoded.html, max_links=limits.max_links, text=limits.text, main=limits.main)
    asks = page_rules(answer.headers, parsed.robots)
    marks = (
        (Flag.NOINDEX, asks.noindex),
        (Flag.NOFOLLOW, asks.nofollow),
        (Flag.CHECKSUM_BAD, decoded.checksum_bad),
        (Flag.LINKS_CUT, parsed.links_cut),
    )
    flags = tuple(flag for flag, is_so in marks if is_so)
    sha256 = hashlib.sha256(decoded.raw).digest()
    return Reading(decoded.html, decoded.charset, sha256, len(decoded.raw), parsed, flags)


def _listing(found: sitemap.Sitemap, answer: Answer) -> Reading:
    """A sitemap, as a page that has links and nothing else. Whether it may be indexed is no question: it is never stored."""
    marks = (
        (Flag.SITEMAP, True),
        (Flag.NOFOLLOW, page_rules(answer.headers, frozenset()).nofollow),
        (Flag.LINKS_CUT, found.cut),
    )
    flags = tuple(flag for flag, is_so in marks if is_so)
    links = replace(_EMPTY_PAGE, hrefs=found.locs, links_cut=found.cut)
    return Reading("", UTF_8, b"", 0, links, flags, found.of_sitemaps)


_EMPTY_PAGE: Final = parse("")
