"""The project's own environment: `.venv`, made from requirements.lock at the first start, completed when the lock has changed.

`make env` uses the same folder for more packages, the crawler's among them. Each leaves a stamp of its own there and only adds,
so either may come first; several starts at once wait for one of them.
Standard library only. Must not know: what is in the lock, or what is run in the environment.
"""

import fcntl
import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import Final, NamedTuple, TextIO

#: Marks a process that was started by `enter`: one that still isn't inside would start another for ever.
_MARK: Final = "gossamer"

#: A look whether the environment's Python starts at all; a disk that takes longer won't carry a crawl.
_PROBE_TIMEOUT_S: Final = 60


class EnvironmentFailed(Exception):
    """There is no environment, and none could be made; the text says in one line what to do."""


def enter(root: Path, command: Sequence[str], say: Callable[[str], object]) -> None:
    """Returns if this process runs in the project's environment, and that is complete.

    Otherwise completes it, which `say` is told of, and starts `command` (a script and its arguments) anew in it: then it does not
    return. Raises `EnvironmentFailed`.
    """
    place = _Place(root)
    was_complete = place.complete
    if not was_complete:
        _complete(place, say)
    if place.inside and was_complete:
        return
    if not place.inside and _MARK in sys._xoptions:
        raise EnvironmentFailed(f"{place.folder} is not an environment of its own; remove it, and start again")
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(place.python, [str(place.python), "-X", _MARK, *command])


class _Place(NamedTuple):
    root: Path

    @property
    def folder(self) -> Path:
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        return self.folder / "bin" / "python"

    @property
    def lock(self) -> Path:
        return self.root / "requirements.lock"

    @property
    def log(self) -> Path:
        return self.folder / "install.log"

    @property
    def stamp(self) -> Path:
        try:
            return self.folder / f".crawler-{sha256(self.lock.read_bytes()).hexdigest()[:16]}"
        except OSError as error:
            raise EnvironmentFailed(f"{self.lock} can't be read: {error.strerror}") from error

    @property
    def complete(self) -> bool:
        return self.stamp.exists() and os.access(self.python, os.X_OK)

    @property
    def inside(self) -> bool:
        return Path(sys.prefix).resolve() == self.folder.resolve()


def _complete(place: _Place, say: Callable[[str], object]) -> None:
    try:
        place.folder.mkdir(exist_ok=True)
        with _alone(place.folder / ".lock", lambda: say("Waiting for another start, which makes the environment ...")):
            if not place.complete:  # else that other start did it
                _install(place, say)
    except OSError as error:
        raise EnvironmentFailed(f"{place.folder} can't be written: {error.strerror}") from error


def _install(place: _Place, say: Callable[[str], object]) -> None:
    works = _works(place.python)
    if not works and (find_spec("venv") is None or find_spec("ensurepip") is None):
        raise EnvironmentFailed(
            f"{sys.executable} lacks the modules venv and ensurepip, which make the environment; "
            "install them (on Debian and Ubuntu: apt install python3-venv), and start again"
        )
    say(f"{'Completing' if works else 'Making'} {place.folder} from {place.lock.name} (once; about a minute) ...")
    with place.log.open("w", encoding="utf-8") as log:
        if not works:
            _clear(place)
            _run(place, [sys.executable, "-m", "venv", str(place.folder)], log)
        pip = [str(place.python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"]
        _run(place, [*pip, "--require-hashes", "-r", str(place.lock)], log)
    for old in place.folder.glob(".crawler-*"):
        old.unlink()
    place.stamp.touch()


def _works(python: Path) -> bool:
    """Whether it starts, is an environment of its own, and can install. A start that was killed leaves one that can't."""
    probe = "import sys, pip; sys.exit(sys.prefix == sys.base_prefix)"
    try:
        done = subprocess.run(
            [python, "-c", probe], stdin=subprocess.DEVNULL, capture_output=True, timeout=_PROBE_TIMEOUT_S, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return done.returncode == 0


def _clear(place: _Place) -> None:
    """Removes what does not work, but for the files that this start holds open."""
    for path in place.folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        elif path.name not in (".lock", place.log.name):
            path.unlink()


def _run(place: _Place, command: Sequence[str], log: TextIO) -> None:
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, check=False)
    if done.returncode != 0:
        raise EnvironmentFailed(f"the environment could not be made: {_last_error(place.log)} (all of it: {place.log})")


def _last_error(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(encoding="utf-8", errors="replace").splitlines() if line.strip()]
    errors = [line.removeprefix("ERROR: ") for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["no reason was given"])[-1]


@contextmanager
def _alone(path: Path, waits: Callable[[], object]) -> Iterator[None]:
    """Holds the lock, which is void when its process is dead. Calls `waits` first if it is another's."""
    with path.open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waits()
            fcntl.flock(file, fcntl.LOCK_EX)
        yield
