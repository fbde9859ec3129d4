"""The modules that come along: jsonl and noop."""

import json
from pathlib import Path

import pytest

from gossamer.clock import SystemClock
from gossamer.options import parse_spec
from gossamer.outcomes import Flag
from gossamer.parts import merge
from gossamer.pauses import Pauses
from services.worker.plugins import load
from services.worker.visit import Visitor
from tests.a_module import a_crawl, a_page, all_of_them, crawled


def names_in(folder: Path) -> list[str]:
    return sorted(each.name for each in folder.iterdir())


async def test_jsonl_writes_one_object_a_page(tmp_path: Path) -> None:
    page = a_page(7, title='A "title"\nof two lines, 東京', sha256=bytes(range(32)))

    (path,) = await crawled("jsonl", tmp_path, page, a_page(8))

    assert path == tmp_path / "crawl.jsonl"
    first, second = (json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())
    assert first == {
        "id": "00000000000000000000000000000007",
        "url": "http://host/7",
        "status": 200,
        "depth": 1,
        "fetched_at": 1_700_000_000.5,
        "bytes": 24,
        "sha256": bytes(range(32)).hex(),
        "title": 'A "title"\nof two lines, 東京',
        "links": ["http://host/a", "http://host/b"],
    }
    assert next(iter(first)) == "id", "where the merge looks for it"
    assert second["url"] == "http://host/8"


async def test_jsonl_writes_where_it_is_told_to(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "pages.jsonl"

    assert await crawled(f"jsonl:path={path}", tmp_path, a_page()) == [path]

    assert names_in(path.parent) == ["pages.jsonl"]


@pytest.mark.parametrize("title", ["\ud800", "\0", "\u2028", "\x1b[31m", "0" * 32, "f" * 100_000, "</script>"])
async def test_jsonl_writes_any_title(tmp_path: Path, title: str) -> None:
    (path,) = await crawled("jsonl", tmp_path, a_page(title=title))

    assert path.read_bytes().isascii()
    assert json.loads(path.read_text())["title"] == title


async def test_noop_wants_nothing_and_leaves_nothing(tmp_path: Path) -> None:
    visitor = Visitor(load([parse_spec("noop")]), timeout_s=30, pauses=Pauses(SystemClock()))

    assert not visitor.wants_pages
    assert await crawled("noop", tmp_path, a_page()) == []
    assert names_in(tmp_path) == []


async def test_a_full_disk_costs_lines_and_no_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    visitor = Visitor(load([parse_spec("jsonl")]), timeout_s=30, pauses=Pauses(SystemClock()))
    await visitor.open(a_crawl(tmp_path))
    monkeypatch.setattr("os.pwrite", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))

    assert await visitor.visit(a_page(1)) == frozenset()
    assert await visitor.flush() == {Flag.MODULE_FAILED}
    monkeypatch.undo()
    assert await visitor.visit(a_page(2)) == frozenset()
    assert await visitor.flush() == frozenset()
    await visitor.close()

    assert await merge(tmp_path / "crawl.jsonl", all_of_them) == 2, "what could not be written then was written later"
