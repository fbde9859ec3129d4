"""Ranks from a file: what its lines mean, and what is refused before anything starts."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.errors import SettingsError
from services.frontier.outside import file
from services.frontier.outside.file import read


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "ranks.csv"


def refusal(path: Path) -> str:
    with pytest.raises(SettingsError) as refused:
        read(path)
    message = str(refused.value)
    assert message.isprintable()
    assert message.startswith(f"--rank-file {path}")
    return message.removeprefix(f"--rank-file {path}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("domain,rank\na.example,1\nb.example,2\nc.example,3\n", {"a.example": 0, "b.example": 50, "c.example": 100}),
        ("domain,visits\na.example,1\nb.example,20\nc.example,300\n", {"c.example": 0, "b.example": 50, "a.example": 100}),
        ("Country, Visits ,DOMAIN\r\nDE,7,a.example\r\nFR,7,b.example\r\n", {"a.example": 0, "b.example": 0}),
        ("domain,rank\na.example,5\n", {"a.example": 0}),
        ("\ufeffdomain,rank\n\nWWW.A.example.,1\n\nmünchen.example,2\n", {"a.example": 0, "xn--mnchen-3ya.example": 100}),
        ("domain,visits\na.example,1\na.example,9\nb.example,5\n", {"a.example": 0, "b.example": 100}),
        ('domain,rank\n"a.example","1"\n', {"a.example": 0}),
    ],
)
def test_priorities_are_quantiles_by_rank_or_visits(path: Path, text: str, expected: dict[str, int]) -> None:
    path.write_text(text, encoding="utf-8")
    assert read(path) == expected


@given(st.dictionaries(st.integers(0, 500), st.integers(0, 10**15 - 1), min_size=1, max_size=60))
def test_more_visits_are_never_a_worse_priority(tmp_path_factory: pytest.TempPathFactory, visits: dict[int, int]) -> None:
    path = tmp_path_factory.mktemp("ranks") / "visits.csv"
    path.write_text("domain,visits\n" + "".join(f"{number}.example,{count}\n" for number, count in visits.items()))
    found = read(path)
    ordered = sorted(visits, key=lambda number: -visits[number])
    priorities = [found[f"{number}.example"] for number in ordered]
    assert priorities == sorted(priorities)
    assert priorities[0] == 0
    assert all(0 <= each <= 100 for each in priorities)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", ": its first line has to name its columns: domain, and visits or rank"),
        ("1,google.com\n2,b.example\n", ": its first line has to name its columns: domain, and visits or rank"),
        ("domain,rank\n", " has no line with a domain"),
        ("domain,rank\na.example,1\nb.example,first\n", ": line 3: 'first' is no rank: it takes a whole number"),
        ("domain,rank\na.example\n", ": line 2: '' is no rank: it takes a whole number"),
        ("domain,rank\nhttp://a.example/,1\n", ": line 2: 'http://a.example/' is no domain"),
        ("domain,rank\n,1\n", ": line 2: '' is no domain"),
        ("domain,visits\na.example,-1\n", ": line 2: '-1' is no visits: it takes a whole number"),
        ("domain,visits\na.example,1e999\n", ": line 2: '1e999' is no visits: it takes a whole number"),
        ("domain,visits\na.example," + "9" * 5000, f": line 2: '{'9' * 60}' is no visits: it takes a whole number"),
        ("domain,visits\n" + "a b,1\n" * 9, ": lines 2, 3, 4, 5, 6 and 4 more are wrong; line 2: 'a b' is no domain"),
        ("domain,visits\n" + "\x1b[31m,1\n", ": line 2: '\\x1b[31m' is no domain: "),
        ("domain,visits\na.example,1\n" + "x" * 10_001, ": line 3 has more than 10,000 characters"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_with_its_number(path: Path, text: str, reason: str) -> None:
    path.write_text(text, encoding="utf-8")
    assert refusal(path).startswith(reason)


def test_a_file_that_is_none_is_refused(path: Path) -> None:
    assert refusal(path) == " can't be read: No such file or directory"
    path.write_bytes(b"domain,rank\n\xff\xfe,1\n")
    assert refusal(path) == " is not a text with commas between its columns"


def test_a_file_has_its_bound(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file, "LINES_MAX", 3)
    path.write_text("domain,rank\n" + "".join(f"{number}.example,{number}\n" for number in range(1, 4)))
    assert len(read(path)) == 3
    path.write_text(path.read_text() + "4.example,4\n")
    assert refusal(path) == " has more than 3 lines"
