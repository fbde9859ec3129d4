"""Forms: what a file looks like that is merged of parts.

Workers write parts, and parts are lines of text, which survive a kill: `gossamer.parts`. What people want is a table with a
header, or a format that can't be added to at all. So a form stands between the two: it writes the file of lines, and reads its
own file back into them, since a crawl that is resumed merges again.
Knows: one file. Must not know: which lines are kept.
"""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, Protocol


class Form(Protocol):
    """How lines become a file, and how it becomes lines again. Both hold a bounded part of them in memory."""

    def lines(self, path: Path) -> Iterator[bytes]:
        """What an earlier merge wrote there, as the lines that it was given; none if there is no such file."""
        ...

    def writing(self, file: BinaryIO) -> AbstractContextManager[Callable[[bytes], object]]:
        """Takes lines, line break included, one after another. All of them are in the file when the context is left."""
        ...


class Lines:
    """The lines as they are."""

    def lines(self, path: Path) -> Iterator[bytes]:
        try:
            file = path.open("rb")
        except FileNotFoundError:
            return
        with file:
            yield from file

    def writing(self, file: BinaryIO) -> AbstractContextManager[Callable[[bytes], object]]:
        return nullcontext(file.write)


LINES: Final = Lines()


@dataclass(frozen=True, slots=True)
class Output:
    """A file that is to be merged, and what it is to look like."""

    path: Path
    form: Form = LINES
