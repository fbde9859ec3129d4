"""A table of the pages, one row each, as spreadsheets and databases read it: CSV as RFC 4180 has it, in UTF-8, with a header.

Written in parts, so that kills and resumes neither halve, lose nor double a row: see `gossamer.parts`.

A spreadsheet takes a cell that begins with =, +, - or @ for a formula, and a title is what some stranger wrote: opening the table
must not run it. So such a cell gets an apostrophe before it, which spreadsheets read as "this is text" (`guard=no` for readers
that are none). What no reader takes, NULs and halves of characters, becomes U+FFFD. Line breaks stay, in quotes.
"""

import csv
import io
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Final

from gossamer import CrawlInfo, Module, Page
from gossamer.parts import UNFLUSHED_BYTES_MAX, PartFile

#: What a column can hold, by its name.
COLUMNS: Final[Mapping[str, Callable[[Page], str | int]]] = MappingProxyType(
    {
        "id": lambda page: page.id.hex(),
        "url": lambda page: page.url,
        "status": lambda page: page.status,
        "depth": lambda page: page.depth,
        "domain": lambda page: page.domain,
        "fetched_at": lambda page: datetime.fromtimestamp(page.fetched_at, UTC).isoformat(timespec="milliseconds"),
        "bytes": lambda page: page.size,
        "sha256": lambda page: page.sha256.hex(),
        "title": lambda page: page.title,
        "links": lambda page: " ".join(page.links),  # no URL has a blank in it
        "text": lambda page: page.text,
        "html": lambda page: page.html,
    }
)
DEFAULT: Final = "url status depth domain fetched_at bytes sha256 title"

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
_UNREADABLE: Final = re.compile("[\0\ud800-\udfff]")


class Csv(Module):
    """Writes the chosen columns of each page to `path`, by default `<crawl>.csv` among the outputs. The first is always the id."""

    def __init__(self, *, path: Path | None = None, columns: str = DEFAULT, guard: bool = True) -> None:
        self._path = path
        self._columns = _chosen(columns)
        self._guard = guard
        self.form = Table(self._columns)

    def outputs(self, crawl: CrawlInfo) -> Sequence[Path]:
        return [self._path or crawl.out_dir / f"{crawl.id}.csv"]

    async def open(self, crawl: CrawlInfo) -> None:
        self._part = PartFile(self.outputs(crawl)[0], crawl)

    # Async, since it only adds to a buffer: a plain one would pay for the way into a thread and back, page by page.
    async def visit(self, page: Page) -> None:
        self._part.write(page.id, json.dumps([_cell(COLUMNS[name](page), guard=self._guard) for name in self._columns]))

    async def flush(self) -> None:
        await self._part.flush()

    async def close(self) -> None:
        await self._part.close()


class Table:
    """The form of the file: a header and a row for each line, which is a JSON list of its cells."""

    def __init__(self, columns: Sequence[str]) -> None:
        self._columns = columns

    def lines(self, path: Path) -> Iterator[bytes]:
        try:
            file = path.open(encoding="utf-8", errors="replace", newline="")
        except FileNotFoundError:
            return
        csv.field_size_limit(UNFLUSHED_BYTES_MAX)  # no line of a part is longer; Python's own is a short page's text
        with file:
            yield from (json.dumps(row).encode() + b"\n" for row in csv.reader(file))

    @contextmanager
    def writing(self, file: BinaryIO) -> Iterator[Callable[[bytes], object]]:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        rows = csv.writer(text)
        rows.writerow(self._columns)
        try:
            yield lambda line: rows.writerow(json.loads(line))
        finally:
            text.detach()  # flushes; the file is its owner's to close


def _chosen(columns: str) -> tuple[str, ...]:
    names = columns.replace(",", " ").split()
    if strange := [name for name in names if name not in COLUMNS]:
        raise ValueError(f"there is no column {strange[0]!r}; there are {' '.join(COLUMNS)}")
    return tuple(dict.fromkeys(("id", *names)))  # the id first, for the merge finds it there


def _cell(value: str | int, *, guard: bool) -> str:
    text = _UNREADABLE.sub("\ufffd", str(value))
    return f"'{text}" if guard and text.startswith(_FORMULA) else text
