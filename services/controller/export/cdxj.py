"""The index of an archive: CDXJ, one line a record, sorted by key and time, with where the record lies as JSON.

A tool looks a URL up by searching the file in halves, so the lines are sorted as bytes are. There may be more of them than fit in
memory: they are sorted in runs, which are merged at the end.
Knows: one line of each record. Must not know: how the archive is written.
"""

import heapq
import json
from collections.abc import Iterable
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, BinaryIO, Final, Self

from gossamer.ports.blobs import Capture
from services.controller.export.surt import surt

#: Lines that are held, and sorted, at a time: some 15 MB.
RUN_LINES: Final = 50_000


def line(capture: Capture, sha256: bytes, *, offset: int, length: int, filename: str) -> bytes:
    """The line of one record. Numbers are written as texts, as the other makers of such files do."""
    moment = datetime.fromtimestamp(capture.fetched_at, UTC)
    fields = {
        "url": capture.url,
        "mime": _mime(capture.headers),
        "status": str(capture.status),
        "digest": f"sha256:{sha256.hex()}",
        "length": str(length),
        "offset": str(offset),
        "filename": filename,
    }
    # JSON escapes whatever is not ASCII, line breaks too: nothing that a site says makes a second line.
    return f"{surt(capture.url)} {moment:%Y%m%d%H%M%S} {json.dumps(fields)}\n".encode("ascii")


class Sorted:
    """Lines in any number, to be written in order. The runs lie beside the target, without a name: a kill leaves nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._held: list[bytes] = []
        self._runs: list[IO[bytes]] = []
        self._files = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._files.close()

    def add(self, one: bytes) -> None:
        self._held.append(one)
        if len(self._held) >= RUN_LINES:
            self._set_aside()

    def write(self, file: BinaryIO) -> None:
        self._held.sort()
        for run in self._runs:
            run.seek(0)
        runs: list[Iterable[bytes]] = [*self._runs, self._held]
        file.writelines(heapq.merge(*runs))

    def _set_aside(self) -> None:
        self._held.sort()
        run = self._files.enter_context(TemporaryFile(dir=self._folder))  # noqa: SIM115  # it is one, of ours
        run.writelines(self._held)
        self._runs.append(run)
        self._held = []


def _mime(headers: Iterable[tuple[str, str]]) -> str:
    for name, value in headers:
        if name.lower() == "content-type":
            return value.partition(";")[0].strip().lower() or "unk"
    return "unk"  # as those tools call what they aren't told
