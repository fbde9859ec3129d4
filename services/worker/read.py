"""Read: from an answer to a page. Decode, guard, and one parse for everything that is wanted of it. Pure.

The order matters: the guard stands between decoder and parser, since a page far below the cap can cost the parser gigabytes.
"""

import hashlib
from dataclasses import dataclass

from gossamer.crash import step
from gossamer.outcomes import Flag, Outcome
from services.worker import guard
from services.worker.decode import Undecodable, decode
from services.worker.download import Answer
from services.worker.parse import Parsed, parse
from services.worker.robotstxt import page_rules


@dataclass(frozen=True, slots=True)
class Reading:
    """A page, read."""

    html: str
    charset: str
    sha256: bytes  #: of the body without its content coding
    size: int  #: of the same, in bytes
    parsed: Parsed
    flags: tuple[Flag, ...]


@dataclass(frozen=True, slots=True)
class Unreadable:
    outcome: Outcome
    reason: str


@dataclass(frozen=True, slots=True)
class Reader:
    """Reads within limits."""

    cap_bytes: int
    max_links: int

    def __call__(self, answer: Answer) -> Reading | Unreadable:
        return read(answer, self.cap_bytes, self.max_links)


@step("worker.read")
def read(answer: Answer, cap_bytes: int, max_links: int) -> Reading | Unreadable:
    decoded = decode(answer.headers, answer.body, cap_bytes)
    if isinstance(decoded, Undecodable):
        return Unreadable(decoded.outcome, decoded.reason)
    if (reason := guard.refusal(decoded.html)) is not None:
        return Unreadable(Outcome.TOO_COMPLEX, reason)
    parsed = parse(decoded.html, max_links=max_links)
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
