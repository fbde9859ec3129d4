"""The module parquet: a row a page, each column with its type, in a file that is whole whatever was killed before."""

import json
import sys
from datetime import UTC, datetime
from pathlib import Path

import pyarrow as arrow
import pyarrow.parquet as parquet
import pytest

import modules.parquet
from gossamer.errors import SettingsError
from gossamer.options import parse_spec
from gossamer.parts import parts_folder
from modules.parquet import COLUMNS, Groups
from services.worker.plugins import load
from tests.a_module import a_page, an_id, crawled


async def test_a_file_has_a_typed_row_for_each_page(tmp_path: Path) -> None:
    page = a_page(7, title="A title, 東京", text="What is read", sha256=bytes(range(32)), fetched_at=1_700_000_000.123456)

    (path,) = await crawled("parquet", tmp_path, page, a_page(8))

    assert path == tmp_path / "crawl.parquet"
    table = parquet.read_table(path)
    assert {field.name: str(field.type) for field in table.schema} == {
        "id": "string",
        "url": "string",
        "status": "int16",
        "fetched_at": "timestamp[us, tz=UTC]",
        "depth": "int32",
        "domain": "string",
        "bytes": "int64",
        "sha256": "string",
        "title": "string",
        "links": "list<element: string>",
        "text": "string",
    }
    assert table.to_pylist()[0] == {
        "id": an_id(7).hex(),
        "url": "http://host/7",
        "status": 200,
        "fetched_at": datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC),
        "depth": 1,
        "domain": "host",
        "bytes": 24,
        "sha256": bytes(range(32)).hex(),
        "title": "A title, 東京",
        "links": ["http://host/a", "http://host/b"],
        "text": "What is read",
    }
    assert table.column("url").to_pylist() == ["http://host/7", "http://host/8"]
    assert not parts_folder(path).exists()


@pytest.mark.parametrize(
    ("options", "missing"),
    [
        pytest.param("", {"html"}, id="the HTML is for those who ask for it"),
        pytest.param("html=yes", set(), id="everything"),
        pytest.param("text=no,links=no", {"html", "text", "links"}, id="the least"),
    ],
)
async def test_what_is_large_can_be_left_out(tmp_path: Path, options: str, missing: set[str]) -> None:
    (path,) = await crawled(f"parquet:path={tmp_path}/x.parquet,{options}".rstrip(","), tmp_path, a_page(7))

    names = parquet.read_schema(path).names
    assert set(COLUMNS) - set(names) == missing
    assert names[0] == "id"


@pytest.mark.parametrize(
    ("title", "back"),
    [
        pytest.param("\ud800", "\ufffd", id="half a character"),
        pytest.param("a\0b", "a\0b", id="a NUL"),
        pytest.param("two\nlines", "two\nlines", id="a line break"),
        pytest.param("0" * 32, "0" * 32, id="what looks like an id"),
        pytest.param("", "", id="nothing"),
    ],
)
async def test_any_title_can_be_written(tmp_path: Path, title: str, back: str) -> None:
    (path,) = await crawled("parquet", tmp_path, a_page(title=title))

    assert parquet.read_table(path).column("title").to_pylist() == [back]


async def test_a_resumed_crawl_adds_to_the_file(tmp_path: Path) -> None:
    pages = [a_page(number, title=f"{number}", fetched_at=1_700_000_000 + number / 7) for number in range(5)]
    (path,) = await crawled("parquet:html=yes", tmp_path, *pages[:3])
    before = parquet.read_table(path)

    await crawled("parquet:html=yes", tmp_path, *pages, epoch=2)

    table = parquet.read_table(path)
    assert table.slice(0, 3) == before
    assert table.column("title").to_pylist() == ["0", "1", "2", "3", "4"]


async def test_a_file_that_somebody_spoilt_is_refused_and_the_parts_stay(tmp_path: Path) -> None:
    (path,) = await crawled("parquet", tmp_path, a_page(1))
    path.write_bytes(b"PAR1 and no more")

    with pytest.raises(SettingsError, match=r"crawl\.parquet is no Parquet file any more"):
        await crawled("parquet", tmp_path, a_page(2), epoch=2)
    assert path.read_bytes() == b"PAR1 and no more"

    path.unlink()
    await crawled("parquet", tmp_path, a_page(3), epoch=3)
    assert parquet.read_table(path).column("id").to_pylist() == [an_id(2).hex(), an_id(3).hex()]


async def test_a_crawl_without_pages_has_a_file_without_rows(tmp_path: Path) -> None:
    (path,) = await crawled("parquet", tmp_path)

    table = parquet.read_table(path)
    assert table.num_rows == 0
    assert table.schema.field("fetched_at").type == arrow.timestamp("us", tz="UTC")


@pytest.mark.parametrize(
    ("limit", "value", "rows"),
    [
        pytest.param("GROUP_ROWS", 3, [3, 3, 1], id="so many rows"),
        pytest.param("GROUP_BYTES", 100, [2, 2, 2, 1], id="or so many bytes"),
    ],
)
def test_no_more_than_a_row_group_is_held(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str, value: int, rows: list[int]
) -> None:
    monkeypatch.setattr(modules.parquet, limit, value)
    form, path = Groups(("id", "fetched_at", "title")), tmp_path / "x.parquet"
    lines = [json.dumps({"id": an_id(n).hex(), "fetched_at": n, "title": "x"}).encode() + b"\n" for n in range(7)]

    with path.open("wb") as file, form.writing(file) as write:
        for line in lines:
            write(line)

    metadata = parquet.read_metadata(path)
    assert [metadata.row_group(at).num_rows for at in range(metadata.num_row_groups)] == rows
    assert list(form.lines(path)) == lines


def test_without_pyarrow_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(modules.parquet, "find_spec", lambda _: None)

    with pytest.raises(SettingsError, match="it needs pyarrow, which is not installed") as refused:
        load([parse_spec("parquet")])

    assert f"{sys.executable} -m pip install --require-hashes -r requirements-parquet.lock;" in str(refused.value)
    assert "\n" not in str(refused.value)
