"""What was run, and on what: machine, versions, settings, and who was absent. A figure without them can't be read a year later."""

import importlib.metadata
import os
import platform
import re
import subprocess
import sysconfig
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

import gossamer
from bench.compare import crawlers as who
from bench.compare.figures import spread
from bench.compare.targets import Seen
from tests.servers import rabbitmq
from tests.servers.programs import find_program

LIBRARIES: Final = ("pycurl", "selectolax", "ada-url", "numpy", "isal", "msgspec", "redis", "pika", "boto3")
PACKAGES: Final = (
    *("python", "scrapy", "twisted", "lxml", "parsel", "uvloop", "scrapy-redis", "redis", "crawlee", "impit", "spider_rs"),
)
#: Where it may lie, and what makes it tell its version. RabbitMQ's lies in a folder that is named by it.
PROGRAMS: Final = {
    "Redis": (("redis-server", "valkey-server"), "--version"),
    "RabbitMQ": (rabbitmq.PROGRAMS, None),
    "SeaweedFS": (("weed",), "version"),
    "wget2": (("wget2",), "--version"),
    "wget": (("wget",), "--version"),
}


def surroundings(seen: Seen, peers: who.Peers) -> str:
    spins = [run.spin_s * 1000 for run in (*seen.runs, *seen.growing)]
    ours = [f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES]
    theirs = [f"{name} {peers.version[name]}" for name in PACKAGES if name in peers.version]
    programs = [f"{name} {version}" for name, (names, word) in PROGRAMS.items() if (version := _version(names, word))]
    kernel = f"{platform.system()} {platform.release().partition('-')[0]}"
    return "\n".join(
        [
            f"- {datetime.now(UTC):%Y-%m-%d %H:%M} UTC, on {os.cpu_count()} × {_processor()}, {kernel}",
            f"- the machine's state: a loop that is always the same took {spread(spins, '.0f')} ms of CPU before the runs",
            f"- Gossamer {gossamer.__version__}: python {platform.python_version()}{_build()}, {', '.join(ours)}",
            f"- peers: {', '.join(theirs) or 'none'}",
            f"- programs: {', '.join(programs) or 'none'}",
            *(f"- **{crawler.name}**: {crawler.settings}" for crawler in who.CRAWLERS if seen.of(crawler.name)),
            *(f"- absent: {name}, {reason}" for name, reason in seen.absent.items()),
        ]
    )


def _processor() -> str:
    found = re.search(r"^model name\s*: (.*)$", Path("/proc/cpuinfo").read_text(), re.MULTILINE)
    return found[1] if found else platform.machine()


def _build() -> str:
    """Worth a word, since it makes Python code slower by a tenth or two, and libraries in C not."""
    is_optimised = "--enable-optimizations" in (sysconfig.get_config_var("CONFIG_ARGS") or "")
    return "" if is_optimised else " (built without profile-guided optimisation)"


def _version(names: tuple[str, ...], word: str | None) -> str | None:
    """The first number with dots in what it says of itself."""
    if (program := find_program(*names)) is None:
        return None
    if word is None:
        said = str(Path(program).resolve())
    else:
        said = subprocess.run([program, word], capture_output=True, text=True, check=False, timeout=30).stdout
    found = re.search(r"\d+\.\d+[\w.]*", said)
    return found[0] if found else "of unknown version"
