"""Crash points: a seam by which a test makes a process die between two steps of the walk.

`@step("worker.judge")` marks the function that takes a step. With `CRASH_AT=worker.judge:after` in the environment the process
ends right after its first return, by `os._exit`: no exception, no clean-up, nothing flushed, as by `kill -9`. A number behind it
(`worker.judge:after:7`) means the seventh time. With `CRASH_ONCE=FILE` beside it whoever dies makes that file first, and whoever
finds it lives: of several processes one dies, and what is started in its place does not. Without `CRASH_AT` the mark gives the
function back as it is, so it costs nothing; a step that isn't in the walk's table can't be marked, and a test sees to it that every
step of the table is.
"""

import os
from collections.abc import Awaitable, Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Final, ParamSpec, TypeVar, cast

from gossamer.walk import CRASH_POINTS, STEPS, Edge

VARIABLE: Final = "CRASH_AT"
ONCE: Final = "CRASH_ONCE"
EXIT_CODE: Final = 86  #: tells a test that it was the crash point, and not something else

P = ParamSpec("P")
R = TypeVar("R")


class CrashPoint:
    """A place and a countdown."""

    def __init__(self, text: str, once: str | None = None) -> None:
        """`once`: the file that stands for a death that has been."""
        name, _, times = text.rpartition(":") if text.count(":") == 2 else (text, "", "1")
        if name not in CRASH_POINTS or not times.isdigit():
            points = ", ".join(CRASH_POINTS)
            raise ValueError(f"{VARIABLE}={text!r} is no crash point; they are {points}, each with `:n` if wanted")
        self._name, self._left, self._once = name, int(times), once

    def reached(self, name: str) -> None:
        if name == self._name:
            self._left -= 1
            if self._left <= 0 and self._nobody_died():
                os._exit(EXIT_CODE)

    def _nobody_died(self) -> bool:
        if self._once is None:
            return True
        try:
            os.close(os.open(self._once, os.O_CREAT | os.O_EXCL | os.O_WRONLY))  # atomic: of two, one makes it
        except FileExistsError:
            return False
        return True


_armed = CrashPoint(os.environ[VARIABLE], os.environ.get(ONCE)) if os.environ.get(VARIABLE) else None


def step(title: str) -> Callable[[Callable[P, R]], Callable[P, R]]:
    """Marks the function that takes this step of the walk."""
    assert title in STEPS, f"{title} is no step of the walk (gossamer/walk.py)"
    return (lambda function: function) if _armed is None else _deadly(title, _armed)


def _deadly(title: str, point: CrashPoint) -> Callable[[Callable[P, R]], Callable[P, R]]:
    before, after = f"{title}:{Edge.BEFORE}", f"{title}:{Edge.AFTER}"

    def mark(function: Callable[P, R]) -> Callable[P, R]:
        @wraps(function)
        def plain(*args: P.args, **kwargs: P.kwargs) -> R:
            point.reached(before)
            result = function(*args, **kwargs)
            point.reached(after)
            return result

        @wraps(function)
        async def waiting(*args: P.args, **kwargs: P.kwargs) -> object:
            point.reached(before)
            result = await cast(Awaitable[object], function(*args, **kwargs))
            point.reached(after)
            return result

        return cast(Callable[P, R], waiting) if iscoroutinefunction(function) else plain

    return mark
