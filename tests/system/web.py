"""The synthetic web and the command, as tests use them: a real server, a real process, in a directory of the test's own."""

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
PATIENCE_S = 120
REPORT = "report.json"


@dataclass(frozen=True)
class Web:
    """A running synthetic web."""

    seeds: list[str]
    control: str

    def reset(self) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{self.control}/-/reset", method="POST"), timeout=PATIENCE_S).close()

    def score(self) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self.control}/-/score", timeout=PATIENCE_S) as answer:
            score: dict[str, Any] = json.load(answer)
            return score


@contextmanager
def synthetic_web(folder: Path, *options: str) -> Iterator[Web]:
    """Serves until the test is over."""
    command = [sys.executable, str(ROOT / "bench" / "synthweb.py"), *options]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=folder, text=True)
    try:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())  # its word that it listens
        yield Web(told["seeds"], told["control"])
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=PATIENCE_S)


@contextmanager
def small_site() -> Iterator[str]:
    """Serves a site with one of everything; its address."""
    command = [sys.executable, "-m", "tests.system.small_site"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield f"http://127.0.3.4:{process.stdout.readline().strip()}"
    finally:
        process.communicate(timeout=PATIENCE_S)


@dataclass(frozen=True)
class Ran:
    code: int
    said: str  #: stdout and stderr
    report: dict[str, Any]


def command(*words: str) -> list[str]:
    return [sys.executable, str(ROOT / "controller.py"), *words]


def start(folder: Path, *words: str, environ: Mapping[str, str] = {}) -> "subprocess.Popen[str]":
    """In this directory; `environ` besides our own."""
    return subprocess.Popen(
        command(*words),
        cwd=folder,
        env={**os.environ, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def run(folder: Path, *words: str, environ: Mapping[str, str] = {}) -> Ran:
    """The command to its end, in this directory, with a report."""
    (folder / REPORT).unlink(missing_ok=True)
    return ended(start(folder, *words, "--report", REPORT, environ=environ), folder)


def ended(process: "subprocess.Popen[str]", folder: Path) -> Ran:
    """What came of a command that was started with `--report` in this directory, once it has ended."""
    said, _ = process.communicate(timeout=PATIENCE_S)
    report = folder / REPORT
    return Ran(process.returncode, said, json.loads(report.read_text()) if report.exists() else {})


#: Loopback, no delay, and budgets in which everything fits.
FREELY = ("--delay", "0", "--allow-net", "127.0.0.0/8", "--max-bytes", "1GB", "--similarity", "off")
PERFECT = {"missed": 0, "forbidden": 0, "wrong": 0, "repeats": 0, "repeats_tracking": 0, "repeats_order": 0, "in_vain": 0}


def verdict(score: dict[str, Any]) -> dict[str, int]:
    return {key: score[key] for key in PERFECT}
