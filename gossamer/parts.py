"""Parts: how a file with one record a page is written by many workers that may die at any moment, and each is in it once.

A page may be visited twice (its worker died before it was closed), and a kill may halve a line. So nobody writes to the file
itself: each worker has a part of its own for each of its starts, and `merge` makes the file of them at the end. It keeps the
lines of the pages that the crawl has as stored, each once. For that every line carries its page's id, as 32 hex digits before
anything else that looks like such an id: as the first column, or as the first key of an object.

Parts are lines always: half a line is known by its missing end, and what was whole before it stays readable. The file itself has
the form that its module wants (`gossamer.forms`); lines, unless it says otherwise.

Knows: files, lines and ids. Must not know: what stands in a line, or how the ledger is asked.
Does I/O, though it is part of the vocabulary: the authors of modules need it as they need `Module`.
"""

import asyncio
import contextlib
import os
import re
import threading
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from gossamer.forms import LINES, Form
from gossamer.ids import Epoch, UrlId, WorkerId
from gossamer.module import CrawlInfo
from gossamer.records import Seat

#: Lines that wait for `flush`. It is called every few dozen pages, so more than this means that it is not, or keeps failing.
UNFLUSHED_BYTES_MAX: Final = 64 * 1024 * 1024

#: What a merge holds in memory at a time besides the ids, and asks about at once.
BATCH_LINES: Final = 1000
BATCH_BYTES: Final = 8 * 1024 * 1024


class PartFile:
    """One worker's part of `path`, for one of its starts.

    To be made in `Module.open`; fails there if the file could not be written. May be used from several threads.
    """

    def __init__(self, path: Path, crawl: CrawlInfo) -> None:
        if path.is_dir():
            raise IsADirectoryError(f"{path} is a directory")  # else the merge would be the first to notice, hours later
        folder = parts_folder(path)
        folder.mkdir(parents=True, exist_ok=True)
        # A new file for each start: what follows a halved line would be lost with it. O_EXCL: two with one name is a mistake.
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        self._path = folder / _name(crawl.worker, crawl.epoch)
        self._file = os.open(self._path, flags, 0o666)
        try:
            _sync_folder(folder)
            _sync_folder(folder.parent)
        except OSError:  # whoever tries again, when there is room, must find the name free
            os.close(self._file)
            self._path.unlink()
            raise
        self._lines: list[bytes] = []  # written to the end of `_durable_bytes` at the next flush
        self._unflushed_bytes = 0
        self._durable_bytes = 0
        self._buffer = threading.Lock()  # never held over I/O: `write` is called on the event loop
        self._flushing = threading.Lock()

    def write(self, id: UrlId, line: str) -> None:
        """Takes the one line of a page; in memory until `flush`. A page that has more to say says it in one line.

        Raises ValueError for a line that could not be read back, BufferError when nothing was flushed for too long.
        """
        data = line.encode("utf-8", "backslashreplace") + b"\n"
        if data.count(b"\n") > 1 or b"\0" in data:
            raise ValueError("a line can't have a line break or a NUL in it")
        if _id_in(data) != id:
            raise ValueError(f"the line must begin with its page's id, {id.hex()}, before anything else of 32 hex digits")
        with self._buffer:
            if self._unflushed_bytes + len(data) > UNFLUSHED_BYTES_MAX:
                raise BufferError(f"more than {UNFLUSHED_BYTES_MAX} bytes of lines are not flushed")
            self._lines.append(data)
            self._unflushed_bytes += len(data)

    async def flush(self) -> None:
        """On the disk, when it returns, is every line that was written before it was called. If it raises, call it again."""
        await asyncio.to_thread(self._flush)

    async def close(self) -> None:
        """Flushes, and closes the file even if that raises."""
        await asyncio.to_thread(self._close)

    def _flush(self) -> None:
        with self._flushing:
            with self._buffer:
                lines = self._lines.copy()
            if not lines:
                return
            data = b"".join(lines)
            # Always at the end of what is durable: a second try writes over what the first left, be it half a line or pages
            # that a failed fsync has dropped from the cache.
            _write_all(self._file, data, self._durable_bytes)
            os.fsync(self._file)
            with self._buffer:
                del self._lines[: len(lines)]
                self._unflushed_bytes -= len(data)
            self._durable_bytes += len(data)

    def _close(self) -> None:
        try:
            self._flush()
        finally:
            # Under the lock, in the thread: whoever stopped waiting for a slow disk must not close the file under its write,
            # which would then go to whatever file gets the same number.
            with self._flushing:
                file, self._file = self._file, -1
                if file != -1:
                    os.close(file)
                    self._leave_nothing_empty()

    def _leave_nothing_empty(self) -> None:
        """A worker that saw no page leaves no part: it may have come after the merge, and would seem to be another crawl's."""
        with contextlib.suppress(OSError):
            if self._path.stat().st_size == 0:
                self._path.unlink()
                self._path.parent.rmdir()


