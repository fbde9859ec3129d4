"""Errors of code that is not ours, in one line that can be logged: what was raised, and where in their file.

Its text may be part of a page, so nothing of it reaches a terminal or a log as it is. Must not know: what was being done.
"""

import importlib
import traceback
from pathlib import Path
from typing import Final

TEXT_MAX: Final = 200


def blame(error: BaseException) -> str:
    """As in `ValueError: no price (shop.py:12, decimal.py:40)`: printable, on one line, and short."""
    text = _text(error)
    place = _place(error)
    return printable(type(error).__name__) + (f": {text}" if text else "") + (f" ({place})" if place else "")


def printable(text: str) -> str:
    """The text with whatever could break a line or steer a terminal escaped."""
    return "".join(each if each.isprintable() else repr(each)[1:-1] for each in text)


def _text(error: BaseException) -> str:
    try:
        text = str(error)
    except Exception:  # their class, their __str__
        return ""
    return printable(text if len(text) <= TEXT_MAX else text[:TEXT_MAX] + "…")


def _place(error: BaseException) -> str:
    """Where their code was entered, which tells its author, and where it ended up, which may be in a library."""
    frames = [(frame.f_code.co_filename, line) for frame, line in traceback.walk_tb(error.__traceback__)]
    theirs = [(Path(file).name, line) for file, line in frames if not _is_ours(file)]
    return printable(", ".join(dict.fromkeys(f"{name}:{line}" for name, line in [*theirs[:1], *theirs[-1:]])))


def _is_ours(file: str) -> bool:
    """Or the import system's, through which we go to them."""
    return Path(file).is_relative_to(_SERVICES) or file.startswith("<frozen ") or file == importlib.__file__


_SERVICES: Final = Path(__file__).parents[1]
