"""What ends a server when the tests themselves are killed: then no `finally` and no `atexit` of theirs runs any more.

A shell waits on a pipe from this process. The pipe closes when this process ends, however it ends; a line through it before
that calls the watchdog off.
"""

import subprocess
from typing import Final

_WAIT: Final = 'read -r _ || eval "$1"'


class Watchdog:
    """Runs a shell command when this process ends without having called it off."""

    def __init__(self, command: str) -> None:
        # A session of its own, so that a Ctrl-C at the terminal ends the tests and not this; no output of the tests' held open.
        self._shell = subprocess.Popen(
            ["sh", "-c", _WAIT, "watchdog", command],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )

    def call_off(self) -> None:
        self._shell.communicate(b"\n", timeout=10)
