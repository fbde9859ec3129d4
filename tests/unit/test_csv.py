"""The module csv: a row a page, whatever the page says, and nothing in it that a spreadsheet would run."""

import csv
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.errors import SettingsError
from gossamer.options import parse_spec
from gossamer.parts import parts_folder
from modules.csv import Table
from services.worker.plugins import load
from tests.a_module import a_page, an_id, crawled


def rows(path: Path) -> list[list[str]]:
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file, strict=True))


async def test_a_table_has_a_header_and_a_row_for_each_page(tmp_path: Path) -> None:
    (path,) = await crawled("csv", tmp_path, a_page(7, sha256=bytes(range(32))), a_page(8))

    assert path == tmp_path / "crawl.csv"
    assert path.read_bytes().startswith(
        b"id,url,status,depth,domain,fetched_at,bytes,sha256,title\r\n"
        b"00000000000000000000000000000007,http://host/7,200,1,host,2023-11-14T22:13:20.500+00:00,24,"
        + bytes(range(32)).hex().encode()
        + b",Title 7\r\n"
    )
    assert len(rows(path)) == 3
    assert not parts_folder(path).exists()


async def test_columns_are_chosen_and_the_id_is_always_the_first(tmp_path: Path) -> None:
    (path,) = await crawled(f"csv:path={tmp_path}/deep/pages.csv,columns=url title status", tmp_path, a_page(7))

    assert rows(path) == [["id", "url", "title", "status"], [an_id(7).hex(), "http://host/7", "Title 7", "200"]]


async def test_links_stand_in_one_cell(tmp_path: Path) -> None:
    (path,) = await crawled("csv:columns=links id", tmp_path, a_page(7))

    assert rows(path) == [["id", "links"], [an_id(7).hex(), "http://host/a http://host/b"]]


async def test_columns_may_have_commas_between_them(tmp_path: Path) -> None:
    (path,) = await crawled(f"csv:columns=url,status,path={tmp_path}/x.csv", tmp_path, a_page(7))

    assert rows(path) == [["id", "url", "status"], [an_id(7).hex(), "http://host/7", "200"]]


@pytest.mark.parametrize(
    ("title", "cell"),
    [
        pytest.param("=1+1", "'=1+1", id="a formula"),
        pytest.param('=HYPERLINK("http://host")', '\'=HYPERLINK("http://host")', id="a formula with quotes"),
        pytest.param("+1", "'+1", id="plus"),
        pytest.param("-1", "'-1", id="minus"),
        pytest.param("@SUM(A1)", "'@SUM(A1)", id="at"),
        pytest.param("\t=1", "'\t=1", id="a tab, which some trim"),
        pytest.param("\r=1", "'\r=1", id="a carriage return, likewise"),
        pytest.param("\n=1", "'\n=1", id="a line feed, likewise"),
        pytest.param("1=1", "1=1", id="not at the beginning"),
        pytest.param('a "b", c', 'a "b", c', id="quotes and commas"),
        pytest.param("two\r\nlines", "two\r\nlines", id="a line break stays"),
        pytest.param("a\0b\ud800c", "a\ufffdb\ufffdc", id="what no reader takes"),
        pytest.param("東京 😀", "東京 😀", id="any script"),
        pytest.param("0" * 32, "0" * 32, id="what looks like an id"),
        pytest.param("x" * 300_000, "x" * 300_000, id="longer than Python reads by itself"),
    ],
)
async def test_any_title_is_one_cell_and_no_formula(tmp_path: Path, title: str, cell: str) -> None:
    csv.field_size_limit(1_000_000)

    (path,) = await crawled("csv:columns=title", tmp_path, a_page(7, title=title))

    assert rows(path) == [["id", "title"], [an_id(7).hex(), cell]]


async def test_the_guard_can_be_switched_off(tmp_path: Path) -> None:
    (path,) = await crawled("csv:columns=title,guard=no", tmp_path, a_page(7, title="=1+1"))

    assert rows(path)[1][1] == "=1+1"


async def test_a_resumed_crawl_adds_to_the_table_and_guards_nothing_twice(tmp_path: Path) -> None:
    pages = [a_page(1, title="=1"), a_page(2, title="two\nlines"), a_page(3, title='"')]
    (path,) = await crawled("csv:columns=title", tmp_path, *pages[:2])
    before = path.read_bytes()

    await crawled("csv:columns=title", tmp_path, *pages, epoch=2)

    assert path.read_bytes().startswith(before)
    assert [row[1] for row in rows(path)] == ["title", "'=1", "two\nlines", '"']


async def test_a_crawl_without_pages_has_the_header(tmp_path: Path) -> None:
    (path,) = await crawled("csv", tmp_path)

    assert len(rows(path)) == 1


def test_a_column_that_there_is_not_is_refused_before_the_crawl() -> None:
    with pytest.raises(SettingsError, match=r"there is no column 'titel'; there are id url status .* html"):
        load([parse_spec("csv:columns=url titel")])


@given(st.lists(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), min_size=3, max_size=3)))
def test_what_was_written_is_read_back(tmp_path_factory: pytest.TempPathFactory, cells: list[list[str]]) -> None:
    path = tmp_path_factory.mktemp("table") / "pages.csv"
    lines = [json.dumps(row).encode() + b"\n" for row in cells]
    form = Table(("id", "a", "b"))

    with path.open("wb") as file:
        with form.writing(file) as write:
            for line in lines:
                write(line)
        assert not file.closed

    assert list(form.lines(path)) == [b'["id", "a", "b"]\n', *lines]


def test_a_table_that_is_not_there_has_no_lines(tmp_path: Path) -> None:
    assert list(Table(("id",)).lines(tmp_path / "none.csv")) == []
