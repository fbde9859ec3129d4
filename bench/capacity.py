"""What each part of a crawl holds: bytes and CPU time of the ledgers as they grow, and of everything else a page.

    python -m bench.capacity [sqlite redis crawl] [--known 50000,1000000,5000000] [--pages 1000,10000]

`sqlite`, `redis`: a ledger through which pages live as in a crawl without end, by its verbs alone. Each page has 60 links, half of
them its site's navigation, ten new; its signature and bands are as long as real ones, and like nobody's. At each size the last
pages are timed (of Redis, the server), and the ledger is weighed, kind by kind.
`crawl`: a synthetic web, crawled twice on RabbitMQ, Redis and S3, through relays that count bytes. What the larger crawl took more
is what its pages took more, so that no start-up is in it.

CPU time and sizes only: other work on the same cores changes neither much. `sqlite` takes ten minutes, and 3 GB of disk.
"""

import argparse
import asyncio
import hashlib
import json
import os
import random
import sqlite3
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

from adapters.distributed.ledger import RedisLedger, connect
from adapters.embedded.ledger import SqliteLedger
from bench.external import cpu_s
from gossamer.clock import SystemClock
from gossamer.ids import CrawlId, UrlId
from gossamer.messages import Link
from gossamer.outcomes import Outcome
from gossamer.ports.blobs import BlobRef
from gossamer.ports.ledger import Ledger
from gossamer.records import UNRANKED, Closing, Content, Facts, Rules, Seat, Visit, window
from gossamer.states import State
from services.worker.sketch import BAND_KEY_BYTES, BINS, banding
from tests.servers import Redis, s3_client
from tests.servers.relay import Relay
from tests.system.stack import Stack, running_stack
from tests.system.web import PERFECT, Web, command, synthetic_web, verdict

SITES: Final = 300
LINKS: Final = 60
NEW_LINKS: Final = 10
NAVIGATION: Final = LINKS // 2
SIMILARITY: Final = 0.9
GROUP: Final = 32  #: pages in the same step at one time, each of another site
TIMED: Final = 128  #: groups, the last ones before a size is reached: as many as there are from one filing of bands to the next
FRESH: Final = 100_000  #: URLs that are added, and then parked, to weigh one
AT_ONCE: Final = 1_000

KINDS: Final = {
    "URLs": ("url", "waiting", "arrived", "offered", "parked", "held", "suspects", "poisoned"),
    "exact hashes": ("exact",),  # of Redis
    "signatures": ("content",),  # of SQLite, with the exact hashes
    "bands": ("band", "filed"),
    "out-links": ("outlinks",),
}
REST: Final = "the rest"


# --- A crawl without end ---


def link(number: int) -> Link:
    domain = f"www.site{number % SITES}.example"
    url = f"https://{domain}/section/{number // SITES % 97}/an-article-about-something-{number}.html"
    return Link(UrlId(hashlib.blake2b(url.encode(), digest_size=16).digest()), url, domain)


Group = tuple[Sequence[Link], Sequence[Content], Sequence[Closing]]


class Endless:
    """Pages in the order in which they were found. All navigation is known from the start."""

    def __init__(self) -> None:
        self.known, self.stored, self.new_links = SITES * NAVIGATION, 0, NEW_LINKS
        self._rng, self._bands = random.Random(7), banding(SIMILARITY).bands

    def group(self) -> Group:
        pages = [link(number) for number in range(self.stored, self.stored + GROUP)]
        self.stored += GROUP
        return pages, [self._content(page) for page in pages], [self._closing(page) for page in pages]

    def _content(self, page: Link) -> Content:
        bands = [self._rng.randbytes(BAND_KEY_BYTES) for _ in range(self._bands)]
        return Content(id=page.id, exact=hashlib.sha256(page.id).digest(), signature=self._rng.randbytes(4 * BINS), bands=bands)

    def _closing(self, page: Link) -> Closing:
        site = self._rng.randrange(SITES)
        numbers = [site + SITES * each for each in range(NAVIGATION)]
        numbers += [self._rng.randrange(self.known) for _ in range(LINKS - NAVIGATION - self.new_links)]
        numbers += range(self.known, self.known + self.new_links)
        self.known += self.new_links
        blob = BlobRef("00000000-segment.warc.gz", 123_456, 7_890, hashlib.sha256(page.id).digest())
        facts = Facts(status=200, blob=blob, title="An article about something", took_s=0.05)
        visit = Visit(received_bytes=6_800, since_start_s=0.05, answered=True)
        return Closing(
            id=page.id, outcome=Outcome.DONE, facts=facts, visit=visit, links=[link(each) for each in dict.fromkeys(numbers)]
        )


