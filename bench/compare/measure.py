"""One crawl, measured from outside: its processes by the kernel's own accounts, its pages by the web that it crawled.

CPU time is user + system of the crawler's whole tree of processes, once all of it has ended. Memory is the sum over the tree, which
is looked at many times a second; pages that two processes share count twice. Must not know: whose crawl it is.
"""

import json
import os
import signal
import subprocess
import time
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.external import cpu_s
from tests.system.web import PERFECT, Web

LOOK_EVERY_S: Final = 0.05
ASK_EVERY_S: Final = 2.0
#: A crawler that asks for nothing for so long has hung: longer than any start, and than an idle spider's last wait.
IDLE_S: Final = 30.0
PAGE_BYTES: Final = os.sysconf("SC_PAGE_SIZE")
SCORE: Final = ("pages", "requests", *PERFECT)
SPINS: Final = 2_000_000
_SAID_BYTES: Final = 2_000


@dataclass(frozen=True)
class Run:
    """What one crawl took, and what the web says of it."""

    crawler: str
    round: int
    size: int  #: pages that the web has
    code: int  #: its exit code; negative: the signal that ended it
    hung: bool
    cpu_s: float  #: of all its processes
    roles_s: Mapping[str, float]  #: of it those that are Gossamer's roles, as they were last seen
    servers_s: Mapping[str, float]  #: besides: of each server that it stands on
    web_s: float  #: besides: of the web
    took_s: float  #: from its start to its end
    asking_s: float  #: from the first request to the last
    memory: Sequence[tuple[float, float]]  #: MB of all its processes, so many seconds after the start
    spin_s: float  #: CPU time of a loop that is always the same: how fast the machine was just before
    score: Mapping[str, int]
    said: str = ""  #: the end of what it wrote, if it failed

    @property
    def cpu_ms_a_page(self) -> float:
        """Of the pages that were to be found, each counted once. Also CPU seconds per 1,000 pages."""
        return self.cpu_s * 1000 / self.score["pages"] if self.score["pages"] else float("inf")

    @property
    def pages_a_second(self) -> float:
        return self.score["pages"] / self.asking_s if self.asking_s else 0.0

    @property
    def mistakes(self) -> int:
        """URLs that it missed, or asked for though they were forbidden or not to be found."""
        return self.score["missed"] + self.score["forbidden"] + self.score["wrong"]

    @property
    def peak_mb(self) -> float:
        return max((mb for _, mb in self.memory), default=0.0)

    @property
    def is_perfect(self) -> bool:
        """Ended by itself, with every page, and nothing that a correct crawler would not have asked for."""
        right = all(self.score[key] == wanted for key, wanted in PERFECT.items())
        return right and self.code == 0 and not self.hung and self.score["pages"] == self.size


def measure(
    crawler: str,
    words: Sequence[str],
    web: Web,
    folder: Path,
    *,
    number: int,
    size: int,
    environ: Mapping[str, str],
    servers: Mapping[str, int],
    said: Path,
) -> Run:
    """Runs these words in `folder` to their end, their output in `said`; `servers` are process ids.

    Whatever ends this early ends the crawl as well.
    """
    web.reset()
    spin_s = spin()
    before = {name: cpu_s(pid) for name, pid in servers.items()}
    watch = Watch(web)
    with said.open("wb") as output:
        # A session of its own: a Ctrl-C is for us, who end all of it.
        process = subprocess.Popen(
            words, cwd=folder, env={**os.environ, **environ}, stdout=output, stderr=output, start_new_session=True
        )
    try:
        while not (ended := os.wait4(process.pid, os.WNOHANG))[0]:
            watch.look(process.pid)
            if watch.has_hung():
                end(process.pid)
                ended = os.wait4(process.pid, 0)
                break
            time.sleep(LOOK_EVERY_S)
    except BaseException:
        end(process.pid)
        process.wait()
        raise
    took_s = time.monotonic() - watch.began
    _, status, usage = ended
    process.returncode = os.waitstatus_to_exitcode(status)
    web_s = watch.ask()["cpu_s"]
    score = web.score()
    return Run(
        crawler=crawler,
        round=number,
        size=size,
        code=process.returncode,
        hung=watch.hung,
        cpu_s=usage.ru_utime + usage.ru_stime,
        roles_s=watch.roles_s(),
        servers_s={name: cpu_s(pid) - before[name] for name, pid in servers.items()},
        web_s=web_s,
        took_s=took_s,
        asking_s=score["wall_s"],
        memory=watch.memory,
        spin_s=spin_s,
        score={key: score[key] for key in SCORE},
        said=said.read_bytes()[-_SAID_BYTES:].decode(errors="replace") if process.returncode else "",
    )


class Watch:
    """What can only be seen while the crawl runs."""

    def __init__(self, web: Web) -> None:
        self.began = time.monotonic()
        self.memory: list[tuple[float, float]] = []
        self.hung = False
        self._web = web
        self._roles: dict[int, tuple[str, float]] = {}
        self._requests, self._asked_at, self._news_at = -1, self.began, self.began

    def look(self, pid: int) -> None:
        size = 0
        for each in tree(pid):
            with suppress(OSError, IndexError):  # it ended just now
                size += int(Path(f"/proc/{each}/statm").read_text().split()[1]) * PAGE_BYTES
                if role := _role(each):
                    self._roles[each] = (role, cpu_s(each))
        if size:  # none: it has ended, and waits to be asked for its end
            self.memory.append((round(time.monotonic() - self.began, 3), round(size / 1e6, 2)))

    def has_hung(self) -> bool:
        now = time.monotonic()
        if now - self._asked_at >= ASK_EVERY_S:
            self._asked_at = now
            if (requests := self.ask()["requests"]) != self._requests:
                self._requests, self._news_at = requests, now
            self.hung = now - self._news_at > IDLE_S
        return self.hung

    def ask(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self._web.control}/-/stats", timeout=60) as answer:
            stats: dict[str, Any] = json.load(answer)
            return stats

    def roles_s(self) -> dict[str, float]:
        names = sorted({role for role, _ in self._roles.values()})
        return {name: sum(seconds for role, seconds in self._roles.values() if role == name) for name in names}


def _role(pid: int) -> str | None:
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    return next((word.removeprefix("services.") for word in words if word.startswith("services.")), None)


def tree(pid: int) -> list[int]:
    """This process and all below it, parents first."""
    found = [pid]
    for each in found:
        with suppress(OSError):
            for task in Path(f"/proc/{each}/task").iterdir():
                found += map(int, (task / "children").read_text().split())
    return found


def end(pid: int) -> None:
    """Kills a child of ours and all below it, the parents first: they might start their children again."""
    for each in tree(pid):
        with suppress(ProcessLookupError):
            os.kill(each, signal.SIGKILL)


def spin() -> float:
    """CPU time of a loop that is always the same."""
    began, total = time.process_time(), 0
    for number in range(SPINS):
        total += number & 7
    return time.process_time() - began
