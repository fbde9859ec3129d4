"""`export`: the archive holds each stored page once, in order, where the index says; and what can't be had is said."""

import asyncio
import fcntl
import io
import json
import sqlite3
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from msgspec.structs import replace
from warcio.archiveiterator import ArchiveIterator

from adapters import wiring
from gossamer import kept
from gossamer.clock import Clock, ManualClock
from gossamer.errors import SettingsError
from gossamer.ids import CrawlId
from gossamer.messages import Url
from gossamer.outcomes import Outcome
from gossamer.ports.blobs import Blobs, Capture
from gossamer.records import Closing, Facts, Rules
from gossamer.settings import Storage, load
from services.controller import cli, crawls
from services.controller.export import cdxj, copying
from services.controller.export.progress import open_progress
from services.controller.main import obey
from tests.a_module import an_id
from tests.unit.a_crawl import NOW, FakeMaker, World

ID = CrawlId("c-1")
WARC, INDEX = Path("out/pages.warc.gz"), Path("out/pages.cdxj")


@dataclass(frozen=True)
class Record:
    """What another reader finds in the archive."""

    kind: str
    url: str | None
    offset: int
    length: int
    body: bytes
    fields: dict[str, str] = field(compare=False)


def records(warc: Path = WARC) -> list[Record]:
    found = []
    with warc.open("rb") as file:
        archive = ArchiveIterator(file, check_digests="raise")
        for record in archive:
            body = record.content_stream().read()
            fields = dict(record.rec_headers.headers)
            offset, length = archive.get_record_offset(), archive.get_record_length()
            found.append(Record(record.rec_type, fields.get("WARC-Target-URI"), offset, length, body, fields))
    return found


def index_lines(index: Path = INDEX) -> list[tuple[str, str, dict[str, str]]]:
    parts = [line.split(" ", 2) for line in index.read_text(encoding="ascii").splitlines()]
    return [(key, moment, json.loads(fields)) for key, moment, fields in parts]


def capture(url: str, body: bytes, *, content_type: str = "text/html; charset=utf-8", at: float = NOW) -> Capture:
    return Capture(url, at, 200, (("Content-Type", content_type),), body, "192.0.2.1")


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def world() -> World:
    return World(FakeMaker(clock=ManualClock(NOW)))


def stored(*captures: Capture, groups: int = 2, settings: dict[str, str] | None = None) -> None:
    """A crawl that stored these, in this order, so many to a segment; and one page besides that it did not."""
    text = kept.to_text(load(settings or {}, {}, None).settings)

    async def crawl() -> None:
        with crawls.begin(ID, None, ["http://a.example/"]) as place:
            ledger = wiring.open_file(place.folder, ManualClock(NOW))
            await ledger.create(Rules(delay_s=0.0, settings=text))
            await ledger.close()
            for at in range(0, len(captures), groups):
                await store(place, captures[at : at + groups], at)
            blobs = wiring.open_directory(place.folder, ID, ManualClock(NOW))
            await blobs.put([capture("http://nobody.example/", b"a segment that nobody refers to")])
            await blobs.close()

    asyncio.run(crawl())


async def store(place: crawls.Place, captures: Sequence[Capture], first: int) -> None:
    """Stores these in one segment, as the pages from this number on; and has one page more fetched, which is not stored."""
    ledger = wiring.open_file(place.folder, ManualClock(NOW))
    blobs = wiring.open_directory(place.folder, ID, ManualClock(NOW))
    seat = await ledger.register("test")
    facts = [Facts(blob=ref) for ref in await blobs.put(captures)]
    for number, one in enumerate([*facts, Facts()], first):
        url = captures[number - first].url if one.blob else f"http://gone.example/{number}"
        id = an_id(number if one.blob else 1_000 + number)
        await ledger.add([Url(id, url, f"host{id.hex()}")])
        await ledger.route([(id, 50)])
        await ledger.begin(seat, [id])
        await ledger.finish(seat, [Closing(id=id, outcome=Outcome.DONE if one.blob else Outcome.GONE, facts=one)])
    await ledger.release(seat)
    await ledger.close()
    await blobs.close()


def exported(world: World, *words: str, warc: Path = WARC) -> int:
    return obey(cli.read(["export", "--warc", str(warc), *words], {}), world.outside)


PAGES = [capture(f"http://{host}.example/{n}", b"page %d" % n, at=NOW + n) for n, host in enumerate("cabca")]


