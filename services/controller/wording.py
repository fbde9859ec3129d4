"""How numbers, times and texts from outside are shown to people: the same everywhere, and never as commands to a terminal.

Pure. Must not know: what is shown, or where.
"""

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Final, TypeVar

#: Names that are counted: plain texts, or an enum of them.
Name = TypeVar("Name", bound=str)

_SIZES: Final = (("GB", 10**9), ("MB", 10**6), ("KB", 10**3))


def safe(text: str, most: int = 100) -> str:
    """A text that somebody else wrote: on one line, at most so long, whatever could move a cursor or turn the writing escaped."""
    shown = "".join(each if each.isprintable() else _escaped(each) for each in text[:most])
    return shown if len(text) <= most else shown + "…"


def size(count: int) -> str:
    for unit, scale in _SIZES:
        if count >= scale:
            return f"{count / scale:.1f} {unit}".replace(".0 ", " ")
    return f"{count} bytes"


def span(seconds: float) -> str:
    """A time span, as exactly as matters: 0.4 s, 34 s, 12 min 5 s, 3 h 20 min."""
    if seconds < 10:
        return f"{max(seconds, 0):.1f} s"
    minutes, whole_s = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours:,} h {minutes} min"
    return f"{minutes} min {whole_s} s" if minutes else f"{whole_s} s"


def moment(at: float) -> str:
    """A point in time, for people of any zone."""
    return datetime.fromtimestamp(at, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def tallies(counts: Mapping[Name, int]) -> str:
    """`done 12, gone 3`: the most first."""
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{safe(name)} {count:,}" for name, count in ordered)


def several(count: int, one: str) -> str:
    """`1 page`, `2 pages`."""
    return f"{count:,} {one}" if count == 1 else f"{count:,} {one}s"


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode()