async def merge(
    path: Path,
    stored: Callable[[Sequence[UrlId]], Awaitable[Sequence[bool]]],
    living: Collection[Seat] = (),
    form: Form = LINES,
) -> int:
    """Makes `path` of its parts and of what it was before; how many records it has.

    Kept is the first line of each id for which `stored` says yes (asked about many at once). The file is replaced in one
    step, and the parts are removed after it: a merge that was killed can be repeated, and a crawl that is resumed later merges
    again. To be called by one process. Parts of workers that live are left as they are: more may come into them.

    Memory: the ids that were kept, and a batch of lines.
    """
    names = {_name(seat.worker, seat.epoch) for seat in living}
    parts = [part for part in _parts(path) if part.name not in names]
    kept: set[UrlId] = set()
    with _replacing(path, form) as write:
        # The merged file first: its records keep their order when a resumed crawl adds to them.
        for batch in _batches(chain(form.lines(path), *map(LINES.lines, parts))):
            new: dict[UrlId, bytes] = {}
            for id, line in batch:
                if id not in kept:
                    new.setdefault(id, line)
            verdicts = await stored(list(new)) if new else ()
            for (id, line), is_stored in zip(new.items(), verdicts, strict=True):
                if is_stored:
                    write(line)
                    kept.add(id)
    _remove(path, parts)
    return len(kept)


def taken(path: Path) -> bool:
    """Whether an earlier crawl left something there, which a new one would mix with its own."""
    return path.exists() or bool(_parts(path))


def parts_folder(path: Path) -> Path:
    return path.with_name(path.name + ".parts")


_SUFFIX: Final = ".part"
_ID: Final = re.compile(rb"(?<![0-9a-f])[0-9a-f]{32}(?![0-9a-f])").search


def _name(worker: WorkerId, epoch: Epoch) -> str:
    return f"{worker}-{epoch}{_SUFFIX}"


def _id_in(line: bytes) -> UrlId | None:
    match = _ID(line)
    return UrlId(bytes.fromhex(match[0].decode())) if match else None


def _write_all(file: int, data: bytes, offset: int) -> None:
    view = memoryview(data)
    while view:
        count = os.pwrite(file, view, offset)
        view, offset = view[count:], offset + count


def _parts(path: Path) -> tuple[Path, ...]:
    return tuple(sorted(parts_folder(path).glob(f"*{_SUFFIX}")))


def _batches(lines: Iterable[bytes]) -> Iterator[list[tuple[UrlId, bytes]]]:
    batch: list[tuple[UrlId, bytes]] = []
    size = 0
    for id, line in _whole(lines):
        batch.append((id, line))
        size += len(line)
        if len(batch) >= BATCH_LINES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    yield batch


def _whole(lines: Iterable[bytes]) -> Iterator[tuple[UrlId, bytes]]:
    """The whole ones. A halved one has no end; where a machine lost its power there may also be NULs in the place of data."""
    for line in lines:
        id = _id_in(line)
        if id is not None and line.endswith(b"\n") and b"\0" not in line:
            yield id, line


@contextlib.contextmanager
def _replacing(path: Path, form: Form) -> Iterator[Callable[[bytes], object]]:
    """Writes a file that takes the place of `path` at the end, whole and durable, or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(path.name + ".merging")
    try:
        with temporary.open("wb") as file:
            with form.writing(file) as write:
                yield write
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)  # a full disk is a likely reason
        raise
    _sync_folder(path.parent)


def _remove(path: Path, parts: Iterable[Path]) -> None:
    for part in parts:
        part.unlink(missing_ok=True)
    with contextlib.suppress(OSError):  # there is none, or somebody put something into it: not ours to remove
        parts_folder(path).rmdir()


def _sync_folder(folder: Path) -> None:
    """A file's name is durable only when its folder is."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
