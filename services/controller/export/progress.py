"""How far a long copy is: a bar on a terminal, a line every few seconds elsewhere. Goes to stderr; stdout is for results."""

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TextIO

from gossamer.clock import Clock
from services.controller.wording import size

LINE_EVERY_S: Final = 5.0

#: To be told the pages and bytes so far.
Show = Callable[[int, int], None]


@contextmanager
def open_progress(total: int, stderr: TextIO, clock: Clock) -> Iterator[Show]:
    if not stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield _lines(total, stderr, clock)
        return
    from rich.console import Console  # it takes a while to import, and here it is needed
    from rich.progress import Progress

    with Progress(console=Console(file=stderr), transient=True) as bar:
        task = bar.add_task("Copying", total=total)
        yield lambda pages, _: bar.update(task, completed=pages)


def _lines(total: int, stderr: TextIO, clock: Clock) -> Show:
    said_at = clock.monotonic()  # what is through in a moment says nothing

    def show(pages: int, count: int) -> None:
        nonlocal said_at
        now = clock.monotonic()
        if now - said_at >= LINE_EVERY_S:
            said_at = now
            stderr.write(f"{pages:,} of {total:,} pages, {size(count)}\n")
            stderr.flush()

    return show