# --- A ledger as it grows ---


@dataclass(frozen=True, slots=True)
class Weighed:
    """A ledger, and how to tell what it takes."""

    ledger: Ledger
    cpu_s: Callable[[], Awaitable[float]]
    bytes_by_kind: Callable[[], Awaitable[Mapping[str, int]]]
    process: int  #: the one that holds it


@dataclass(frozen=True, slots=True)
class Size:
    known: int
    stored: int
    verbs_ms: Mapping[str, float]  #: CPU a page
    bytes: Mapping[str, int]
    resident_mb: float
    written_kb: float  #: to the disk, a page


@dataclass(frozen=True, slots=True)
class Url:
    """Bytes of one, by its state."""

    waiting: float
    parked: float
    stored: float


async def grow(weighed: Weighed, sizes: Sequence[int]) -> tuple[list[Size], Url]:
    ledger, web, grown = weighed.ledger, Endless(), []
    rules = Rules(
        max_pages=10**12,
        max_bytes=10**18,
        max_host_pages=None,
        max_domain_pages=None,
        delay_s=0.0,
        lease_s=3600.0,
        similarity=SIMILARITY,
        queue_size=10**6,
        keep_outlinks=True,
    )
    await ledger.create(rules)
    seat = await ledger.register("bench")
    await add(ledger, range(web.known))
    for known in sizes:
        while web.known < known - TIMED * GROUP * NEW_LINKS:
            await live(weighed, seat, web.group(), {})
        grown.append(await timed(weighed, seat, web))
    return grown, await one_url(weighed, seat, web)


async def timed(weighed: Weighed, seat: Seat, web: Endless) -> Size:
    spent_s: dict[str, float] = {}
    written, pages = disk_bytes(weighed.process), TIMED * GROUP
    for _ in range(TIMED):
        await live(weighed, seat, web.group(), spent_s)
    written_kb = (disk_bytes(weighed.process) - written) / pages / 1000
    counts = await weighed.ledger.counts()
    assert (counts.stored, counts.states[State.WAITING]) == (web.stored, web.known - web.stored), counts
    verbs_ms = {verb: seconds * 1000 / pages for verb, seconds in spent_s.items()}
    resident_mb, kinds = status_mb(weighed.process, "VmRSS"), await weighed.bytes_by_kind()
    print(f"{web.known:,} URLs known", file=sys.stderr, flush=True)
    return Size(web.known, web.stored, verbs_ms, kinds, resident_mb, written_kb)


async def live(weighed: Weighed, seat: Seat, group: Group, spent: dict[str, float]) -> None:
    """Route, begin, judge and finish; what each costs is added up."""
    pages, contents, closings = group
    ledger, ids = weighed.ledger, [page.id for page in pages]
    verbs: Mapping[str, Callable[[], Awaitable[Any]]] = {
        "route": lambda: ledger.route([(id, UNRANKED) for id in ids]),
        "begin": lambda: ledger.begin(seat, ids),
        "judge": lambda: ledger.judge(seat, contents),
        "finish": lambda: ledger.finish(seat, closings),
    }
    for name, verb in verbs.items():
        before = await weighed.cpu_s()
        await verb()
        spent[name] = spent.get(name, 0.0) + await weighed.cpu_s() - before


