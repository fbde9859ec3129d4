"""Blobs in a directory: each segment a file, `<root>/<crawl>/segments/<name>.warc.gz`.

A segment is written under a temporary name, made durable, and then renamed; so whatever has a segment's name is whole, at any
moment and after any crash.
Must not know: what is in a record (`warc.py` does), whether a crawl is alive (it is told). What others keep in `<root>` stays.
"""

import asyncio
import os
import re
import shutil
from collections.abc import Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

from adapters import warc
from adapters.copying import by_segment, cut
from adapters.segments import NAME, SUFFIX, Names, is_crawl, is_segment, segments_of
from gossamer.clock import Clock, SystemClock
from gossamer.errors import BlobsUnavailable
from gossamer.ids import CrawlId
from gossamer.pauses import lacks_room
from gossamer.ports.blobs import BlobRef, Capture, Copy

#: One segment may wait for the disk while another is read. Threads of our own: in the event loop's a hung module would hold up the
#: store.
THREADS: Final = 2

_LEFTOVER: Final = re.compile(rf"\.{NAME.pattern}\.part")

T = TypeVar("T")


class DirectoryBlobs:
    """The segments of one crawl in a directory that its neighbours share: the port `Blobs`. Opening it changes nothing there."""

    def __init__(self, root: Path, crawl: CrawlId, clock: Clock | None = None) -> None:
        assert is_crawl(crawl)
        self._root = root
        self._directory = root / crawl / "segments"
        self._names = Names(clock or SystemClock(), self.segments)
        self._threads = ThreadPoolExecutor(THREADS, thread_name_prefix="blobs")

    async def remove_leftovers(self) -> None:
        """Deletes what a crash left of segments half written. For the crawl's owner alone, before its first `put`.

        Whoever only reads must not call it. If another process is writing all the same, its `put` fails and gives no reference.
        """
        await self._in_thread(lambda: _remove_leftovers(self._directory))

    async def put(self, captures: Sequence[Capture]) -> list[BlobRef]:
        if not captures:
            return []
        name = await self._names.next()
        # Packed here: in a thread it would fight over Python's lock with the loop at each page.
        data, refs = warc.write(name, captures)
        await self._in_thread(lambda: _store(self._path(name), data))
        return refs

    async def get(self, ref: BlobRef) -> Capture | None:
        def fetch_and_unpack() -> Capture | None:
            member = _load(self._path(ref.segment), ref.offset, ref.length)
            return None if member is None else warc.read(member, ref.sha256)

        return await self._in_thread(fetch_and_unpack) if is_segment(ref.segment) else None

    async def copies(self, refs: Sequence[BlobRef]) -> list[Copy | None]:
        async def copy(segment: str, some: Sequence[BlobRef]) -> list[Copy | None]:
            if not is_segment(segment):
                return cut(None, some)
            return await self._in_thread(lambda: cut(_load(self._path(segment), 0, -1), some))

        return await by_segment(refs, copy)

    async def segments(self) -> list[str]:
        return await self._in_thread(lambda: segments_of(_names(self._directory)))

    async def read(self, segment: str) -> bytes | None:
        if not is_segment(segment):
            return None
        return await self._in_thread(lambda: _load(self._path(segment), 0, -1))

    async def sweep(self, gone: Callable[[CrawlId], Awaitable[bool]]) -> list[CrawlId]:
        crawls = await self._in_thread(lambda: _crawls(self._root))
        swept = [crawl for crawl in crawls if await gone(crawl)]

        def remove() -> None:
            for crawl in swept:
                _remove_segments(self._root / crawl)

        await self._in_thread(remove)
        return swept

    async def close(self) -> None:
        # Not in one of the threads that it waits for.
        await asyncio.to_thread(self._threads.shutdown)

    def _path(self, segment: str) -> Path:
        return self._directory / f"{segment}{SUFFIX}"

    async def _in_thread(self, do: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._threads, do)
        except OSError as error:
            raise BlobsUnavailable(f"the blob directory can't be used: {error}", full=lacks_room(error)) from error


def _store(path: Path, data: bytes) -> None:
    """Leaves the file there, whole and durable, or raises and leaves nothing that could be taken for it."""
    _make_directory(path.parent)
    temporary = path.with_name(f".{path.name.removesuffix(SUFFIX)}.part")
    try:
        with temporary.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        # Not before the bytes are on the disk: a name that survives a power cut must not name an empty file.
        temporary.replace(path)
        _sync(path.parent)
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise


def _make_directory(directory: Path) -> None:
    """As `mkdir -p`, each new directory durable in its parent."""
    if directory.is_dir():
        return
    _make_directory(directory.parent)
    with suppress(FileExistsError):
        directory.mkdir()
    _sync(directory.parent)


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _load(path: Path, offset: int, length: int) -> bytes | None:
    try:
        with path.open("rb") as file:
            file.seek(offset)
            return file.read(length)
    except FileNotFoundError:
        return None


def _names(directory: Path) -> list[str]:
    try:
        return os.listdir(directory)
    except FileNotFoundError:
        return []


def _remove_leftovers(directory: Path) -> None:
    for name in _names(directory):
        if _LEFTOVER.fullmatch(name):
            (directory / name).unlink(missing_ok=True)


def _crawls(root: Path) -> list[CrawlId]:
    """The crawls that have segments here. A symbolic link is none: it leads to what is not ours to delete."""
    names = sorted(name for name in _names(root) if is_crawl(name))
    directories = ((name, root / name, root / name / "segments") for name in names)
    return [CrawlId(name) for name, *both in directories if all(path.is_dir() and not path.is_symlink() for path in both)]


def _remove_segments(crawl: Path) -> None:
    with suppress(FileNotFoundError):  # another process is sweeping as well
        shutil.rmtree(crawl / "segments")
    # The directory may hold more than segments: the ledger's file, say.
    with suppress(OSError):
        crawl.rmdir()
