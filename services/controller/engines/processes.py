"""Roles as processes of this machine: started, started again when they die, ended in good order.

What a role logs goes to a file in the crawl's folder, which a controller that is killed can't take along; what is worth a look in
it is told here as well. Roles are tied to this process by a pipe: if it dies, however it dies, they drain and end.
"""

import asyncio
import json
import logging
import os
import signal
import socket
import sys
from collections.abc import Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final

from gossamer.clock import Clock
from gossamer.errors import SettingsError
from gossamer.ids import CrawlId
from gossamer.walk import Role
from services.controller.engines.chorus import Chorus

log = logging.getLogger("gossamer.roles")

ROOT: Final = Path(__file__).resolve().parents[3]
#: The pause before a role is started again: doubled while it dies young.
FIRST_PAUSE_S: Final = 0.2
LONGEST_PAUSE_S: Final = 5.0
YOUNG_S: Final = 10.0
#: Two attempts at a page, and a module's deadline: what is in flight is through by then.
DRAIN_S: Final = 100.0
#: What of a log is looked at in one go.
TAIL_BYTES: Final = 64 * 1024
LOOK_EVERY_S: Final = 0.5
WRONG_SETTINGS: Final = 2


class RoleProcess:
    """One of them, through all its lives."""

    def __init__(
        self, role: Role, number: int, crawl: CrawlId, logs: Path, environ: Mapping[str, str], clock: Clock, chorus: Chorus
    ) -> None:
        self.name = f"{role} {number}"
        self._chorus = chorus
        self._role, self._crawl, self._environ, self._clock = role, crawl, environ, clock
        self._log = logs / f"{role}-{number}.log"
        self._told_bytes = self._log.stat().st_size if self._log.exists() else 0
        self._process: asyncio.subprocess.Process | None = None
        self._ending = False
        self.pids: list[int] = []  #: of all its lives

    async def keep(self) -> None:
        """Until it was ended. Raises `SettingsError` for what no new start would mend."""
        pause_s = FIRST_PAUSE_S
        while not self._ending:
            started_at = self._clock.monotonic()
            code = await self._live()
            if self._ending:
                return
            if code == WRONG_SETTINGS:
                raise SettingsError(f"{self.name} can't start: {_last_line(self._log)}")
            how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"
            log.warning("%s died (%s) and is started again; its log is %s", self.name, how, self._log)
            await self._clock.sleep(pause_s)
            pause_s = FIRST_PAUSE_S if self._clock.monotonic() - started_at > YOUNG_S else min(2 * pause_s, LONGEST_PAUSE_S)

    def end(self, *, now: bool) -> None:
        """Gently, so that it finishes what is in flight; or at once."""
        self._ending = True
        if self._process is not None and self._process.returncode is None:
            self._process.send_signal(signal.SIGKILL if now else signal.SIGTERM)

    async def tell(self) -> None:
        """For ever: tells what the role's log has of warnings."""
        while True:
            await self._clock.sleep(LOOK_EVERY_S)
            self.tell_rest()

    def tell_rest(self) -> None:
        """What it has said since it was last looked at."""
        try:
            with self._log.open("rb") as file:
                file.seek(self._told_bytes)
                read = file.read(TAIL_BYTES)
        except FileNotFoundError:
            return
        whole = read[: read.rfind(b"\n") + 1] or (read if len(read) == TAIL_BYTES else b"")
        for line in whole.splitlines():
            level, text = _event(line)
            if level >= logging.WARNING and self._chorus.is_news(self.name, text):
                log.log(level, "%s: %s", self.name, text)
        self._told_bytes += len(whole)

    async def _live(self) -> int:
        """One life; its exit code."""
        words = ("--crawl", self._crawl, "--tied", "--log", "json")
        with self._log.open("ab") as file:
            process = self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                f"services.{self._role}",
                *words,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.DEVNULL,
                stderr=file,
                env=dict(self._environ),
                start_new_session=True,  # Ctrl-C is the controller's to hear: it decides how they end
            )
        self.pids.append(process.pid)
        if self._ending:  # told so while it was being started
            process.kill()
        try:
            return await process.wait()
        finally:
            self.tell_rest()  # what it said last is about this life
            self._chorus.has_died(self.name)


class Crew:
    """The roles of one run."""

    def __init__(
        self,
        crawl: CrawlId,
        folder: Path,
        environ: Mapping[str, str],
        clock: Clock,
        *,
        workers: int,
        for_frontiers: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """`for_frontiers`: what workers, who run other people's modules on other people's pages, need not see."""
        logs = folder / "logs"
        logs.mkdir(exist_ok=True)
        # The roles run in the operator's directory, where modules and outputs are; the code is here.
        path = os.pathsep.join((str(ROOT), environ["PYTHONPATH"])) if environ.get("PYTHONPATH") else str(ROOT)
        environ = {**environ, "PYTHONPATH": path}
        chorus = Chorus()
        self._processes = [
            RoleProcess(Role.FRONTIER, 0, crawl, logs, {**environ, **for_frontiers}, clock, chorus),
            *(RoleProcess(Role.WORKER, number, crawl, logs, environ, clock, chorus) for number in range(workers)),
        ]
        self._keeping: list[asyncio.Task[None]] = []

    def start(self, tasks: asyncio.TaskGroup) -> None:
        self._keeping = [tasks.create_task(each.keep(), name=each.name) for each in self._processes]
        self._telling = [tasks.create_task(each.tell(), name=f"log of {each.name}") for each in self._processes]

    async def end(self, *, now: bool) -> None:
        """All of them, and waits for that: as long as what is in flight may take, and no longer."""
        for each in self._processes:
            each.end(now=now)
        _, late = await asyncio.wait(self._keeping, timeout=DRAIN_S)
        if late:
            log.warning("%d roles were still not through after %.0f s, and were killed", len(late), DRAIN_S)
            self.kill()
            await asyncio.wait(late)
        for task, each in zip(self._telling, self._processes, strict=True):
            task.cancel()
            each.tell_rest()

    def had(self, process: str) -> bool:
        """Whether the worker that registered by this name was one of them."""
        return any(process.startswith(f"{socket.gethostname()} {pid} ") for each in self._processes for pid in each.pids)

    def kill(self) -> None:
        for each in self._processes:
            each.end(now=True)


def _event(line: bytes) -> tuple[int, str]:
    """A line of a role's log: how bad, and what. One that is none of its own is told as it is: an interpreter's last words."""
    try:
        event = json.loads(line)
        return logging.getLevelNamesMapping()[event["level"].upper()], str(event["text"])
    except (ValueError, KeyError, TypeError, AttributeError):
        return logging.WARNING, line.decode(errors="replace")


def _last_line(file: Path) -> str:
    lines = file.read_text(errors="replace").splitlines()
    return lines[-1] if lines else "it says nothing"