async def add(ledger: Ledger, numbers: range) -> None:
    for some in portions(numbers):
        await ledger.add([link(number).found() for number in some])


async def route(ledger: Ledger, numbers: range) -> None:
    for some in portions(numbers):
        await ledger.route([(link(number).id, UNRANKED) for number in some])


async def one_url(weighed: Weighed, seat: Seat, web: Endless) -> Url:
    async def urls_bytes() -> int:
        return (await weighed.bytes_by_kind())["URLs"]

    open_bytes = await urls_bytes()
    web.new_links = 0
    for _ in range(TIMED):
        await live(weighed, seat, web.group(), {})
    closed_bytes = await urls_bytes()
    await route(weighed.ledger, range(web.known - SITES * window(0.0), web.known))  # now all windows are full
    before, fresh = await urls_bytes(), range(web.known, web.known + FRESH)
    await add(weighed.ledger, fresh)
    waiting = (await urls_bytes() - before) / FRESH
    await route(weighed.ledger, fresh)
    states = (await weighed.ledger.counts()).states
    assert states[State.PARKED] == FRESH, states
    return Url(waiting, (await urls_bytes() - before) / FRESH, waiting + (closed_bytes - open_bytes) / (TIMED * GROUP))


def portions(numbers: range) -> Iterator[range]:
    for start in range(0, len(numbers), AT_ONCE):
        yield numbers[start : start + AT_ONCE]


def kind_of(name: str) -> str:
    return next((kind for kind, names in KINDS.items() if name in names), REST)


def status_mb(pid: int, name: str) -> float:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(f"{name}:")) / 1000


def disk_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("write_bytes:"))


@asynccontextmanager
async def on_sqlite() -> AsyncIterator[Weighed]:
    async def spent_s() -> float:
        return time.process_time()

    async def sized() -> Mapping[str, int]:
        sizes: Counter[str] = Counter()
        with sqlite3.connect(path) as connection:
            # An index counts as its table.
            of = dict(connection.execute("SELECT name, tbl_name FROM sqlite_schema"))
            for name, size in connection.execute("SELECT name, SUM(pgsize) FROM dbstat GROUP BY name"):
                sizes[kind_of(of.get(name, name))] += size
        connection.close()
        return sizes

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "ledger.sqlite"
        ledger = SqliteLedger(path, SystemClock())
        yield Weighed(ledger, spent_s, sized, os.getpid())
        await ledger.close()


@asynccontextmanager
async def on_redis() -> AsyncIterator[Weighed]:
    with Redis() as server:
        client, crawl = connect(server.url), CrawlId(f"bench-{uuid4().hex}")
        prefix = f"gossamer:{{{crawl}}}:"

        async def keys() -> list[bytes]:
            return [key async for key in client.scan_iter(match=f"{prefix}*", count=1000)]

        async def spent_s() -> float:
            cpu = await client.info("cpu")
            return float(cpu["used_cpu_user_main_thread"] + cpu["used_cpu_sys_main_thread"])

        async def sized() -> Mapping[str, int]:
            sizes: Counter[str] = Counter()
            for key in await keys():
                name = key.decode().removeprefix(prefix).partition(":")[0]
                sizes[kind_of(name)] += await client.memory_usage(key, samples=0) or 0
            return sizes

        ledger = RedisLedger(client, crawl)
        yield Weighed(ledger, spent_s, sized, server.pid)
        # As when its time to live is over: the server answers nobody meanwhile.
        before = await spent_s()
        await client.delete(*await keys())
        print(f"  deleting it: {await spent_s() - before:.2f} CPU-seconds of the server")
        await ledger.close()
        await client.aclose()