def test_the_archive_begins_with_who_made_it_and_has_each_page_once_in_the_order_of_storing(world: World) -> None:
    stored(*PAGES, settings={"scope": "host", "contact": "me@example.com"})

    assert exported(world) == 0

    info, *pages = records()
    assert info.kind == "warcinfo"
    assert info.fields["WARC-Filename"] == "pages.warc.gz"
    assert info.body.decode().splitlines()[:5] == [
        "software: Gossamer/0.1.0",
        "format: WARC File Format 1.1",
        "isPartOf: c-1",
        "robots: classic",
        "gossamer-seed: http://a.example/",
    ]
    assert {"gossamer-scope: host", "gossamer-contact: me@example.com", "gossamer-max-pages: 10000"} <= {
        *info.body.decode().splitlines()
    }
    assert [(page.kind, page.url, page.body) for page in pages] == [("response", each.url, each.body) for each in PAGES]
    assert world.stdout.getvalue().startswith("Crawl c-1: 5 pages, ")
    assert sorted(Path("out").iterdir()) == [INDEX, WARC]


def test_the_index_is_sorted_and_says_where_each_record_lies(world: World) -> None:
    stored(*PAGES)

    exported(world)

    lines = index_lines()
    assert [(key, moment) for key, moment, _ in lines] == [
        ("example,a)/1", "20251118142641"),
        ("example,a)/4", "20251118142644"),
        ("example,b)/2", "20251118142642"),
        ("example,c)/0", "20251118142640"),
        ("example,c)/3", "20251118142643"),
    ]
    assert INDEX.read_bytes().splitlines() == sorted(INDEX.read_bytes().splitlines())
    by_place = {(record.offset, record.length): record for record in records()}
    for _, _, fields in lines:
        record = by_place[int(fields["offset"]), int(fields["length"])]
        assert (record.url, record.fields["WARC-Payload-Digest"]) == (fields["url"], fields["digest"])
        assert (fields["mime"], fields["status"], fields["filename"]) == ("text/html", "200", "pages.warc.gz")


def test_records_are_copied_as_they_are_and_few_are_held(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copying, "PAGES_AT_ONCE", 2)
    monkeypatch.setattr(copying, "BYTES_AT_ONCE", 1)
    monkeypatch.setattr(cdxj, "RUN_LINES", 2)
    stored(*PAGES, groups=3)

    exported(world)

    segments = b"".join(path.read_bytes() for path in sorted(Path("crawls/c-1/segments").iterdir())[:-1])
    assert WARC.read_bytes().endswith(segments)
    assert len(index_lines()) == len(PAGES)
    assert INDEX.read_bytes().splitlines() == sorted(INDEX.read_bytes().splitlines())


@pytest.mark.parametrize(
    ("content_type", "mime"),
    [
        pytest.param("Text/HTML;charset=x", "text/html", id="small letters, without parameters"),
        pytest.param("", "unk", id="nothing"),
        pytest.param('a"b\u00e9 c', 'a"b\u00e9 c', id="not one at all"),
        pytest.param("a\r\nWARC/1.1", "a\r\nwarc/1.1", id="one that would be a line of its own"),
    ],
)
def test_whatever_a_site_says_is_one_line_of_the_index(world: World, content_type: str, mime: str) -> None:
    stored(capture("http://a.example/?q=%22%7B%0A", b"x", content_type=content_type))

    exported(world)

    ((key, _, fields),) = index_lines()
    assert key == 'example,a)/?q="{%0a'
    assert fields["mime"] == mime


def test_a_crawl_that_stored_nothing_is_an_archive_without_pages(world: World) -> None:
    stored()

    assert exported(world) == 0

    assert [record.kind for record in records()] == ["warcinfo"]
    assert INDEX.read_bytes() == b""


def test_pages_that_are_gone_or_damaged_are_counted_and_the_others_copied(world: World) -> None:
    stored(*PAGES, groups=2)
    first, second, *_ = sorted(Path("crawls/c-1/segments").iterdir())
    first.unlink()
    second.write_bytes(second.read_bytes()[:-10])  # the last record of it is torn

    assert exported(world) == 7

    assert [record.url for record in records()[1:]] == [PAGES[2].url, PAGES[4].url]
    assert len(index_lines()) == 2
    assert world.stdout.getvalue().splitlines()[1:] == [
        "3 pages missing: gone from the store, or damaged there. The first of them:",
        *(f"  {PAGES[at].url}" for at in (0, 1, 3)),
    ]


