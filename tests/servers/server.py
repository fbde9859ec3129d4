"""A server of a test's own: started, stopped, killed, wiped, and gone in the end.

Must not know: which server it is, or what it runs as; both are handed in.
"""

import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from types import TracebackType
from typing import Final, NoReturn, Self

import pytest

from tests.servers.runners import Runner, ServerFailed

#: RabbitMQ takes 4 s at a quiet desk; what is slower than this has failed.
READY_S: Final = 90.0

_ATTEMPTS: Final = 3  # another process may have drawn the same port


@dataclass(frozen=True, slots=True)
class Plan:
    """A server that is about to run on ports that were free when this was made."""

    runner: Runner
    url: str
    why_not_ready: Callable[[], str | None]  #: asks the server itself; None once it works with its own credentials


class Server:
    """A context manager; or `start` and `remove`. After the first start its URL stays the same."""

    def __init__(self, plan: Callable[[], Plan]) -> None:
        self._new_plan = plan
        self._plan: Plan | None = None

    @property
    def url(self) -> str:
        return self._the_plan.url

    @property
    def pid(self) -> int:
        """The server's own process: beam.smp, redis-server, weed."""
        return self._the_plan.runner.pid

    def start(self) -> None:
        """Returns when the server works."""
        if self._plan is not None:
            _start(self._plan)
            return
        for attempt in range(1, _ATTEMPTS + 1):
            plan = self._new_plan()
            try:
                _start(plan)
            except ServerFailed:
                plan.runner.remove()
                if attempt == _ATTEMPTS:
                    raise
            except BaseException:
                plan.runner.remove()
                raise
            else:
                self._plan = plan
                return

    def stop(self) -> None:
        """Ends it in its own way; it may write down what it holds."""
        self._the_plan.runner.stop()

    def kill(self) -> None:
        """SIGKILL."""
        self._the_plan.runner.kill()

    def wipe(self) -> None:
        """Deletes its data, while it is stopped: a disk that was lost."""
        self._the_plan.runner.wipe()

    def remove(self) -> None:
        """Kills it if need be, and leaves nothing of it behind."""
        if self._plan is not None:
            self._plan.runner.remove()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.remove()

    @property
    def _the_plan(self) -> Plan:
        assert self._plan is not None, "start the server first"
        return self._plan


def missing(what: str, install: str) -> NoReturn:
    """A server that can't be had skips the test at a desk, and fails it where everything must be there."""
    reason = f"no {what} on this machine: {install}"
    if os.environ.get("CI") == "true":
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason, allow_module_level=True)


def _start(plan: Plan) -> None:
    plan.runner.start()
    deadline_s = time.monotonic() + READY_S
    while (reason := plan.why_not_ready()) is not None:
        if not plan.runner.is_running():
            raise ServerFailed(f"the server ended while it started ({reason})\n{plan.runner.log()}")
        if time.monotonic() > deadline_s:
            raise ServerFailed(f"the server was not ready within {READY_S:.0f} s ({reason})\n{plan.runner.log()}")
        time.sleep(0.05)
