"""Files of lines that many workers write: each line once, whole, and only of pages that are stored."""

import asyncio
import errno
import os
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer import parts
from gossamer.forms import Lines
from gossamer.ids import Epoch, UrlId, WorkerId
from gossamer.parts import PartFile, merge, parts_folder, taken
from gossamer.records import Seat
from tests.a_module import a_crawl, an_id


class Stored:
    """What a ledger would say."""

    def __init__(self, numbers: Collection[int]) -> None:
        self.ids = {an_id(number) for number in numbers}
        self.asked: list[int] = []

    async def __call__(self, ids: Sequence[UrlId]) -> list[bool]:
        self.asked.append(len(ids))
        return [id in self.ids for id in ids]


def line(number: int, text: str = "x") -> str:
    return f"{an_id(number).hex()}\t{text}"


async def a_part(path: Path, *lines: tuple[int, str], worker: int = 0, epoch: int = 1) -> None:
    part = PartFile(path, a_crawl(worker=worker, epoch=epoch))
    for number, text in lines:
        part.write(an_id(number), line(number, text))
    await part.close()


def merged(path: Path) -> list[tuple[int, str]]:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    assert all(each.endswith("\n") for each in lines)
    return [(int(each[:32], 16), each[33:-1]) for each in lines]


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "out" / "titles.txt"


# --- Writing ----------------------------------------------------------------------------------------------------------


async def test_nothing_is_in_the_file_before_flush_and_everything_after_it(path: Path) -> None:
    part = PartFile(path, a_crawl(worker=3, epoch=7))
    file = parts_folder(path) / "3-7.part"

    part.write(an_id(1), line(1))
    part.write(an_id(2), line(2))
    assert file.read_bytes() == b""
    await part.flush()
    assert file.read_text() == f"{line(1)}\n{line(2)}\n"

    part.write(an_id(3), line(3))
    await part.close()
    assert file.read_text() == f"{line(1)}\n{line(2)}\n{line(3)}\n"


async def test_each_start_of_a_worker_has_a_part_of_its_own(path: Path) -> None:
    await a_part(path, (1, "a"), worker=0, epoch=1)

    with pytest.raises(FileExistsError):
        PartFile(path, a_crawl(worker=0, epoch=1))
    await a_part(path, (2, "b"), worker=0, epoch=2)

    assert len(list(parts_folder(path).iterdir())) == 2


def test_a_path_that_is_a_folder_is_refused_before_the_crawl_and_not_after_it(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError):
        PartFile(tmp_path, a_crawl())


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param("a title", "must begin with its page's id", id="no id: the merge could not tell whose it is"),
        pytest.param(f"{an_id(2).hex()} {an_id(1).hex()}", "must begin with its page's id", id="another id comes first"),
        pytest.param(f"x{an_id(1).hex()}0", "must begin with its page's id", id="more digits than an id has"),
        pytest.param(line(1, "a\nb"), "line break", id="a line break"),
        pytest.param(line(1, "a\0b"), "NUL", id="a NUL, which stands for lost data"),
    ],
)
async def test_a_line_that_could_not_be_read_back_is_refused(path: Path, text: str, reason: str) -> None:
    part = PartFile(path, a_crawl())

    with pytest.raises(ValueError, match=reason):
        part.write(an_id(1), text)

    await part.close()
    assert await merge(path, Stored([1, 2])) == 0


async def test_an_id_is_found_behind_a_key_and_before_hashes(path: Path) -> None:
    part = PartFile(path, a_crawl())
    part.write(an_id(1), f'{{"sha256": "{"ab" * 32}", "id": "{an_id(1).hex()}"}}')
    await part.close()

    assert await merge(path, Stored([1])) == 1


async def test_half_a_character_does_not_cost_the_line(path: Path) -> None:
    await a_part(path, (1, "\ud800"))

    await merge(path, Stored([1]))

    assert merged(path) == [(1, "\\ud800")]


async def test_lines_that_nobody_flushes_do_not_fill_the_memory(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "UNFLUSHED_BYTES_MAX", 100)
    part = PartFile(path, a_crawl())
    part.write(an_id(1), line(1, "x" * 40))

    with pytest.raises(BufferError, match="not flushed"):
        part.write(an_id(2), line(2, "x" * 40))
    await part.flush()
    part.write(an_id(3), line(3, "x" * 40))
    await part.close()

    assert await merge(path, Stored([1, 2, 3])) == 2


