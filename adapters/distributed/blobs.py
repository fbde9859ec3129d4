"""Blobs on a server that speaks S3: each segment an object, `<prefix>/<crawl>/segments/<name>.warc.gz`.

An object is there whole or not at all, so a reference is given out when the server has answered; a `put` whose answer was
lost leaves a segment that nobody refers to. It goes with its crawl.

Two stacks may share a bucket, each with a ledger that knows nothing of the other's crawls. So what the ledger here calls gone
is swept only when its newest object has been there for the time to live, too, by the server's own clock. Stacks that share
a bucket do better with a prefix each: a crawl of the other one that stores nothing for so long is not told from a dead one.

A server may delete by itself what nobody sweeps: a bucket that was made here gets such a rule for our prefix. S3 counts in days
from when an object was written, and SeaweedFS notes it down at that very moment; so the rule gives the time to live in whole
days and a week more: with a day, a crawl of two would lose its first pages while it runs. One that runs for longer still must have
a bucket that somebody made, without our rule.
Must not know: what is in a record (`warc.py` does), how S3 is spoken (`s3_bucket.py` does), whether a crawl is alive.
"""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import ceil
from typing import TYPE_CHECKING, Final, TypeVar

from adapters import warc
from adapters.copying import by_segment, cut
from adapters.distributed.s3_place import Place
from adapters.segments import SUFFIX, Names, is_crawl, is_segment, segments_of
from gossamer.clock import Clock
from gossamer.errors import BlobsUnavailable
from gossamer.ids import CrawlId
from gossamer.ports.blobs import BlobRef, Capture, Copy

if TYPE_CHECKING:
    from adapters.distributed.s3_bucket import Bucket

#: As many requests at once; each waits for the network for most of its time.
THREADS: Final = 4

#: A server that takes longer to say that it is well is not well.
CHECK_S: Final = 10.0

#: How long the server's own rule lets an object lie beyond the time to live.
NET_DAYS: Final = 7

_DAY_S: Final = 86_400

T = TypeVar("T")


class S3Blobs:
    """The segments of one crawl in a bucket that its neighbours share: the port `Blobs`. Opening it asks nothing of the server."""

    def __init__(
        self,
        url: str,
        crawl: CrawlId,
        *,
        clock: Clock,
        ttl_s: float,
        access_key: str | None = None,
        secret_key: str | None = None,
        region: str | None = None,
        style: str = "path",
    ) -> None:
        """Raises `SettingsError` if `url` is not `http(s)://host[:port]/bucket[/prefix]`.

        Keys and region that are None are looked for by boto3 in its own places. `style` is where the bucket's name stands:
        `path`, which every server understands, or `auto`, which Amazon wants.
        """
        assert is_crawl(crawl)
        place = Place.of(url)
        self._prefix = place.prefix
        self._crawl = crawl
        self._ttl_s = ttl_s

        def open_bucket() -> "Bucket":
            # boto3 is a quarter of a worker's start, and who stores nothing, while it is idle or as `status`, does without it.
            from adapters.distributed.s3_bucket import Bucket

            return Bucket(
                place,
                access_key=access_key,
                secret_key=secret_key,
                region=region,
                style=style,
                connections=THREADS,
                days=ceil(ttl_s / _DAY_S) + NET_DAYS,
            )

        self._open = open_bucket
        self._opening = threading.Lock()
        self._opened: Bucket | None = None
        self._names = Names(clock, self.segments)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="blobs")

    async def check(self) -> None:
        """Raises `BlobsUnavailable`, with a line that says what is wrong, unless the store can be used."""
        try:
            async with asyncio.timeout(CHECK_S):
                await self._in_thread(lambda: self._bucket.check())
        except TimeoutError as error:
            raise BlobsUnavailable(f"the S3 server does not answer within {CHECK_S:.0f} s") from error

    async def put(self, captures: Sequence[Capture]) -> list[BlobRef]:
        if not captures:
            return []
        name = await self._names.next()

        def pack_and_store() -> list[BlobRef]:
            data, refs = warc.write(name, captures)
            self._bucket.put(self._key(name), data)
            return refs

        return await self._in_thread(pack_and_store)

    async def get(self, ref: BlobRef) -> Capture | None:
        def fetch_and_unpack() -> Capture | None:
            member = self._bucket.get(self._key(ref.segment), ref.offset, ref.length)
            return None if member is None else warc.read(member, ref.sha256)

        return await self._in_thread(fetch_and_unpack) if is_segment(ref.segment) else None

    async def copies(self, refs: Sequence[BlobRef]) -> list[Copy | None]:
        async def copy(segment: str, some: Sequence[BlobRef]) -> list[Copy | None]:
            if not is_segment(segment):
                return cut(None, some)
            return await self._in_thread(lambda: cut(self._bucket.get(self._key(segment)), some))

        return await by_segment(refs, copy)

    async def segments(self) -> list[str]:
        folder = self._folder(self._crawl)
        listing = await self._in_thread(lambda: self._bucket.listing(folder))
        return segments_of(key.removeprefix(folder) for key in listing.keys)

    async def read(self, segment: str) -> bytes | None:
        if not is_segment(segment):
            return None
        return await self._in_thread(lambda: self._bucket.get(self._key(segment)))

    async def sweep(self, gone: Callable[[CrawlId], Awaitable[bool]]) -> list[CrawlId]:
        folders = await self._in_thread(lambda: self._bucket.folders(self._prefix))
        crawls = map(CrawlId, filter(is_crawl, folders))
        return [crawl for crawl in crawls if await gone(crawl) and await self._remove_if_old(crawl)]

    async def close(self) -> None:
        """Waits for nobody: a thread may hang on a server that says nothing, and what it does is nobody's any more."""
        self._threads.shutdown(wait=False, cancel_futures=True)

    async def _remove_if_old(self, crawl: CrawlId) -> bool:
        folder = self._folder(crawl)

        def remove() -> bool:
            listing = self._bucket.listing(folder)
            # Nothing but segments: a bucket may hold more than ours, and any of its folders might be called as a crawl is.
            keys = [f"{folder}{name}{SUFFIX}" for name in segments_of(key.removeprefix(folder) for key in listing.keys)]
            if not keys or listing.age_s is None or listing.age_s < self._ttl_s:
                return False
            self._bucket.delete(keys)
            return True

        return await self._in_thread(remove)

    @property
    def _bucket(self) -> "Bucket":
        """To be asked for in a thread: opening it takes a while."""
        with self._opening:
            if self._opened is None:
                self._opened = self._open()
            return self._opened

    def _folder(self, crawl: CrawlId) -> str:
        return f"{self._prefix}{crawl}/segments/"

    def _key(self, segment: str) -> str:
        return f"{self._folder(self._crawl)}{segment}{SUFFIX}"

    async def _in_thread(self, do: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, do)
