"""A table of the pages as one Parquet file, each column with its type: what pandas, DuckDB, Spark and the like read fastest.

A Parquet file has its directory at its end, so one whose writer was killed can't be read at all, and none can be added to. So the
parts are lines of JSON, as those of `jsonl` are, and the merge at the end of the crawl makes the file of them, a row group at a
time: kills and resumes neither halve, lose nor double a row (see `gossamer.parts`).

pyarrow is needed by the merge alone, but looked for before anything starts.
"""

import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from types import MappingProxyType
from typing import Any, BinaryIO, Final

from gossamer import CrawlInfo, Module, Page
from gossamer.errors import SettingsError
from gossamer.parts import PartFile

#: A row group is as much as is held in memory at a time. Readers like large ones.
GROUP_ROWS: Final = 20_000
GROUP_BYTES: Final = 16 * 1024 * 1024
#: How many rows are held at a time when the file is read back.
READ_ROWS: Final = 500

_MICROSECONDS: Final = 1_000_000
_HALVES: Final = re.compile("[\ud800-\udfff]")

#: What each column holds, in their order.
COLUMNS: Final[Mapping[str, Callable[[Page], object]]] = MappingProxyType(
    {
        "id": lambda page: page.id.hex(),  # first, for the merge finds it there
        "url": lambda page: page.url,
        "status": lambda page: page.status,
        "fetched_at": lambda page: round(page.fetched_at * _MICROSECONDS),
        "depth": lambda page: page.depth,
        "domain": lambda page: page.domain,
        "bytes": lambda page: page.size,
        "sha256": lambda page: page.sha256.hex(),
        "title": lambda page: _text(page.title),
        "links": lambda page: page.links,
        "text": lambda page: _text(page.text),
        "html": lambda page: _text(page.html),
    }
)


class Parquet(Module):
    """Writes what is known of each page to `path`, by default `<crawl>.parquet` among the outputs; its HTML if you ask for it."""

    def __init__(self, *, path: Path | None = None, links: bool = True, text: bool = True, html: bool = False) -> None:
        if find_spec("pyarrow") is None:
            here = f"{sys.executable} -m pip install --require-hashes -r requirements-parquet.lock"
            image = "PARQUET=1 docker compose build"
            raise ImportError(f"it needs pyarrow, which is not installed: {here}; for containers, {image}")
        left_out = {name for name, wanted in (("links", links), ("text", text), ("html", html)) if not wanted}
        self._path = path
        self._columns = tuple(name for name in COLUMNS if name not in left_out)
        self.form = Groups(self._columns)

    def outputs(self, crawl: CrawlInfo) -> Sequence[Path]:
        return [self._path or crawl.out_dir / f"{crawl.id}.parquet"]

    async def open(self, crawl: CrawlInfo) -> None:
        self._part = PartFile(self.outputs(crawl)[0], crawl)

    # Async, since it only adds to a buffer: a plain one would pay for the way into a thread and back, page by page.
    async def visit(self, page: Page) -> None:
        self._part.write(page.id, json.dumps({name: COLUMNS[name](page) for name in self._columns}))

    async def flush(self) -> None:
        await self._part.flush()

    async def close(self) -> None:
        await self._part.close()


class Groups:
    """The form of the file: row groups, of lines that are JSON objects."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns

    def lines(self, path: Path) -> Iterator[bytes]:
        from pyarrow import ArrowInvalid, int64
        from pyarrow.parquet import ParquetFile

        if not path.exists():
            return
        try:
            opened = ParquetFile(path)
        except ArrowInvalid as error:
            raise SettingsError(f"{path} is no Parquet file any more; move it away, and resume the crawl") from error
        with opened as file:
            for batch in file.iter_batches(READ_ROWS):
                at = batch.schema.get_field_index("fetched_at")
                plain = batch.set_column(at, "fetched_at", batch.column(at).cast(int64()))  # as the parts have it
                yield from (json.dumps(row).encode() + b"\n" for row in plain.to_pylist())

    @contextmanager
    def writing(self, file: BinaryIO) -> Iterator[Callable[[bytes], object]]:
        from pyarrow import Table
        from pyarrow.parquet import ParquetWriter

        schema = _schema(self._columns)
        lines: list[bytes] = []
        size = 0

        def write_group() -> None:
            if lines:
                writer.write_table(Table.from_pylist([json.loads(line) for line in lines], schema))
                lines.clear()

        def write(line: bytes) -> None:
            nonlocal size
            lines.append(line)
            size += len(line)
            if len(lines) >= GROUP_ROWS or size >= GROUP_BYTES:
                write_group()
                size = 0

        with ParquetWriter(file, schema, compression="zstd") as writer:
            yield write
            write_group()


def _schema(columns: Sequence[str]) -> Any:
    import pyarrow as arrow

    types = {
        "status": arrow.int16(),
        "fetched_at": arrow.timestamp("us", tz="UTC"),
        "depth": arrow.int32(),
        "bytes": arrow.int64(),
        "links": arrow.list_(arrow.string()),
    }
    return arrow.schema([arrow.field(name, types.get(name, arrow.string()), nullable=False) for name in columns])


def _text(text: str) -> str:
    """Halves of characters, which no UTF-8 has, become U+FFFD."""
    return _HALVES.sub("\ufffd", text)
