"""Both engines behind one face: a crawl is started on either with the same words, and looked at through its ledger."""

import asyncio
import subprocess
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from adapters.wiring import open_file
from gossamer.clock import SystemClock
from gossamer.errors import GossamerError
from gossamer.ports.ledger import Ledger
from gossamer.records import Counts
from tests.system.stack import Stack, crawl_in
from tests.system.web import PATIENCE_S, REPORT, Ran, ended, run, start

T = TypeVar("T")


@dataclass(frozen=True)
class OnEngine:
    """Crawls in a folder, with their state in `state`."""

    stack: Stack | None  #: None: the embedded engine

    @property
    def words(self) -> tuple[str, ...]:
        return ("--state", "state") if self.stack is None else ("--engine", "external", "--state", "state")

    @property
    def environ(self) -> Mapping[str, str]:
        return {} if self.stack is None else self.stack.environ

    def ask(self, folder: Path, question: Callable[[Ledger], Awaitable[T]]) -> T:
        """One question to the ledger of the crawl in this folder."""
        if self.stack is not None:
            return self.stack.ask(crawl_in(folder), question)

        async def asked() -> T:
            ledger = open_file(folder / "state", SystemClock())
            try:
                return await question(ledger)
            finally:
                await ledger.close()

        return asyncio.run(asked())

    def counts(self, folder: Path) -> Counts | None:
        """None while nothing is known."""
        try:
            return self.ask(folder, lambda ledger: ledger.counts())
        except (GossamerError, FileNotFoundError):
            return None

    def open_urls(self, folder: Path) -> int | None:
        counts = self.counts(folder)
        return None if counts is None else counts.open

    @contextmanager
    def crawling(self, folder: Path, *words: str, environ: Mapping[str, str] = {}) -> Iterator["subprocess.Popen[str]"]:
        """A run of the command with a report, killed if the test leaves it."""
        process = start(folder, *words, *self.words, "--report", REPORT, environ={**self.environ, **environ})
        try:
            yield process
        finally:
            if process.poll() is None:
                process.kill()
                process.communicate(timeout=PATIENCE_S)

    def run(self, folder: Path, *words: str, environ: Mapping[str, str] = {}) -> Ran:
        """The same, to its end."""
        (folder / REPORT).unlink(missing_ok=True)
        with self.crawling(folder, *words, environ=environ) as process:
            return ended(process, folder)

    def resume(self, folder: Path) -> Ran:
        return run(folder, "resume", "--state", "state", environ=self.environ)