async def ledger(engine: str, sizes: Sequence[int]) -> None:
    async with on_sqlite() if engine == "sqlite" else on_redis() as weighed:
        grown, url = await grow(weighed, sizes)
        tell(engine, grown, url)


def tell(engine: str, grown: Sequence[Size], url: Url) -> None:
    verbs = list(grown[-1].verbs_ms)
    print(f"\n{engine}: CPU-ms a page" + (" of the server" if engine == "redis" else "") + ", and what it takes\n")
    print(f"| URLs known | pages stored | {' | '.join(verbs)} | all | GB | resident MB | KB written a page |")
    print("|--:" * (len(verbs) + 6) + "|")
    for size in grown:
        spent = " | ".join(f"{size.verbs_ms[verb]:.3f}" for verb in verbs)
        gb, whole = sum(size.bytes.values()) / 1e9, sum(size.verbs_ms.values())
        took = f"{gb:.2f} | {size.resident_mb:.0f} | {size.written_kb:.1f}"
        print(f"| {size.known:,} | {size.stored:,} | {spent} | {whole:.3f} | {took} |")
    last = grown[-1]
    print(f"\nBytes, at {last.known:,} URLs of {len(link(last.known).url)} characters:")
    print(f"  a URL: {url.waiting:.0f} while it waits, {url.parked:.0f} parked, {url.stored:.0f} once its page is stored")
    for kind in (*KINDS, REST):
        if kind != "URLs" and last.bytes[kind]:
            print(f"  a page stored, {kind}: {last.bytes[kind] / last.stored:.0f}")


# --- A crawl on servers ---


@dataclass(frozen=True, slots=True)
class Took:
    """What a crawl took in all."""

    pages: int
    cpu_s: Mapping[str, float]
    peak_mb: Mapping[str, float]
    to_bytes: Mapping[str, int]  #: by server: what it was sent
    from_bytes: Mapping[str, int]
    objects: int
    object_bytes: int


async def crawled(stack: Stack, folder: Path, web: Web) -> Took:
    servers = {"RabbitMQ": stack.rabbitmq, "Redis": stack.redis, "S3": stack.s3}
    spent = {name: cpu_s(server.pid) for name, server in servers.items()}
    async with AsyncExitStack() as left:
        relays = {name: await left.enter_async_context(Relay(server.url)) for name, server in servers.items()}
        urls = {f"GOSSAMER_{name.upper()}_URL": relay.url for name, relay in relays.items()}
        freely = (
            "--delay",
            "0",
            "--allow-net",
            "127.0.0.0/8",
            "--max-pages",
            "1000000",
            "--max-bytes",
            "10GB",
            "--duplicate-links",
            "follow",
        )
        words = ("--engine", "external", "--seed", web.seeds[0], "--workers", "2", *freely, "--report", "report.json")
        devnull = asyncio.subprocess.DEVNULL
        process = await asyncio.create_subprocess_exec(
            *command(*words), cwd=folder, env={**os.environ, **stack.environ, **urls}, stdout=devnull, stderr=devnull
        )
        roles, peaks = await watched(process)
    assert process.returncode == 0, f"the crawl ended with {process.returncode}"
    assert verdict(web.score()) == PERFECT, web.score()
    report = json.loads((folder / "report.json").read_text())
    sizes = object_sizes(stack, report["crawl"])
    return Took(
        pages=report["pages"],
        cpu_s={**roles, **{name: cpu_s(server.pid) - spent[name] for name, server in servers.items()}},
        peak_mb={**peaks, **{name: status_mb(server.pid, "VmHWM") for name, server in servers.items()}},
        to_bytes={name: len(relay.requests) for name, relay in relays.items()},
        from_bytes={name: relay.answered_bytes for name, relay in relays.items()},
        objects=len(sizes),
        object_bytes=sum(sizes),
    )


