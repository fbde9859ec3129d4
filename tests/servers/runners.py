"""What a server can run as: a program of this machine, or a container.

Must not know: which server it is, or whether it is ready.
"""

from typing import Protocol


class ServerFailed(Exception):
    """A server did not start, or did not end, in its time; the text shows the end of its log."""


class Runner(Protocol):
    """One server, started and ended any number of times on the same ports, its data kept in between."""

    @property
    def pid(self) -> int:
        """The server's own process, not that of a script around it."""
        ...

    def start(self) -> None:
        """Starts it and does not wait for it to be ready."""
        ...

    def is_running(self) -> bool: ...

    def stop(self) -> None:
        """Asks it to end and waits until it has. Raises `ServerFailed` if it takes too long, and kills it."""
        ...

    def kill(self) -> None:
        """SIGKILL: what a crash is like."""
        ...

    def wipe(self) -> None:
        """Deletes its data. Only while it is not running."""
        ...

    def log(self) -> str:
        """The end of what it has written."""
        ...

    def remove(self) -> None:
        """Kills it, and leaves nothing of it behind."""
        ...