def test_a_ledger_that_does_not_name_all_its_pages_is_not_taken_for_one_that_has_fewer(world: World) -> None:
    stored(*PAGES)
    with closing(sqlite3.connect("crawls/c-1/ledger.sqlite")) as ledger:
        ledger.execute("DELETE FROM page WHERE place > 3")
        ledger.commit()

    assert exported(world) == 2

    assert "kept no list of its pages" in world.stderr.getvalue()
    assert list(Path("out").iterdir()) == []


@pytest.mark.parametrize("there", [WARC, INDEX])
def test_what_is_there_is_not_written_over_unless_that_is_asked_for(world: World, there: Path) -> None:
    stored(*PAGES)
    there.parent.mkdir()
    there.write_text("mine")

    assert exported(world) == 2
    assert world.stderr.getvalue() == f"controller.py: {there} exists; name another file, or write over it with --force\n"
    assert [path.read_text() for path in Path("out").iterdir()] == ["mine"]

    assert exported(world, "--force") == 0
    assert len(records()) == len(index_lines()) + 1 == len(PAGES) + 1


def test_an_export_that_fails_leaves_what_was_there(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    stored(*PAGES)
    exported(world)
    before = {path: path.read_bytes() for path in Path("out").iterdir()}

    def full(*_: object, **__: object) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(cdxj, "line", full)
    assert exported(world, "--force") == 4

    assert world.stderr.getvalue() == "controller.py: out/pages.warc.gz can't be written: No space left on device\n"
    assert {path: path.read_bytes() for path in Path("out").iterdir()} == before


def test_what_a_killed_export_left_is_taken_over_and_what_another_writes_is_not(world: World) -> None:
    stored(*PAGES)
    left = Path("out/.pages.warc.gz.exporting")
    left.parent.mkdir()
    left.write_bytes(b"half a record")

    with left.open("ab") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert exported(world) == 2
        assert world.stderr.getvalue() == "controller.py: another export is writing out/pages.warc.gz\n"
    assert exported(world) == 0

    assert len(records()) == len(PAGES) + 1
    assert not left.exists()


def test_while_the_crawl_goes_on_it_is_what_was_stored_when_the_export_began(world: World) -> None:
    stored(*PAGES[:3])

    def one_more(place: crawls.Place, storage: Storage, clock: Clock) -> Blobs:
        with ThreadPoolExecutor(1) as crawler:
            crawler.submit(asyncio.run, store(place, PAGES[3:], 3)).result()
        return wiring.open_directory(place.folder, place.id, clock)

    command = cli.read(["export", "--warc", str(WARC)], {})
    assert obey(command, replace(world.outside, open_blobs=one_more)) == 0
    assert [record.url for record in records()[1:]] == [each.url for each in PAGES[:3]]

    assert exported(world, "--force") == 0
    assert [record.url for record in records()[1:]] == [each.url for each in PAGES]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        pytest.param((), "export needs a file: python controller.py export --warc pages.warc.gz", id="no file"),
        pytest.param(("--warc", "x.warc"), "it takes a name that ends in .warc.gz", id="a name that says something else"),
        pytest.param(("--warc", ".warc.gz"), "it takes a name that ends in .warc.gz", id="an ending alone"),
    ],
)
def test_what_can_not_be_is_said_in_one_line(words: Sequence[str], said: str) -> None:
    with pytest.raises(SettingsError, match=said) as refused:
        cli.read(["export", *words], {})

    assert "\n" not in str(refused.value)


def test_a_place_that_can_not_be_written_to_is_said_in_one_line(world: World) -> None:
    stored(*PAGES)
    Path("out").write_text("no folder")

    assert exported(world) == 2

    assert world.stderr.getvalue() == "controller.py: out/pages.warc.gz can't be written: File exists\n"


def test_a_long_copy_says_how_far_it_is_every_few_seconds() -> None:
    clock, stderr = ManualClock(NOW), io.StringIO()

    with open_progress(2_000, stderr, clock) as show:
        for pages in range(0, 2_000, 100):
            show(pages, pages * 1_000)
            clock.advance(1)

    assert stderr.getvalue().splitlines()[0] == "500 of 2,000 pages, 500 KB"
    assert len(stderr.getvalue().splitlines()) == 3


def test_on_a_terminal_it_is_a_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    stderr = Terminal()

    with open_progress(10, stderr, ManualClock(NOW)) as show:
        show(10, 1)

    assert "100%" in stderr.getvalue()
