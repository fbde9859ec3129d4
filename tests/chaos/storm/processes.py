"""The roles of a crawl, as the machine knows them: by what they were started with, whoever started them."""

import os
import signal
from contextlib import suppress
from pathlib import Path

from gossamer.ids import CrawlId


def roles(crawl: CrawlId, role: str) -> list[int]:
    """Those that serve this crawl as `worker` or `frontier`, also when their controller is gone."""
    return [pid for pid, words in _all() if crawl in words and f"services.{role}" in words]


def send(pid: int, number: signal.Signals) -> None:
    """To a process that was there a moment ago."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def _all() -> list[tuple[int, list[str]]]:
    """Processes and their command lines; empty for one that has ended, whether or not somebody has noticed."""
    found = []
    for path in Path("/proc").iterdir():
        if path.name.isdecimal():
            with suppress(FileNotFoundError, ProcessLookupError):
                found.append((int(path.name), (path / "cmdline").read_bytes().decode(errors="replace").split("\0")))
    return sorted(found)
