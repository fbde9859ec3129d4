"""What a crawl on servers costs: round trips to each, and CPU time of the roles and of the servers, per 1,000 pages.

    python -m bench.external [--workers 2] [--pages 1000] [--queue-type classic|quorum]

Starts RabbitMQ, Redis, S3 and a synthetic web on this machine, crawls it once to warm up and then for the figures. Round trips are
read off the servers themselves where they count them (Redis), else off a relay in between.
"""

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redis.asyncio import Redis as Client

from tests.servers import s3_client
from tests.system.stack import Stack, running_stack
from tests.system.web import FREELY, PERFECT, command, synthetic_web, verdict

TICKS = os.sysconf("SC_CLK_TCK")


def cpu_s(pid: int) -> float:
    """User and system time of a process, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / TICKS


@contextmanager
def watched(pid: int, into: dict[str, float]) -> Iterator[None]:
    """Notes the CPU time of a controller and its roles while they live: a process that has ended can't be asked."""
    done = threading.Event()

    def look() -> None:
        while not done.wait(0.02):
            try:
                children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
                into["controller"] = cpu_s(pid)
                for child in map(int, children):
                    words = Path(f"/proc/{child}/cmdline").read_bytes().decode().split("\0")
                    for role in (word for word in words if word.startswith("services.")):  # none: not begun yet
                        into[f"{role.removeprefix('services.')} {child}"] = cpu_s(child)
            except (FileNotFoundError, ProcessLookupError):
                continue

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


async def redis_asked(url: str) -> tuple[int, int]:
    """Scripts that were run; and how often the server had something to read, which is a round trip or, of a big one, a part."""
    async with Client.from_url(url) as client:
        calls: dict[str, Any] = await client.info("commandstats")
        stats: dict[str, Any] = await client.info("stats")
    return calls["cmdstat_evalsha"]["calls"], stats["total_reads_processed"]


async def reset_redis(url: str) -> None:
    async with Client.from_url(url) as client:
        await client.config_resetstat()


def crawl(stack: Stack, folder: Path, seed: str, workers: int, queue_type: str) -> tuple[dict[str, Any], dict[str, float]]:
    words = ("--engine", "external", "--seed", seed, "--workers", str(workers), "--queue-type", queue_type, *FREELY)
    roles: dict[str, float] = {}
    with (
        subprocess.Popen(
            command(*words, "--report", "report.json"),
            cwd=folder,
            env={**os.environ, **stack.environ},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as process,
        watched(process.pid, roles),
    ):
        process.wait(timeout=600)
    return json.loads((folder / "report.json").read_text()), roles


def blobs_of(stack: Stack, crawl: str) -> list[str]:
    endpoint, _, bucket = stack.s3.url.rpartition("/")
    pages = s3_client(endpoint, stack.s3.credentials).get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{crawl}/")
    return [each["Key"] for page in pages for each in page.get("Contents", [])]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--pages", type=int, default=1000)
    parser.add_argument("--sites", type=int, default=20)
    parser.add_argument("--queue-type", default="classic")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as name, running_stack() as stack:
        folder = Path(name)
        with synthetic_web(folder, "--sites", str(given.sites), "--pages", str(given.pages), "--seed", "1") as web:
            crawl(stack, folder, web.seeds[0], given.workers, given.queue_type)
            web.reset()
            asyncio.run(reset_redis(stack.redis.url))
            servers = {"RabbitMQ": stack.rabbitmq.pid, "Redis": stack.redis.pid, "S3 (SeaweedFS)": stack.s3.pid}
            before = {name: cpu_s(pid) for name, pid in servers.items()}
            began = time.monotonic()
            report, roles = crawl(stack, folder, web.seeds[0], given.workers, given.queue_type)
            wall_s = time.monotonic() - began
            after = {name: cpu_s(pid) for name, pid in servers.items()}
            scripts, round_trips = asyncio.run(redis_asked(stack.redis.url))
            score = verdict(web.score())
            objects = len(blobs_of(stack, report["crawl"]))
    pages = report["pages"]
    assert score == PERFECT, score
    print(f"{pages} pages, {given.workers} workers, {given.queue_type} queues: {wall_s:.1f} s, start-up and end included")
    print("CPU seconds per 1,000 pages")
    for role in ("controller", "frontier", "worker"):
        spent = [seconds for name, seconds in roles.items() if name.startswith(role)]
        each = f" ({len(spent)} processes)" if len(spent) > 1 else ""
        print(f"  {role:<16} {sum(spent) / pages * 1000:6.2f}{each}")
    for name in servers:
        print(f"  {name:<16} {(after[name] - before[name]) / pages * 1000:6.2f}")
    print(f"S3: {objects / pages:.2f} objects written a page")
    print(f"Redis: {round_trips / pages:.2f} round trips a page, {scripts / pages:.2f} verbs, whatever the clock drives included")
    return 0


if __name__ == "__main__":
    sys.exit(main())
