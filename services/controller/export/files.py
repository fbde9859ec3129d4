"""The two files of an archive, which appear whole or not at all, and never one of them beside another's."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from gossamer.errors import EngineUnavailable, SettingsError

SUFFIX: Final = ".warc.gz"
INDEX_SUFFIX: Final = ".cdxj"


@dataclass(frozen=True, slots=True)
class Target:
    """Where an archive is to be, and its index."""

    warc: Path
    index: Path

    @classmethod
    def at(cls, warc: Path) -> "Target":
        """Raises `SettingsError` for a name that would say something else than what is in it."""
        if not warc.name.endswith(SUFFIX) or warc.name == SUFFIX:
            raise SettingsError(f"--warc is {str(warc)!r}; it takes a name that ends in {SUFFIX}, for its records are compressed")
        return cls(warc, warc.with_name(warc.name.removesuffix(SUFFIX) + INDEX_SUFFIX))

    def refuse_taken(self) -> None:
        for path in (self.warc, self.index):
            if path.exists():
                raise SettingsError(f"{path} exists; name another file, or write over it with --force")


@contextmanager
def writing(target: Target) -> Iterator[tuple[BinaryIO, BinaryIO]]:
    """Archive and index, under temporary names; in their places, durable, if all goes well.

    Raises `SettingsError` if they can't be made there, `EngineUnavailable` if the disk fails later.
    """
    temporary = [path.with_name(f".{path.name}.exporting") for path in (target.warc, target.index)]
    with _opened(temporary[0], target) as archive, _opened(temporary[1], target) as index:
        try:
            yield archive, index
            for file in (archive, index):
                file.flush()
                os.fsync(file.fileno())
            # The old index first: killed between any two of these, there is no index, but never one of another archive.
            target.index.unlink(missing_ok=True)
            temporary[0].replace(target.warc)
            temporary[1].replace(target.index)
            _sync(target.warc.parent)
        except BaseException as error:
            for path in temporary:
                path.unlink(missing_ok=True)
            if isinstance(error, OSError):
                raise EngineUnavailable(f"{target.warc} can't be written: {error.strerror or error}") from error
            raise


def _opened(path: Path, target: Target) -> BinaryIO:
    """Empty, and this process's alone: one that a kill left is nobody's, one that is held is another export's."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    except OSError as error:
        raise SettingsError(f"{target.warc} can't be written: {error.strerror}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        raise SettingsError(f"another export is writing {target.warc}") from None
    file.truncate(0)
    return file


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
