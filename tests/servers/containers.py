"""A server as a container: where its program is not installed and Docker runs."""

import secrets
import shlex
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from functools import cache
from typing import Final

from tests.servers.runners import ServerFailed
from tests.servers.watchdog import Watchdog

_PULL_S: Final = 300.0
_COMMAND_S: Final = 60.0
_LOG_LINES: Final = 40


@cache
def can_run(image: str) -> bool:
    """Whether Docker runs here and has this image, or gets it now."""
    if shutil.which("docker") is None or not _succeeds("info", timeout_s=_COMMAND_S):
        return False
    return _succeeds("image", "inspect", image, timeout_s=_COMMAND_S) or _succeeds("pull", "--quiet", image, timeout_s=_PULL_S)


class Container:
    """A container whose `inner_port` is `port` of this machine; it keeps its data until it is wiped or removed."""

    def __init__(
        self, image: str, port: int, inner_port: int, command: Sequence[str] = (), environment: Mapping[str, str] | None = None
    ) -> None:
        self._name = f"gossamer-test-{secrets.token_hex(6)}"
        variables = [part for name, value in (environment or {}).items() for part in ("--env", f"{name}={value}")]
        publish = f"127.0.0.1:{port}:{inner_port}"
        self._create = ["create", "--name", self._name, "--publish", publish, *variables, image, *command]
        self._created = False
        self._watchdog: Watchdog | None = None

    @property
    def pid(self) -> int:
        return int(_docker("inspect", "--format", "{{.State.Pid}}", self._name))

    def start(self) -> None:
        if not self._created:
            self._watchdog = self._watchdog or Watchdog(shlex.join(["docker", "rm", "--force", "--volumes", self._name]))
            _docker(*self._create)
            self._created = True
        _docker("start", self._name)

    def is_running(self) -> bool:
        return self._created and _docker("inspect", "--format", "{{.State.Running}}", self._name) == "true"

    def stop(self) -> None:
        _docker("stop", "--time", "30", self._name)

    def kill(self) -> None:
        _docker("kill", self._name)

    def wipe(self) -> None:
        """Its data lie inside it or in volumes of its own: without it, they are gone. The next start makes it anew."""
        assert not self.is_running()
        if self._created:
            _docker("rm", "--force", "--volumes", self._name)
            self._created = False

    def log(self) -> str:
        done = subprocess.run(
            ["docker", "logs", "--tail", str(_LOG_LINES), self._name],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_COMMAND_S,
            check=False,
        )
        return done.stdout.decode(errors="replace")

    def remove(self) -> None:
        if self._created:
            _docker("rm", "--force", "--volumes", self._name)
            self._created = False
        if self._watchdog is not None:
            self._watchdog.call_off()
            self._watchdog = None


def _docker(*arguments: str) -> str:
    done = subprocess.run(["docker", *arguments], capture_output=True, timeout=_COMMAND_S, check=False)
    if done.returncode != 0:
        raise ServerFailed(f"docker {arguments[0]}: {done.stderr.decode(errors='replace').strip()}")
    return done.stdout.decode().strip()


def _succeeds(*arguments: str, timeout_s: float) -> bool:
    try:
        return subprocess.run(["docker", *arguments], capture_output=True, timeout=timeout_s, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
