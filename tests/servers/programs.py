"""A server as a program of this machine, in a folder of its own."""

import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final

from tests.servers.runners import ServerFailed
from tests.servers.watchdog import Watchdog

_STOP_S: Final = 30.0
_LOG_BYTES: Final = 3_000


def find_program(*names: str) -> str | None:
    """The first of these that is there: a path, or a name on the PATH or beside this Python."""
    beside = Path(sys.executable).parent
    path = os.pathsep.join([os.environ.get("PATH", os.defpath), str(beside)])
    return next((found for name in names if (found := shutil.which(name, path=path))), None)


def new_folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="gossamer-server-"))


class Program:
    """A process that writes below `folder` alone; `folder/data` is what it keeps."""

    def __init__(
        self,
        folder: Path,
        command: Sequence[str],
        environment: Mapping[str, str] | None = None,
        *,
        prepare: Callable[[], None] = lambda: None,
        leftovers: Sequence[Path] = (),
    ) -> None:
        """`prepare` is called before each start; `leftovers` are files that the program makes outside of its folder."""
        self._folder = folder
        self._command = list(command)
        self._environment = {**os.environ, **(environment or {})}
        self._prepare = prepare
        self._leftovers = [folder, *leftovers]
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: Watchdog | None = None

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    def start(self) -> None:
        assert not self.is_running()
        (self._folder / "data").mkdir(parents=True, exist_ok=True)
        self._prepare()
        with self._log_path.open("ab") as log:
            # A session of its own: a Ctrl-C is for the tests, and its helpers can be ended with it as one group.
            self._process = subprocess.Popen(
                self._command,
                env=self._environment,
                cwd=self._folder,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        paths = shlex.join(map(str, self._leftovers))
        self._watchdog = Watchdog(f"kill -9 -{self.pid}; sleep 0.2; rm -rf {paths}")

    def is_running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def stop(self) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            raise ServerFailed(f"{self._command[0]} did not end within {_STOP_S:.0f} s\n{self.log()}") from None
        finally:
            self.kill()  # whatever it has left running

    def kill(self) -> None:
        if self._process is None:
            return
        # Also when the process has ended: a helper of it might not have. A group's number is not given out again before the
        # last of it is gone, and this is called once.
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)
        self._process.wait(_STOP_S)
        self._process = None
        if self._watchdog is not None:
            self._watchdog.call_off()
            self._watchdog = None

    def wipe(self) -> None:
        assert not self.is_running()
        shutil.rmtree(self._folder / "data", ignore_errors=True)

    def log(self) -> str:
        try:
            return self._log_path.read_bytes()[-_LOG_BYTES:].decode(errors="replace")
        except FileNotFoundError:
            return ""

    def remove(self) -> None:
        self.kill()
        for path in self._leftovers:
            if path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            else:
                path.unlink(missing_ok=True)

    @property
    def _log_path(self) -> Path:
        return self._folder / "log"
