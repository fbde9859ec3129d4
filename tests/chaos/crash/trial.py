"""One trial: a crawl dies once, is taken up again as an operator would, ends; and what it left is compared.

- The embedded engine is one process: whatever dies there is all of it, and `resume` goes on.
- On servers a worker or a frontier that dies is started again by the controller. A controller that dies takes nobody along; its
  roles notice, drain and end, while `resume` goes on already.
"""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from types import MappingProxyType
from typing import Final

from adapters import wiring
from gossamer.crash import EXIT_CODE, ONCE, VARIABLE
from gossamer.settings import Engine
from gossamer.walk import Role
from tests.chaos.comparison import Difference, Left, differences, left_by_embedded, left_by_external, requests_again
from tests.chaos.crash.web import SIZES, Sites, sites
from tests.system.stack import Stack, crawling, until
from tests.system.web import PATIENCE_S, start

DELAY_S: Final = 0.4
#: Several crawls on two cores: the web may see a request long after it was sent, and the next one at once.
JITTER_S: Final = 0.3
#: Pages that are with one crawl's workers at a moment, and are fetched again if they die: a request for each of the domains, and
#: what came in while the last ones were stored.
IN_HAND: Final = 30
FENCED: Final = "worker.fenced"

WORDS: Final = (
    *("--delay", str(DELAY_S), "--lease", "2s", "--workers", "2", "--sitemaps", "--similarity", "off", "--max-bytes", "1GB"),
    *("--allow-net", "127.0.0.0/8", "--state", "state"),
)
RESUME: Final = ("resume", "--state", "state")
JSONL: Final = "jsonl:path=pages.jsonl"
CSV: Final = "csv:path=pages.csv,columns=sha256 links"

#: Who may be killed besides those that die at a point.
CONTROLLER: Final = "kill -9 of the controller"
EVERYTHING: Final = "kill -9 of everything"


@dataclass(frozen=True, slots=True)
class Trial:
    engine: Engine
    dies: str  #: a crash point, `CONTROLLER` or `EVERYTHING`
    at: int  #: when the point is reached for the n-th time; when so many pages are stored
    max_pages: int | None = None
    module: str = JSONL

    def __str__(self) -> str:
        killed = self.dies in (CONTROLLER, EVERYTHING)
        more = f", at most {self.max_pages} pages" * (self.max_pages is not None) + ", csv" * (self.module is CSV)
        return f"{self.engine:8} {self.dies} {f'after {self.at} pages' if killed else f'#{self.at}'}{more}"


@dataclass(frozen=True, slots=True)
class Result:
    trial: Trial  #: as it was in the end
    failures: list[str]
    seconds: float
    again: int = 0  #: requests that were made again
    least_gap_s: float | None = None  #: the closest two requests to a domain, as the web saw them


class NotReached(Exception):
    """The crawl ended before anything died."""


class Failed(Exception):
    """The crawl did not end as it should, whatever it left."""


