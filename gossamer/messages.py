"""What travels through the broker: hints. Frozen, JSON on the wire, with a version.

A hint says "this URL may be worth your time" and nothing more: it may be lost, doubled or late, and whoever gets it asks the
ledger. So a hint carries what its consumer would otherwise have to look up, and never what decides.
"""

from typing import Final, NamedTuple, TypeVar

import msgspec

from gossamer.errors import MessageError
from gossamer.ids import UrlId

VERSION: Final = 1


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


class Found(msgspec.Struct, frozen=True, tag_field="kind", tag="found"):
    """In `urls`: WAITING URLs, one message for all new links of a page."""

    urls: tuple[Url, ...]
    v: int = VERSION


class Ranked(msgspec.Struct, frozen=True, tag_field="kind", tag="ranked"):
    """In `band.<n>`: WAITING URLs with their priorities, 0 (best) … 100 (worst)."""

    urls: tuple[tuple[Url, int], ...]
    v: int = VERSION


class Routed(msgspec.Struct, frozen=True, tag_field="kind", tag="routed"):
    """In `worker.<id>`: URLs that the ledger has given to this worker."""

    urls: tuple[Url, ...]
    v: int = VERSION


Message = Found | Ranked | Routed
M = TypeVar("M", Found, Ranked, Routed)

_encoder = msgspec.json.Encoder()
_decoder: msgspec.json.Decoder[Message] = msgspec.json.Decoder(Message)


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
