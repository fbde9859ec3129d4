"""The blob store: page bodies, as WARC records in segments.

One object a page would cost more than the rest of the page, so a call stores a group and is durable as a whole. A reference is
given out only for what is safely there: a page is never recorded as stored before its blob is. The other way round, a crash
leaves a segment that nobody refers to; it goes with its crawl.
Must not know: URLs' states, or whether a crawl is alive (it is told).
"""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from gossamer.ids import CrawlId

#: What describes the transfer (RFC 9110 section 7.6.1, RFC 9112 section 6). The body is de-chunked, so a reader that believed
#: these would cut it wrongly: stores leave them out, and write a `Content-Length` that is true.
TRANSFER_HEADERS: Final = frozenset(
    {"connection", "content-length", "keep-alive", "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade"}
)


@dataclass(frozen=True, slots=True)
class Capture:
    """A response as it came: what becomes one WARC response record, and comes back from it unchanged."""

    url: str  #: as requested
    fetched_at: float  #: seconds since 1970; kept to the microsecond
    status: int
    #: In order. Those that describe the transfer, not the content, don't come back; nor do those beyond the first 30 KiB.
    headers: Sequence[tuple[str, str]]
    body: bytes
    address: str | None = None  #: the IP address that was dialled


@dataclass(frozen=True, slots=True)
class BlobRef:
    """Where a capture lies: one gzip member inside a segment."""

    segment: str  #: its name under the crawl's prefix
    offset: int
    length: int
    sha256: bytes  #: of the body


@dataclass(frozen=True, slots=True)
class Copy:
    """A capture with the bytes that hold it: a gzip member, which is a WARC record as it stands."""

    capture: Capture
    member: bytes


class Blobs(Protocol):
    """The segments of one crawl, in a store that others share. Raises `BlobsUnavailable` when it can't be had."""

    async def put(self, captures: Sequence[Capture]) -> list[BlobRef]:
        """Stores a group as one new segment and returns a reference for each, in order; all of them durable, or none.

        Putting the same captures again (the answer was lost) makes a second segment; both are valid. No captures, no segment.
        """
        ...

    async def get(self, ref: BlobRef) -> Capture | None:
        """What lies there; None when it is gone. Raises `BlobsUnavailable` if the body is not the one that was put."""
        ...

    async def copies(self, refs: Sequence[BlobRef]) -> list[Copy | None]:
        """What lies at each, in order, for whoever copies many: a segment is read once, however many of its records are named.

        None for what is gone, and for what is not what was put: neither can be copied, and the others can. The caller names no
        more than it wants to hold.
        """
        ...

    async def segments(self) -> list[str]:
        """The names of this crawl's whole segments, oldest first."""
        ...

    async def read(self, segment: str) -> bytes | None:
        """A whole segment: a WARC file as it stands. None when it is gone."""
        ...

    async def sweep(self, gone: Callable[[CrawlId], Awaitable[bool]]) -> list[CrawlId]:
        """Deletes everything of each crawl in the store, this one included, that `gone` is true for; names them.

        A store that another ledger's crawls may lie in as well leaves those that were written to within the time to live.
        """
        ...

    async def close(self) -> None: ...