async def test_a_flush_that_failed_halfway_can_be_made_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = PartFile(path, a_crawl())
    pwrite = os.pwrite
    rest = [10]  # bytes that the disk takes

    def nearly_full(file: int, data: bytes, offset: int) -> int:
        if rest[0] == 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        count = pwrite(file, bytes(data)[: rest[0]], offset)
        rest[0] -= count
        return count

    part.write(an_id(1), line(1))
    monkeypatch.setattr(os, "pwrite", nearly_full)
    with pytest.raises(OSError, match="No space"):
        await part.flush()
    monkeypatch.undo()
    part.write(an_id(2), line(2))
    await part.close()

    await merge(path, Stored([1, 2]))
    assert merged(path) == [(1, "x"), (2, "x")]


async def test_after_a_failed_fsync_the_lines_are_written_again(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = PartFile(path, a_crawl())
    file = next(parts_folder(path).iterdir())

    def broken(file: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    part.write(an_id(1), line(1))
    monkeypatch.setattr(os, "fsync", broken)
    with pytest.raises(OSError, match="Input/output"):
        await part.flush()
    monkeypatch.undo()
    file.write_bytes(b"")  # as the kernel may, which forgets what it could not write
    await part.close()

    assert file.read_text() == f"{line(1)}\n"


async def test_a_part_is_closed_even_if_its_last_flush_fails(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    part = PartFile(path, a_crawl())
    descriptor = part._file
    part.write(an_id(1), line(1))
    monkeypatch.setattr(os, "pwrite", lambda *_: 1 / 0)

    with pytest.raises(ZeroDivisionError):
        await part.close()

    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


async def test_lines_written_while_a_flush_runs_are_in_this_one_or_the_next(path: Path) -> None:
    part = PartFile(path, a_crawl())

    async def write(numbers: range) -> None:
        for number in numbers:
            await asyncio.to_thread(part.write, an_id(number), line(number))

    async def flush() -> None:
        for _ in range(20):
            await part.flush()

    await asyncio.gather(write(range(100)), write(range(100, 200)), flush(), flush())
    await part.close()

    assert await merge(path, Stored(range(200))) == 200
    assert sorted(merged(path)) == [(number, "x") for number in range(200)]


# --- Merging ----------------------------------------------------------------------------------------------------------


async def test_the_file_has_each_stored_page_once_and_the_parts_are_gone(path: Path) -> None:
    await a_part(path, (1, "a"), (2, "b"), (1, "a"), worker=0)
    await a_part(path, (2, "b"), (3, "c"), (4, "never closed"), worker=1)

    assert await merge(path, Stored([1, 2, 3, 5])) == 3

    assert merged(path) == [(1, "a"), (2, "b"), (3, "c")]
    assert sorted(path.parent.iterdir()) == [path]


async def test_a_page_is_known_again_however_far_apart_its_lines_are(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "BATCH_LINES", 1)
    await a_part(path, (1, "a"), (2, "b"), (1, "again"))

    assert await merge(path, Stored([1, 2])) == 2

    assert merged(path) == [(1, "a"), (2, "b")]


async def test_a_crawl_that_is_resumed_merges_again(path: Path) -> None:
    await a_part(path, (1, "a"), (2, "not stored yet"))
    await merge(path, Stored([1]))

    await a_part(path, (2, "b"), (1, "again"), epoch=2)
    assert await merge(path, Stored([1, 2])) == 2

    assert merged(path) == [(1, "a"), (2, "b")]


async def test_a_merge_that_is_repeated_changes_nothing(path: Path) -> None:
    await a_part(path, (1, "a"))

    assert [await merge(path, Stored([1])) for _ in range(3)] == [1, 1, 1]

    assert merged(path) == [(1, "a")]


async def test_a_crawl_without_pages_has_an_empty_file(path: Path) -> None:
    await a_part(path)

    assert await merge(path, Stored([])) == 0

    assert merged(path) == []


async def test_a_merge_that_fails_leaves_everything_as_it_was(path: Path) -> None:
    await a_part(path, (1, "a"))
    await merge(path, Stored([1]))
    await a_part(path, (2, "b"), epoch=2)

    async def away(ids: Sequence[UrlId]) -> list[bool]:
        raise ConnectionError

    with pytest.raises(ConnectionError):
        await merge(path, away)
    assert merged(path) == [(1, "a")]
    assert sorted(each.name for each in path.parent.iterdir()) == ["titles.txt", "titles.txt.parts"]

    assert await merge(path, Stored([1, 2])) == 2


async def test_a_form_that_fails_at_its_end_leaves_everything_as_it_was(path: Path) -> None:
    class Broken(Lines):
        @contextmanager
        def writing(self, file: BinaryIO) -> Iterator[Callable[[bytes], object]]:
            yield file.write
            raise ValueError("no footer could be written")

    await a_part(path, (1, "a"))

    with pytest.raises(ValueError, match="no footer"):
        await merge(path, Stored([1]), form=Broken())
    assert sorted(each.name for each in path.parent.iterdir()) == ["titles.txt.parts"]

    assert await merge(path, Stored([1])) == 1


async def test_a_merge_killed_before_it_removed_the_parts_can_be_repeated(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await a_part(path, (1, "a"))
    monkeypatch.setattr(parts, "_remove", lambda *_: None)
    await merge(path, Stored([1]))
    monkeypatch.undo()
    assert parts_folder(path).exists()

    assert await merge(path, Stored([1])) == 1

    assert merged(path) == [(1, "a")]
    assert not parts_folder(path).exists()


async def test_a_part_that_appears_during_the_merge_is_kept_for_the_next(path: Path) -> None:
    await a_part(path, (1, "a"))

    class Late(Stored):
        async def __call__(self, ids: Sequence[UrlId]) -> list[bool]:
            await a_part(path, (2, "b"), epoch=2)
            return await super().__call__(ids)

    assert await merge(path, Late([1, 2])) == 1
    assert await merge(path, Stored([1, 2])) == 2


async def test_the_merge_asks_about_many_at_once_and_holds_few(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    await a_part(path, *((number, "x" * 40) for number in range(95)))
    monkeypatch.setattr(parts, "BATCH_LINES", 10)
    stored = Stored(range(95))

    await merge(path, stored)
    assert stored.asked == [10] * 9 + [5]

    monkeypatch.setattr(parts, "BATCH_BYTES", 200)
    await merge(path, by_size := Stored(range(95)))
    assert set(by_size.asked) == {3, 2}


@given(cuts=st.lists(st.integers(0, 400), max_size=4), zeros=st.booleans())
async def test_wherever_a_part_is_cut_its_whole_lines_count_and_no_other(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int], zeros: bool
) -> None:
    """A kill leaves a part cut anywhere; a machine that lost its power may leave NULs behind the cut."""
    path = tmp_path_factory.mktemp("parts") / "titles.txt"
    whole: set[int] = set()
    for epoch, cut in enumerate(cuts):
        numbers = range(epoch * 5, epoch * 5 + 7)  # the last two are written again by the next
        await a_part(path, *((number, "t" * number) for number in numbers), epoch=epoch)
        file = parts_folder(path) / f"0-{epoch}.part"
        data = file.read_bytes()
        file.write_bytes(data[:cut] + (bytes(50) + b"\n" if zeros and not data[:cut].endswith(b"\n") else b""))
        ends = [sum(len(line(each, "t" * each)) + 1 for each in numbers[: n + 1]) for n in range(len(numbers))]
        whole |= {number for number, end in zip(numbers, ends, strict=True) if end <= cut}

    assert await merge(path, Stored(range(100))) == len(whole)

    assert sorted(merged(path)) == [(number, "t" * number) for number in sorted(whole)]


async def test_the_output_is_as_readable_as_any_file(path: Path) -> None:
    await a_part(path, (1, "a"))
    (other := path.with_name("other")).touch()

    await merge(path, Stored([1]))

    assert mode(path) == mode(other)


# --- What is there already --------------------------------------------------------------------------------------------


async def test_a_path_is_taken_by_a_file_or_by_parts_of_one(path: Path) -> None:
    assert not taken(path)

    await a_part(path, (1, "a"))
    assert taken(path)

    await merge(path, Stored([1]))
    assert taken(path)


async def test_what_a_living_worker_writes_is_left_for_the_next_merge(path: Path) -> None:
    await a_part(path, (1, "a"), worker=0, epoch=1)
    living = PartFile(path, a_crawl(worker=1, epoch=5))
    living.write(an_id(2), line(2, "b"))
    await living.flush()
    stored = Stored({1, 2, 3})

    assert await merge(path, stored, [Seat(WorkerId(1), Epoch(5))]) == 1

    assert merged(path) == [(1, "a")]
    living.write(an_id(3), line(3, "c"))
    await living.close()
    assert await merge(path, stored) == 3
    assert merged(path) == [(1, "a"), (2, "b"), (3, "c")]


async def test_a_worker_that_saw_no_page_leaves_nothing_behind(path: Path) -> None:
    await a_part(path)

    assert not taken(path)
    assert not parts_folder(path).exists()
