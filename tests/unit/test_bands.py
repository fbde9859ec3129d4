"""The band index that is written behind: what is found is the same, wherever an entry is at the time."""

import random
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from importlib.resources import files
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from adapters.embedded.verbs import bands
from adapters.embedded.verbs.bands import Bands, Sieve

MOST = 3


class Index:
    """The bands of a file, with the content entries that they stand in."""

    def __init__(self, path: str) -> None:
        self.sql = sqlite3.connect(path, isolation_level=None)
        self.sql.executescript(files("adapters.embedded").joinpath("sql/schema.sql").read_text())
        self.bands = Bands(self.sql)

    def enter(self, n: int, keys: list[bytes]) -> None:
        values = (n, str(n), self.bands.enter(n, keys))
        self.sql.execute("INSERT INTO content (n, exact, signature, bands) VALUES (?, ?, '', ?)", values)

    def withdraw(self, n: int) -> None:
        place, entered = self.sql.execute("DELETE FROM content WHERE n = ? RETURNING place, bands", (n,)).fetchone()
        self.bands.withdraw(n, place, entered)

    def filed(self) -> int:
        count: int = self.sql.execute("SELECT count(*) FROM band").fetchone()[0]
        return count


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Index]:
    monkeypatch.setattr(bands, "UNFILED_MAX", 4)
    opened = Index(str(tmp_path / "ledger.sqlite"))
    yield opened
    opened.sql.close()


def test_few_are_not_filed_and_found_all_the_same(index: Index) -> None:
    index.enter(1, [b"a", b"b"])
    index.bands.file()

    assert index.filed() == 0
    assert index.bands.sharing([b"b"], MOST) == [1]


def test_enough_are_filed_at_once(index: Index) -> None:
    for n in range(1, 5):
        index.enter(n, [b"a", bytes([n])])
    index.bands.file()

    assert index.filed() == 8
    assert index.bands.sharing([b"\x02"], MOST) == [2]


def test_of_a_band_that_many_share_only_the_newest_are_looked_at(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    for n in range(1, 5):
        index.enter(n, [b"a"])
    index.bands.file()
    for n in range(5, 8):
        index.enter(n, [b"a"])
    monkeypatch.setattr(bands, "LOOKED_AT", 2)

    assert index.bands.sharing([b"a"], 1000) == [7, 6, 4, 3]


def test_those_that_share_the_most_bands_come_first(index: Index) -> None:
    for n, keys in enumerate([[b"a", b"b", b"c"], [b"a"], [b"b", b"c"], [b"c"]], 1):
        index.enter(n, keys)
    index.bands.file()
    for n, keys in enumerate([[b"b"], [b"a", b"c"]], 5):
        index.enter(n, keys)

    assert index.bands.sharing([b"a", b"b", b"c"], MOST) == [1, 6, 3]


def test_what_was_filed_is_not_filed_again(index: Index) -> None:
    for n in range(1, 9):
        index.enter(n, [b"a"])
        index.bands.file()

    assert index.filed() == 8


def test_what_was_filed_can_be_withdrawn_and_what_comes_in_its_place_is_filed(index: Index) -> None:
    for n in range(1, 5):
        index.enter(n, [b"a"])
    index.bands.file()
    index.withdraw(4)  # the last place is free now, and will be given again
    index.enter(5, [b"a"])

    assert index.bands.sharing([b"a"], MOST) == [5, 3, 2]
    index.bands.tidy()
    assert index.bands.sharing([b"a"], MOST) == [5, 3, 2]


def test_what_was_not_filed_is_there_when_the_file_is_opened_again(index: Index, tmp_path: Path) -> None:
    index.enter(1, [b"a"])

    again = Index(str(tmp_path / "ledger.sqlite"))
    assert again.bands.sharing([b"a"], MOST) == [1]
    again.sql.close()


def test_what_is_withdrawn_before_anything_was_looked_up_is_not_found(index: Index, tmp_path: Path) -> None:
    index.enter(1, [b"a"])
    index.enter(2, [b"a"])

    again = Index(str(tmp_path / "ledger.sqlite"))
    again.withdraw(1)

    assert again.bands.sharing([b"a"], MOST) == [2]
    again.sql.close()


def test_a_file_that_was_there_before_is_asked_for_every_key(index: Index, tmp_path: Path) -> None:
    for n in range(1, 5):
        index.enter(n, [bytes([n])])
    index.bands.file()

    again = Index(str(tmp_path / "ledger.sqlite"))
    assert again.bands.sharing([b"\x02"], MOST) == [2]
    again.sql.close()


@given(st.sets(st.binary(min_size=3, max_size=9)), st.sets(st.binary(min_size=3, max_size=9)))
def test_a_sieve_takes_nothing_for_new_that_was_let_in(let_in: set[bytes], others: set[bytes]) -> None:
    sieve = Sieve()
    sieve.let_in(let_in)

    assert let_in <= {*sieve.maybe(let_in | others)}


def test_a_sieve_hardly_ever_takes_a_new_key_for_one_that_was_let_in() -> None:
    rng, sieve = random.Random(7), Sieve()
    sieve.let_in(rng.randbytes(9) for _ in range(100_000))

    assert len(sieve.maybe(rng.randbytes(9) for _ in range(10_000))) < 120  # 0.6 % of the bits are set


KEYS = st.lists(st.sampled_from([b"a", b"b", b"\0", b"\xff\xfe"]), max_size=3)
#: What is entered, or which entry is withdrawn: of those there are, the newest first.
STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("enter"), KEYS),
        st.tuples(st.just("withdraw"), st.integers(0, 4)),
        st.tuples(st.sampled_from(["file", "tidy"]), st.none()),
    )
)
FILED = [("enter", [b"b"]), ("enter", [b"b"]), ("file", None)]


@given(STEPS)
@example([*FILED, ("enter", [b"a"]), ("withdraw", 1), ("withdraw", 0), ("enter", [b"a"]), ("tidy", None)])
@example([*FILED, ("withdraw", 0), ("enter", [b"a"]), ("withdraw", 0), ("enter", [b"a"]), ("tidy", None)])
@settings(deadline=None)
def test_it_finds_what_a_plain_index_would(steps: list[tuple[str, Any]]) -> None:
    index, plain, at = Index(":memory:"), dict[int, set[bytes]](), 0
    with pytest.MonkeyPatch.context() as patch, closing(index.sql):
        patch.setattr(bands, "UNFILED_MAX", 2)
        for step, what in steps:
            match step:
                case "enter":
                    at += 1
                    index.enter(at, what)
                    plain[at] = set(what)
                case "withdraw" if plain:
                    n = sorted(plain)[-1 - what % len(plain)]
                    index.withdraw(n)
                    del plain[n]
                case "file":
                    index.bands.file()
                case "tidy":
                    index.bands.tidy()
            for key in (b"a", b"b", b"\0", b"\xff\xfe"):
                assert index.bands.sharing([key], 1000) == sorted(
                    (n for n, keys_of in plain.items() if key in keys_of), reverse=True
                )
