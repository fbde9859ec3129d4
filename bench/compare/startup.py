"""What it takes to begin: the help, and a crawl of one page beside the mere import of the libraries that it uses."""

import os
import statistics
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.compare.crawlers import FREELY, QUICKLY
from bench.compare.measure import end
from tests.system.web import ROOT, command, synthetic_web

TIMES: Final = 5
OURS: Final = frozenset(path.name for path in ROOT.iterdir() if (path / "__init__.py").exists())
IMPORT: Final = """
import os, sys
os.environ["OPENBLAS_NUM_THREADS"] = "1"  # as our own programs have it
for name in sys.argv[1:]:
    try:
        __import__(name)
    except ImportError:  # some other module has put it there by hand
        pass
"""


@dataclass(frozen=True)
class Startup:
    """CPU seconds: medians, and of each round the ratio of the last two."""

    help_s: float
    one_page_s: float
    imports_s: float
    ratios: Sequence[float]


def start_up(folder: Path) -> Startup:
    helps, pages, imports = [], [], []
    with synthetic_web(folder, "--sites", "1", "--pages", "1") as web:

        def crawl(number: int) -> list[str]:
            return command("--seed", web.seeds[0], *QUICKLY, *FREELY, "--state", f"state-{number}")

        libraries = imported([sys.executable, "-X", "importtime", *crawl(0)[1:]], folder)
        for number in range(1, TIMES + 1):
            helps.append(cpu_s(command("--help"), folder))
            pages.append(cpu_s(crawl(number), folder))
            imports.append(cpu_s([sys.executable, "-c", IMPORT, *libraries], folder))
    ratios = [page / bare for page, bare in zip(pages, imports, strict=True)]
    return Startup(statistics.median(helps), statistics.median(pages), statistics.median(imports), ratios)


def imported(words: Sequence[str], folder: Path) -> list[str]:
    """All modules that a run imports and that are not ours, those that others need first."""
    said = subprocess.run(words, cwd=folder, check=True, capture_output=True, text=True, timeout=60).stderr
    names = [line.rpartition("|")[2].strip() for line in said.splitlines() if line.startswith("import time:")]
    return [name for name in names[1:] if name.partition(".")[0] not in OURS]  # the first is the table's head


def cpu_s(words: Sequence[str], folder: Path) -> float:
    """User and system time of a command that ends well."""
    process = subprocess.Popen(words, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except BaseException:
        end(process.pid)
        raise
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        raise SystemExit(f"bench: {' '.join(words)[:200]} ended with {process.returncode}")
    return usage.ru_utime + usage.ru_stime
