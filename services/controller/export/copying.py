"""The copying: stored pages, in the order in which they were stored, from where they lie into the archive and its index.

Records are copied as they are, still compressed. What the ledger has as stored is copied once, and nothing else; also while the
crawl goes on: then it is what was stored when the copying began. Held in memory are a few megabytes of records.
"""

from collections.abc import AsyncIterator, Iterator, Sequence
from typing import BinaryIO, Final

import msgspec

from gossamer import kept
from gossamer.errors import SettingsError
from gossamer.ports.blobs import BlobRef, Blobs, Copy
from gossamer.ports.ledger import Ledger
from gossamer.records import UrlRecord
from services.controller.crawls import Place
from services.controller.exits import Exit
from services.controller.export import cdxj
from services.controller.export.files import Target, writing
from services.controller.export.progress import open_progress
from services.controller.export.warcinfo import warcinfo
from services.controller.outside import Outside
from services.controller.reading import ledger_of
from services.controller.wording import safe, several, size

#: Asked of the ledger at once.
PAGES_AT_ONCE: Final = 1_000
#: Asked of the blob store at once, and held.
BYTES_AT_ONCE: Final = 8 * 1024 * 1024
#: Of pages that are missing, the few that are named.
NAMED: Final = 5


class Stored(msgspec.Struct, frozen=True):
    """A page that the ledger has as stored."""

    url: str
    ref: BlobRef


async def export(place: Place, target: Target, outside: Outside) -> Exit:
    """Writes the archive and says what is in it. Raises `SettingsError` and `EngineUnavailable`; then there is none."""
    async with ledger_of(place, outside) as ledger:
        crawl, total = await ledger.crawl(), (await ledger.counts()).stored
        settings = kept.from_text(crawl.rules.settings, {}).settings
        blobs = outside.open_blobs(place, settings.storage, outside.clock)
        try:
            with writing(target) as (file, index), cdxj.Sorted(target.warc.parent) as lines:
                archive = _Archive(file, lines, target.warc.name)
                archive.begin(warcinfo(place.id, place.seeds, settings, filename=target.warc.name, now=outside.clock.now()))
                with open_progress(total, outside.stderr, outside.clock) as show:
                    async for stored in _stored(ledger, total):
                        await archive.add(stored, blobs)
                        show(archive.pages + archive.missing, archive.size)
                if archive.pages + archive.missing < total:
                    raise SettingsError(f"crawl {place.id} was begun by a version that kept no list of its pages; start it again")
                lines.write(index)
        finally:
            await blobs.close()
    outside.stdout.write(_said(place, target, archive))
    return Exit.INCOMPLETE if archive.missing else Exit.DONE


class _Archive:
    """The archive as far as it is written."""

    def __init__(self, file: BinaryIO, lines: cdxj.Sorted, name: str) -> None:
        self._file, self._lines, self._name = file, lines, name
        self.size = 0
        self.pages = 0
        self.missing = 0
        self.named: list[str] = []  # the first few of those that are missing

    def begin(self, info: bytes) -> None:
        self._file.write(info)
        self.size = len(info)

    async def add(self, stored: Sequence[Stored], blobs: Blobs) -> None:
        copies = await blobs.copies([each.ref for each in stored])
        for each, copy in zip(stored, copies, strict=True):
            if copy is None:
                self._miss(each.url)
            else:
                self._add(copy, each.ref.sha256)

    def _miss(self, url: str) -> None:
        self.missing += 1
        if len(self.named) < NAMED:
            self.named.append(url)

    def _add(self, copy: Copy, sha256: bytes) -> None:
        length = len(copy.member)
        self._lines.add(cdxj.line(copy.capture, sha256, offset=self.size, length=length, filename=self._name))
        self._file.write(copy.member)
        self.size += length
        self.pages += 1


async def _stored(ledger: Ledger, total: int) -> AsyncIterator[list[Stored]]:
    """The first so many stored pages, in groups that may be held at a time."""
    after = 0
    while after < total and (told := await ledger.pages(after, min(PAGES_AT_ONCE, total - after))):
        after = told[-1][0]
        for group in _groups([_of(record) for _, record in told]):
            yield group


def _of(record: UrlRecord) -> Stored:
    assert record.facts is not None
    assert record.facts.blob is not None, "that is what stored means"
    return Stored(record.url.url, record.facts.blob)


def _groups(stored: Sequence[Stored]) -> Iterator[list[Stored]]:
    group: list[Stored] = []
    size = 0
    for each in stored:
        if group and size + each.ref.length > BYTES_AT_ONCE:
            yield group
            group, size = [], 0
        group.append(each)
        size += each.ref.length
    if group:
        yield group


def _said(place: Place, target: Target, archive: _Archive) -> str:
    warc, index = safe(str(target.warc), 500), safe(str(target.index), 500)
    lines = [f"Crawl {place.id}: {several(archive.pages, 'page')}, {size(archive.size)}, in {warc}; the index is {index}."]
    if archive.missing:
        lines.append(f"{several(archive.missing, 'page')} missing: gone from the store, or damaged there. The first of them:")
        lines += [f"  {safe(url, 500)}" for url in archive.named]
    return "\n".join(lines) + "\n"
