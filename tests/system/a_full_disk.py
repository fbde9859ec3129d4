"""A disk of a few megabytes that a test may fill: a file system in memory, mounted for the while."""

import os
import shlex
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.servers.watchdog import Watchdog


@dataclass(frozen=True)
class Disk:
    path: Path

    def fill(self) -> None:
        """To the last page: nothing that is written now finds room, but in files that have it already."""
        with self._ballast.open("ab", buffering=0) as file:
            size = 1 << 20
            while size:
                try:
                    file.write(bytes(size))
                except OSError:
                    size //= 2

    def make_room(self) -> None:
        self._ballast.unlink()

    def resize(self, size_bytes: int) -> None:
        _run("mount", "-o", f"remount,size={size_bytes}", str(self.path))

    @property
    def _ballast(self) -> Path:
        return self.path / "ballast"


@contextmanager
def small_disk(path: Path, size_bytes: int) -> Iterator[Disk]:
    """At a path that is not there yet. Who may not mount skips the test, and fails it where everything must be possible."""
    path.mkdir()
    try:
        _run("mount", "-t", "tmpfs", "-o", f"size={size_bytes}", "tmpfs", str(path))
    except (OSError, subprocess.CalledProcessError) as error:
        reason = f"no file system can be mounted here: {error}"
        if os.environ.get("CI") == "true":
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    unmount = ("umount", "--lazy", str(path))
    watchdog = Watchdog(shlex.join(unmount))
    try:
        yield Disk(path)
    finally:
        watchdog.call_off()
        _run(*unmount)


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True, timeout=60)
