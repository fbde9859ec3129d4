"""Ranks from a file of the operator's: CSV, a domain a line, with its visits (the more the better) or its rank (1 is the best).

The first line names the columns, in any order; others are passed over. Priorities are quantiles: the best domain has 0, the worst
100, the one in the middle 50, and equals are equal. A file that has anything wrong in it is refused before the crawl starts.
"""

import csv
import re
from bisect import bisect_left
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, NamedTuple

from gossamer.errors import SettingsError, UrlError
from gossamer.urls import HOST_LENGTH_MAX, host_of, requested
from services.frontier.bands import PRIORITY_MAX

#: Lines: some 150 MB in each frontier.
LINES_MAX: Final = 1_000_000
LINE_CHARACTERS_MAX: Final = 10_000
NUMBER_DIGITS_MAX: Final = 15
#: Of the lines that are wrong, the numbers of so many are told.
TOLD: Final = 5


class Line(NamedTuple):
    number: int
    domain: str
    worth: int  #: the more the better


_PLAIN: Final = re.compile(r"(?:[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?\.)+[a-z]{2,63}").fullmatch


class _Wrong(Exception):
    """Why a line can't be right."""


def read(path: Path) -> Mapping[str, int]:
    """The priority of each domain, `www.` left out. Raises `SettingsError`, one line, with the numbers of wrong lines."""
    worths: dict[str, int] = {}
    wrong: list[tuple[int, str]] = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for found in _lines(file, path):
                if isinstance(found, Line):
                    worths[found.domain] = max(found.worth, worths.get(found.domain, found.worth))
                else:
                    wrong.append(found)
    except OSError as error:
        raise SettingsError(f"--rank-file {path} can't be read: {error.strerror}") from error
    except (UnicodeDecodeError, csv.Error):
        raise SettingsError(f"--rank-file {path} is not a text with commas between its columns") from None
    if wrong:
        raise SettingsError(f"--rank-file {path}: {_told(wrong)}")
    if not worths:
        raise SettingsError(f"--rank-file {path} has no line with a domain")
    return _priorities(worths)


def _priorities(worths: Mapping[str, int]) -> dict[str, int]:
    order = sorted(-worth for worth in worths.values())
    last = max(len(order) - 1, 1)
    return {domain: bisect_left(order, -worth) * PRIORITY_MAX // last for domain, worth in worths.items()}


def _lines(file: Iterator[str], path: Path) -> Iterator[Line | tuple[int, str]]:
    """Each line, or its number and what is wrong with it."""
    rows = csv.reader(_bounded(file, path))
    head = [name.strip().lower() for name in next(rows, [])]
    column = next((name for name in ("visits", "rank") if name in head), None)
    if "domain" not in head or column is None:
        raise SettingsError(f"--rank-file {path}: its first line has to name its columns: domain, and visits or rank")
    domain_at, worth_at, sign = head.index("domain"), head.index(column), 1 if column == "visits" else -1
    for row in rows:
        if row:
            try:
                yield Line(rows.line_num, _domain(row, domain_at), sign * _number(row, worth_at, column))
            except _Wrong as wrong:
                yield rows.line_num, str(wrong)


def _bounded(file: Iterator[str], path: Path) -> Iterator[str]:
    for number, line in enumerate(file, 1):
        if number > LINES_MAX + 1:
            raise SettingsError(f"--rank-file {path} has more than {LINES_MAX:,} lines")
        if len(line) > LINE_CHARACTERS_MAX:
            raise SettingsError(f"--rank-file {path}: line {number} has more than {LINE_CHARACTERS_MAX:,} characters")
        yield line


def _domain(row: list[str], at: int) -> str:
    text = row[at].strip() if at < len(row) else ""
    if _PLAIN(text) and len(text) <= HOST_LENGTH_MAX:  # nearly always, at a tenth of the cost of what follows
        return text.removeprefix("www.")
    try:
        if not text or set(text) & set("/\\?#@: \t"):
            raise _Wrong(f"{text[:60]!r} is no domain")
        return host_of(requested(f"http://{text}/")).removesuffix(".").removeprefix("www.")
    except UrlError as refusal:
        raise _Wrong(f"{text[:60]!r} is no domain: {refusal}") from None


def _number(row: list[str], at: int, column: str) -> int:
    text = row[at].strip() if at < len(row) else ""
    if not text.isascii() or not text.isdecimal() or len(text) > NUMBER_DIGITS_MAX:
        raise _Wrong(f"{text[:60]!r} is no {column}: it takes a whole number")
    return int(text)


def _told(wrong: list[tuple[int, str]]) -> str:
    number, reason = wrong[0]
    if len(wrong) == 1:
        return f"line {number}: {reason}"
    more = f" and {len(wrong) - TOLD:,} more" if len(wrong) > TOLD else ""
    numbers = ", ".join(str(number) for number, _ in wrong[:TOLD])
    return f"lines {numbers}{more} are wrong; line {number}: {reason}"
