"""What travels through the broker: hints. Frozen, JSON on the wire, with a version.

A hint says "this URL may be worth your time" and nothing more: it may be lost, doubled or late, and whoever gets it asks the
ledger. So a hint carries what its consumer would otherwise have to look up, and never what decides.
"""

from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple, TypeVar

import msgspec

from gossamer.errors import MessageError
from gossamer.ids import UrlId

VERSION: Final = 1

#: URLs in one hint at most: what a page brings, as a rule. Whoever takes several of them still asks the ledger for some hundreds at
#: once and not for thousands, which would keep everybody else waiting.
HINT_URLS: Final = 200


class Url(msgspec.Struct, frozen=True, array_like=True):
    """A URL as its finder describes it; the same in hints, in `add` and in what the ledger hands back."""

    id: UrlId
    url: str  #: as found, normalised, without fragment: what is requested
    domain: str  #: the unit of politeness: a host, or a registrable domain
    depth: int = 0  #: links from a seed
    hop: int = 0  #: redirects from the URL that was linked to
    parent: UrlId | None = None  #: the page that it was found on


class Link(NamedTuple):
    """A link as a page has it. Its depth and parent follow from the page, so one object serves every page that has it."""

    id: UrlId
    url: str
    domain: str
    family: bytes = b""  #: the URLs that differ from it in their query alone share it; empty: it has none
    combines: bool = False  #: its query has two or more parameters: those multiply, one alone does not

    def found(self, depth: int = 0, hop: int = 0, parent: UrlId | None = None) -> Url:
        """As a page at that depth links to it."""
        return Url(self.id, self.url, self.domain, depth, hop, parent)


class Found(msgspec.Struct, frozen=True, tag_field="kind", tag="found"):
    """In `urls`: WAITING URLs, one message for all new links of a page."""

    urls: tuple[Url, ...]
    v: int = VERSION


class Ranked(msgspec.Struct, frozen=True, tag_field="kind", tag="ranked"):
    """In `band.<n>`: WAITING URLs with their priorities, 0 (best) … 100 (worst)."""

    urls: tuple[tuple[Url, int], ...]
    v: int = VERSION


class Routed(msgspec.Struct, frozen=True, tag_field="kind", tag="routed"):
    """In `worker.<id>`: URLs that the ledger has given to this worker, with the priorities that they were given by."""

    urls: tuple[tuple[Url, int], ...]
    v: int = VERSION


Message = Found | Ranked | Routed
M = TypeVar("M", Found, Ranked, Routed)
U = TypeVar("U", Url, tuple[Url, int])

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


def in_hints(urls: Sequence[U]) -> Iterator[tuple[U, ...]]:
    """In portions, each for one message."""
    for start in range(0, len(urls), HINT_URLS):
        yield tuple(urls[start : start + HINT_URLS])


def encode(message: Message) -> bytes:
    return _encoder.encode(message)


def decode(body: bytes, kind: type[M]) -> M:
    """The message in `body`. Raises `MessageError` for anything else than a whole message of that kind and our version."""
    try:
        message = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise MessageError(f"no message: {error}") from error
    if message.v != VERSION:
        raise MessageError(f"a message of version {message.v}; this is version {VERSION}")
    if not isinstance(message, kind):
        raise MessageError(f"a message of kind {type(message).__name__}; {kind.__name__} is expected here")
    return message