async def watched(controller: asyncio.subprocess.Process) -> tuple[dict[str, float], dict[str, float]]:
    """CPU seconds and peak memory of a controller and its roles, by role. Looked at while they live: later nobody can be asked."""
    cpu: dict[tuple[str, int], float] = {}
    peak: dict[str, float] = {}
    while controller.returncode is None:
        with suppress(FileNotFoundError, ProcessLookupError, StopIteration):  # one of them has ended just now
            roles = {pid: role for pid in children(controller.pid) if (role := role_of(pid))}
            for pid, role in {controller.pid: "controller", **roles}.items():
                cpu[role, pid] = cpu_s(pid)
                peak[role] = max(peak.get(role, 0.0), status_mb(pid, "VmHWM"))
        await asyncio.sleep(0.02)
    spent: dict[str, float] = {}
    for (role, _), seconds in cpu.items():
        spent[role] = spent.get(role, 0.0) + seconds
    return spent, peak


def children(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def role_of(pid: int) -> str | None:
    """None: it has not begun yet."""
    words = Path(f"/proc/{pid}/cmdline").read_bytes().decode().split("\0")
    return next((word.removeprefix("services.") for word in words if word.startswith("services.")), None)


def object_sizes(stack: Stack, crawl: str) -> list[int]:
    endpoint, _, bucket = stack.s3.url.rpartition("/")
    pages = s3_client(endpoint, stack.s3.credentials).get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=f"{crawl}/")
    return [each["Size"] for page in pages for each in page.get("Contents", [])]


def crawl(sizes: Sequence[int]) -> None:
    took = []
    with running_stack() as stack:
        for pages in sizes:
            with tempfile.TemporaryDirectory() as name, synthetic_web(Path(name), "--pages", str(pages), "--seed", "1") as web:
                took.append(asyncio.run(crawled(stack, Path(name), web)))
    small, large = took
    pages = large.pages - small.pages
    print(f"\ncrawl: a page more, from {small.pages:,} to {large.pages:,}; 2 workers, all that is on by default\n")
    print("| | CPU-ms a page | pages a CPU-second | peak MB | bytes to it, a page | bytes from it |\n|---|--:|--:|--:|--:|--:|")
    for part, seconds in large.cpu_s.items():
        ms = (seconds - small.cpu_s[part]) * 1000 / pages
        network = ""
        if part in large.to_bytes:
            to, of = large.to_bytes[part] - small.to_bytes[part], large.from_bytes[part] - small.from_bytes[part]
            network = f"{to / pages:,.0f} | {of / pages:,.0f}"
        print(f"| {part} | {ms:.3f} | {1000 / ms:,.0f} | {large.peak_mb[part]:.0f} | {network or ' | '} |")
    objects, size = large.objects - small.objects, large.object_bytes - small.object_bytes
    print(
        f"\nS3: {objects / pages:.3f} objects a page, {size / pages:,.0f} bytes a page, {size / objects / 1000:,.0f} KB an object"
    )


def numbers(text: str) -> list[int]:
    return [int(each) for each in text.split(",")]


def main() -> int:
    parts = ("sqlite", "redis", "crawl")
    parser = argparse.ArgumentParser(
        prog="python -m bench.capacity", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "parts", nargs="*", metavar="part", choices=[*parts, []], help=f"of {', '.join(parts)}: all, if none is named"
    )
    parser.add_argument("--known", type=numbers, metavar="N,…", help="sizes at which a ledger is looked at, in URLs")
    parser.add_argument("--pages", type=numbers, metavar="N,N", default=[1_000, 10_000], help="sizes of the two crawls")
    given = parser.parse_args()
    for part in given.parts or parts:
        if part == "crawl":
            crawl(given.pages)
        else:
            # Redis's tables double at powers of two: a size is weighed between two of them.
            sizes = given.known or ([50_000, 1_000_000, 5_000_000] if part == "sqlite" else [50_000, 200_000, 800_000])
            asyncio.run(ledger(part, sizes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
