"""A crawl that says what it says to a file, where a test reads it while it runs."""

import asyncio
import json
import os
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from gossamer.errors import GossamerError
from gossamer.ports.ledger import Ledger
from gossamer.urls import identity
from tests.system.stack import until
from tests.system.web import PATIENCE_S, REPORT, Ran, command

_SAID = "said"

#: By identity: which of several spellings of a URL is found first is up to the order of the crawl.
Pages = set[tuple[str, str, frozenset[str]]]


@dataclass(frozen=True)
class Watched:
    folder: Path
    environ: Mapping[str, str]
    process: "subprocess.Popen[bytes]"

    def said(self) -> str:
        return (self.folder / _SAID).read_text()

    def until_said(self, text: str) -> None:
        def has_said() -> bool:
            assert text in self.said() or self.process.poll() is None, self.said()
            return text in self.said()

        until(has_said, f"it says {text!r}; it has said: {self.said()}")

    def until_stored(self, pages: int, ledger: Callable[[], Ledger]) -> None:
        async def stored() -> int:
            opened = ledger()
            try:
                return (await opened.counts()).stored
            except GossamerError:
                return 0  # it has not begun
            finally:
                await opened.close()

        def enough() -> bool:
            assert self.process.poll() is None, self.said()
            return (self.folder / "state" / "crawl.json").exists() and asyncio.run(stored()) >= pages

        until(enough, f"{pages} pages are stored")

    def ask(self, verb: str, *words: str) -> Ran:
        """Another command about it, to its end."""
        return _ran(self.folder, self.environ, verb, "--state", "state", *words)

    def ended(self) -> Ran:
        code = self.process.wait(timeout=PATIENCE_S)
        report = self.folder / REPORT
        return Ran(code, self.said(), json.loads(report.read_text()) if report.exists() else {})


@contextmanager
def watched(folder: Path, *words: str, environ: Mapping[str, str] = {}) -> Iterator[Watched]:
    """Started by these words, with its state in `state`, and a report. Whatever the test leaves is killed."""
    (folder / REPORT).unlink(missing_ok=True)
    with (folder / _SAID).open("wb") as said:
        process = subprocess.Popen(
            command(*words, "--state", "state", "--report", REPORT),
            cwd=folder,
            env={**os.environ, **environ},
            stdout=said,
            stderr=subprocess.STDOUT,
        )
    try:
        yield Watched(folder, environ, process)
    finally:
        if process.poll() is None:
            process.kill()
            process.wait(timeout=PATIENCE_S)


def _ran(folder: Path, environ: Mapping[str, str], *words: str) -> Ran:
    done = subprocess.run(
        command(*words),
        cwd=folder,
        env={**os.environ, **environ},
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    return Ran(done.returncode, done.stdout or done.stderr, {})


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines()]


def pages_of(file: Path) -> Pages:
    return {(line["id"], line["sha256"], frozenset(identity(link) for link in line["links"])) for line in lines(file)}