@dataclass(frozen=True)
class Lane:
    """Where trials are made, one after another, on a web of its own."""

    folder: Path
    sites: Sites
    stack: Stack | None  #: None: the embedded engine alone

    @cached_property
    def expected(self) -> Left:
        """What a crawl leaves that nobody disturbs."""
        folder = self.folder / "undisturbed"
        folder.mkdir()
        self.sites.web.reset()
        to_its_end(folder, *words(self.sites, Engine.EMBEDDED, JSONL))
        left = left_by_embedded(folder, self.sites.web)
        assert compared(left, left, may_repeat=0) == []
        return left

    def play(self, trial: Trial) -> Result:
        """A point that is not reached so often is tried earlier. What a failed trial left stays in the lane's folder."""
        expected, began = self.expected, time.monotonic()
        folder = Path(tempfile.mkdtemp(dir=self.folder, prefix=f"{trial.engine}-"))
        self.sites.web.reset()
        try:
            fences = self._disturbed(trial, folder)
            left = self._left(trial, folder)
        except NotReached:
            shutil.rmtree(folder)
            if trial.at > 1:
                return self.play(replace(trial, at=max(1, trial.at // 3)))
            return Result(trial, ["the point was not reached"], time.monotonic() - began)
        except (AssertionError, Failed, subprocess.TimeoutExpired) as error:
            return Result(trial, [f"{error}; see {folder}"], time.monotonic() - began)
        found = compared(expected, left, may_repeat=IN_HAND * (1 + fences), max_pages=trial.max_pages)
        failures = [*map(str, found[:20]), *([f"see {folder}"] if found else [])]
        if not failures:
            shutil.rmtree(folder)
        again, gap_s = requests_again(expected, left), min(left.web.least_gap_s.values(), default=None)
        return Result(trial, failures, time.monotonic() - began, again, gap_s)

    def _disturbed(self, trial: Trial, folder: Path) -> int:
        """Crawls, dies, goes on and ends. How many workers lost their leases besides: on a busy machine a living one may."""
        said = self._embedded(trial, folder) if trial.engine is Engine.EMBEDDED else self._external(trial, folder)
        return said.count(FENCED)

    def _embedded(self, trial: Trial, folder: Path) -> str:
        environ = {} if trial.dies == EVERYTHING else crashing(trial, folder)
        process = start(folder, *self._words(trial), environ=environ)
        try:
            if trial.dies == EVERYTHING:
                until(lambda: stored_in(folder) >= trial.at or process.poll() is not None, f"{trial.at} pages are stored")
                process.kill()
            said, _ = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
            process.wait()
        died_of(process, said, killed=trial.dies == EVERYTHING)
        return said + to_its_end(folder, *RESUME)

    def _external(self, trial: Trial, folder: Path) -> str:
        assert self.stack is not None
        if trial.dies in (CONTROLLER, EVERYTHING):
            return self._killed(trial, folder, self.stack)
        with crawling(self.stack, folder, *self._words(trial), environ=crashing(trial, folder)) as crawl:
            said = crawl.said()
        if not (folder / MARK).exists():
            raise NotReached
        if not trial.dies.startswith(Role.CONTROLLER):
            return well(crawl.process, said)
        died_of(crawl.process, said, killed=False)
        return said + to_its_end(folder, *RESUME, environ=self.stack.environ)

    def _killed(self, trial: Trial, folder: Path, stack: Stack) -> str:
        with crawling(stack, folder, *self._words(trial)) as crawl:
            crawl.until_stored(trial.at)
            roles = crawl.roles()
            for pid in [crawl.process.pid, *roles] if trial.dies == EVERYTHING else [crawl.process.pid]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            said = crawl.said()
        died_of(crawl.process, said, killed=True)
        said += to_its_end(folder, *RESUME, environ=stack.environ)
        until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in roles), "the first controller's roles have ended")
        return said

    def _words(self, trial: Trial) -> list[str]:
        return words(self.sites, trial.engine, trial.module, trial.max_pages)

    def _left(self, trial: Trial, folder: Path) -> Left:
        output = "pages.csv" if trial.module is CSV else "pages.jsonl"
        if trial.engine is Engine.EMBEDDED:
            return left_by_embedded(folder, self.sites.web, output)
        assert self.stack is not None
        return left_by_external(self.stack, folder, self.sites.web, output)


@contextmanager
def lane(folder: Path, stack: Stack | None, sizes: str = SIZES) -> Iterator[Lane]:
    folder.mkdir(parents=True)
    with sites(folder, sizes) as served:
        yield Lane(folder, served, stack)


def compared(expected: Left, left: Left, *, may_repeat: int, max_pages: int | None = None) -> list[Difference]:
    return differences(expected, left, delay_s=DELAY_S, jitter_s=JITTER_S, may_repeat=may_repeat, max_pages=max_pages)


def words(sites: Sites, engine: Engine, module: str, max_pages: int | None = None) -> list[str]:
    seeds = [word for seed in sites.seeds for word in ("--seed", seed)]
    budget = [] if max_pages is None else ["--max-pages", str(max_pages)]
    return [*seeds, "--engine", engine, "--module", module, *budget, *WORDS]


#: Made by whoever dies at a point.
MARK: Final = "died"
NOTHING: Final[Mapping[str, str]] = MappingProxyType({})


def crashing(trial: Trial, folder: Path) -> dict[str, str]:
    return {VARIABLE: f"{trial.dies}:{trial.at}", ONCE: str(folder / MARK)}


def died_of(process: "subprocess.Popen[str]", said: str, *, killed: bool) -> None:
    code = -signal.SIGKILL if killed else EXIT_CODE
    if process.returncode == 0:
        raise NotReached
    if process.returncode != code:
        raise Failed(f"it ended with {process.returncode}, not with {code}: {said[-1000:]}")


def to_its_end(folder: Path, *words: str, environ: Mapping[str, str] = NOTHING) -> str:
    """All that it says."""
    process = start(folder, *words, environ=environ)
    try:
        said, _ = process.communicate(timeout=PATIENCE_S)
    finally:
        process.kill()
        process.wait()
    return well(process, said)


def well(process: "subprocess.Popen[str]", said: str) -> str:
    if process.returncode != 0:
        raise Failed(f"it ended with {process.returncode}: {said[-1000:]}")
    return said


def stored_in(folder: Path) -> int:
    """By the ledger's file, which may not be there yet."""
    file = folder / "state" / wiring.LEDGER_FILE
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=PATIENCE_S)) as ledger:
            row = ledger.execute("SELECT doc FROM crawl").fetchone()
    except sqlite3.OperationalError:
        return 0
    return 0 if row is None else int(json.loads(row[0])["stored"])
