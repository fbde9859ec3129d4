"""Read: from an answer to a page. Decode, guard, one parse for everything that is wanted of it, and a sketch of its text. Pure.

The order matters: the guard stands between decoder and parser, since a page far below the cap can cost the parser gigabytes.
"""

import hashlib
import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec

from gossamer.crash import step
from gossamer.outcomes import Flag, Outcome
from services.worker import guard, sitemap
from services.worker.charsets import UTF_8
from services.worker.decode import Decoded, Undecodable, decode
from services.worker.download import Answer
from services.worker.parse import Parsed, parse
from services.worker.robotstxt import page_rules
from services.worker.sketch import NO_SKETCH, Sketch

log = logging.getLogger("gossamer.worker")


class Reading(msgspec.Struct, frozen=True):
    """A page, read."""

    html: str  #: empty if nobody wants its text
    charset: str
    sha256: bytes  #: of the body without its content coding
    size: int  #: of the same, in bytes
    parsed: Parsed
    flags: tuple[Flag, ...]
    sketch: Sketch = NO_SKETCH
    of_sitemaps: bool = False  #: it is an index of sitemaps: what it links to are no pages


class Unreadable(msgspec.Struct, frozen=True):
    outcome: Outcome
    reason: str
    again: bool = False  #: it ended early: a second try is worth it


class Reader(msgspec.Struct, frozen=True):
    """Reads within limits."""

    cap_bytes: int
    max_links: int
    sitemaps: bool = False  #: are read as well
    text: bool = True  #: is wanted of a page
    sketch: Callable[[str], Sketch] | None = None  #: of the main text; None: it is not wanted

    @step("worker.read")
    def __call__(self, answers: Sequence[Answer]) -> list[Reading | Unreadable]:
        """What each of them is. Step by step over all: a step that has just been taken has its code and its tables at hand.

        So many pages take four fifths of the time that one by one would. A page that we fail to read, by a fault of ours, costs
        itself and no crawl.
        """
        drafts = [_Draft(answer) for answer in answers]
        for take_step in (_decode, _guard, _parse, _sum_up):
            for draft in drafts:
                if draft.result is None:
                    try:
                        take_step(draft, self)
                    except Exception as fault:
                        log.exception("page.unread")
                        reason = f"a fault of ours: {type(fault).__name__} while it was read"
                        draft.result = Unreadable(Outcome.MALFORMED, reason)
        return [_known(draft.result) for draft in drafts]


def _known(result: Reading | Unreadable | None) -> Reading | Unreadable:
    assert result is not None
    return result


@dataclass(slots=True)
class _Draft:
    """An answer on its way to a page."""

    answer: Answer
    decoded: Decoded = field(init=False)
    parsed: Parsed = field(init=False)
    result: Reading | Unreadable | None = None  #: once it is known


def _decode(draft: _Draft, limits: Reader) -> None:
    answer = draft.answer
    if limits.sitemaps:
        found = sitemap.read(answer.headers, answer.body, limits.cap_bytes, cut=answer.cut)
        if found is not None:
            draft.result = _listing(found, answer)
            return
    decoded = decode(answer.headers, answer.body, limits.cap_bytes)
    if isinstance(decoded, Undecodable):
        draft.result = Unreadable(decoded.outcome, decoded.reason, decoded.again)
    else:
        draft.decoded = decoded


def _guard(draft: _Draft, limits: Reader) -> None:
    if (reason := guard.refusal(draft.decoded.html)) is not None:
        draft.result = Unreadable(Outcome.TOO_COMPLEX, reason)


def _parse(draft: _Draft, limits: Reader) -> None:
    html = draft.decoded.utf8 or draft.decoded.html  # the parser wants UTF-8, and to encode it takes a fourth of its time
    draft.parsed = parse(html, max_links=limits.max_links, text=limits.text, main=limits.sketch is not None)


def _sum_up(draft: _Draft, limits: Reader) -> None:
    decoded, parsed = draft.decoded, draft.parsed
    asks = page_rules(draft.answer.headers, parsed.robots)
    marks = (
        (Flag.NOINDEX, asks.noindex),
        (Flag.NOFOLLOW, asks.nofollow),
        (Flag.CHECKSUM_BAD, decoded.checksum_bad),
        (Flag.LINKS_CUT, parsed.links_cut),
    )
    flags = tuple(flag for flag, is_so in marks if is_so)
    sha256 = hashlib.sha256(decoded.raw).digest()
    sketch = NO_SKETCH if limits.sketch is None else limits.sketch(parsed.main)
    html = decoded.html if limits.text else ""  # it would only take room until the page is closed
    draft.result = Reading(html, decoded.charset, sha256, len(decoded.raw), parsed, flags, sketch)


def _listing(found: sitemap.Sitemap, answer: Answer) -> Reading:
    """A sitemap, as a page that has links and nothing else. Whether it may be indexed is no question: it is never stored."""
    marks = (
        (Flag.SITEMAP, True),
        (Flag.NOFOLLOW, page_rules(answer.headers, frozenset()).nofollow),
        (Flag.LINKS_CUT, found.cut),
    )
    flags = tuple(flag for flag, is_so in marks if is_so)
    links = msgspec.structs.replace(_EMPTY_PAGE, hrefs=found.locs, links_cut=found.cut)
    return Reading("", UTF_8, b"", 0, links, flags, of_sitemaps=found.of_sitemaps)


_EMPTY_PAGE: Final = parse("")
