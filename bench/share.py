"""The ledger's share of a page: how much of all the CPU time that a crawl takes goes into keeping its state.

    python -m bench.share [--pages 3000] [--sites 20]

Crawls a synthetic web on each engine, with the settings that come along but for the delay. Embedded: one process, the ledger's own
thread included. External: controller, frontier and two workers, in which the ledger's verbs are told apart; and the servers, of
which Redis is the ledger's, RabbitMQ and S3 are not.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Final

from bench.external import cpu_s
from tests.system.stack import Stack, running_stack
from tests.system.web import ROOT, Web, synthetic_web

FREELY: Final = ("--delay", "0", "--allow-net", "127.0.0.0/8", "--max-bytes", "10GB", "--report", "report.json")
PATIENCE_S: Final = 1800
LEDGERS: Final = "Redis"

#: Where the time went: all of it, and the ledger's, in CPU seconds.
Spent = dict[str, tuple[float, float]]


def start(folder: Path, program: str, *words: str, environ: Mapping[str, str] = {}) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-m", "bench.timed", str(folder), program, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environ},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def ended(process: "subprocess.Popen[bytes]") -> None:
    if process.wait(PATIENCE_S) != 0:
        raise SystemExit(f"{process.args!r} ended with {process.returncode}")


def figures(folder: Path, processes: Sequence["subprocess.Popen[bytes]"]) -> tuple[float, float]:
    read = [json.loads((folder / f"{process.pid}.json").read_text()) for process in processes]
    return sum(each["cpu_s"] for each in read), sum(each["ledger_s"] for each in read)


def embedded(folder: Path, web: Web) -> Spent:
    crawl = start(folder, str(ROOT / "controller.py"), "--seed", web.seeds[0], *FREELY)
    ended(crawl)
    return {"the process": figures(folder, [crawl])}


def external(folder: Path, web: Web, stack: Stack) -> Spent:
    servers = {"RabbitMQ": stack.rabbitmq.pid, LEDGERS: stack.redis.pid, "S3": stack.s3.pid}
    before = {name: cpu_s(pid) for name, pid in servers.items()}
    with ExitStack() as left:
        roles = [start(folder, f"services.{role}", environ=stack.environ) for role in ("frontier", "worker", "worker")]
        for role in roles:
            left.callback(role.kill)
        words = ("--seed", web.seeds[0], "--engine", "external", "--roles", "elsewhere", *FREELY)
        controller = start(folder, str(ROOT / "controller.py"), *words, environ=stack.environ)
        left.callback(controller.kill)
        ended(controller)
        for role in roles:
            role.send_signal(signal.SIGTERM)
            ended(role)
    spent = {"controller": figures(folder, [controller])}
    spent |= {"frontier": figures(folder, roles[:1]), "workers": figures(folder, roles[1:])}
    for name, pid in servers.items():
        seconds = cpu_s(pid) - before[name]
        spent[name] = (seconds, seconds if name == LEDGERS else 0.0)
    return spent


def told(engine: str, pages: int, spent: Spent) -> None:
    print(f"\n| {engine}, {pages:,} pages | CPU-ms a page | of it the ledger's | share |\n|---|--:|--:|--:|")
    whole = (sum(each for each, _ in spent.values()), sum(of_it for _, of_it in spent.values()))
    for name, (seconds, of_it) in [*spent.items(), *([("**all**", whole)] if len(spent) > 1 else [])]:
        print(f"| {name} | {seconds / pages * 1000:.2f} | {of_it / pages * 1000:.2f} | {of_it / seconds:.0%} |", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pages", type=int, default=3000)
    parser.add_argument("--sites", type=int, default=20)
    given = parser.parse_args()
    with (
        tempfile.TemporaryDirectory() as name,
        running_stack() as stack,
        synthetic_web(Path(name), "--sites", str(given.sites), "--pages", str(given.pages), "--seed", "1") as web,
    ):
        for engine in ("embedded", "external"):
            (folder := Path(name) / engine).mkdir()
            spent = embedded(folder, web) if engine == "embedded" else external(folder, web, stack)
            told(engine, json.loads((folder / "report.json").read_text())["pages"], spent)
    return 0


if __name__ == "__main__":
    sys.exit(main())
