"""What each step of a page's life costs us, beside the least that it can cost.

    python -m bench.steps [--json] [--pages 400] [--rounds 5] [--external]

Walks a synthetic web of 20 sites once, then takes each step alone over its pages, in the order of the walk: our own code, and the
cheapest sensible way to do the same (bench/floors.py), by turns, several times. CPU time, user and system of the whole process with
all of its threads; medians. Verbs come in groups as they do in a crawl of such a web: a few pages to a call, fifty to a segment.
Not in here: what holds the steps together (tasks, agenda, event loop); `make profile` has that.

With `--external` the same on Redis, RabbitMQ and S3, which are started for it: the client's time, and beside it the server's.
"""

import argparse
import asyncio
import json
import os
import platform
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import ExitStack, asynccontextmanager
from hashlib import sha256
from itertools import count
from pathlib import Path
from typing import Final

import msgspec
from ada_url import join_url
from protego import Protego

from adapters.embedded.blobs import DirectoryBlobs
from adapters.embedded.broker import MemoryBroker
from adapters.embedded.ledger import SqliteLedger
from bench import floors
from bench.measuring import Measured, Run, Side, Step, Watch, figures, measured, table
from bench.replay import SEGMENT_PAGES, Lives, Passing, captures, new_links, portions
from bench.server_steps import server_steps, servers
from bench.walked import (
    LOOPBACK,
    PAGE_BYTES,
    SETTINGS,
    Visited,
    Walked,
    downloader,
    followable,
    link_reader,
    page_request,
    sketcher,
    walk,
)
from gossamer.clock import SystemClock
from gossamer.ids import CrawlId
from gossamer.messages import Link
from gossamer.urls import origin_of
from services.worker import guard
from services.worker.addresses import url_refusal
from services.worker.decode import decode
from services.worker.parse import parse
from services.worker.robotstxt import denial, page_rules, read_rules
from tests.system.stack import Stack, running_stack
from tests.system.web import synthetic_web

SITES: Final = 20
PARALLEL: Final = SETTINGS.fetching.parallel
#: Pages to a commit of the floor's ledger.
GROUP: Final = 32


def each(name: str, do: Callable[[Visited], object], pages: Sequence[Visited]) -> Side:
    """A step that remembers nothing: one call a page."""

    async def run(watch: Watch) -> None:
        with watch(name):
            for page in pages:
                do(page)

    @asynccontextmanager
    async def side() -> AsyncIterator[Run]:
        yield run

    return side


def fresh(name: str, make: Callable[[], Callable[[Visited], object]], pages: Sequence[Visited]) -> Side:
    """A step with a memory, which is empty at first."""

    @asynccontextmanager
    async def side() -> AsyncIterator[Run]:
        async with each(name, make(), pages)() as run:
            yield run

    return side


def steps(walked: Walked, folder: Path) -> list[Step]:
    pages, names = walked.pages, count()

    def path() -> Path:
        return folder / str(next(names))

    return [
        Step(lambda: our_download(pages), lambda: floor_download(pages), {"download": "pycurl, its own loop"}),
        Step(each("decode, guard", our_decode, pages), each("decode, guard", floor_decode, pages), {"decode, guard": "isal"}),
        Step(
            each("parse", our_parse, pages),
            each("parse", lambda page: floors.parse(_as_read(page)), pages),
            {"parse": "selectolax"},
        ),
        Step(
            each("hash", our_hash, pages), each("hash", lambda page: sha256(page.decoded.raw).digest(), pages), {"hash": "sha256"}
        ),
        Step(fresh("links", our_links, pages), fresh("links", floor_links, pages), {"links": "ada-url, blake2b"}),
        Step(
            fresh("sketch", our_sketch, pages),
            each("sketch", lambda page: floors.sketch(page.reading.parsed.main), pages),
            {"sketch": "numpy"},
        ),
        Step(
            fresh("robots", lambda: our_robots(walked), pages),
            fresh("robots", lambda: floor_robots(walked), pages),
            {"robots": "protego"},
        ),
        Step(lambda: our_store(pages, path()), lambda: floor_store(pages, path()), {"store": "isal, one fsync"}),
        Step(
            lambda: our_ledger(pages, path()),
            lambda: floor_ledger(pages, path()),
            {"ledger": "sqlite3, 32 pages a commit", "judge": "dict of bands", "rank": "-"},
        ),
        Step(lambda: our_frontier(pages, path()), lambda: floor_frontier(pages), {"frontier": "heapq, msgspec"}),
    ]


def check(pages: Sequence[Visited]) -> None:
    """The floors do the work that we do, or there is nothing to compare: the same text, links and ids of every page."""
    links = floors.Links()
    for page in pages:
        html, parsed = page.decoded.html, page.reading.parsed
        assert floors.decode(page.answer.headers, page.answer.body) == html, page.url.url
        _, hrefs, _, text = floors.parse(html)
        assert set(hrefs) == set(parsed.hrefs), page.url.url
        assert text.split() == parsed.main.split(), page.url.url
        assert {link.id for link in page.followed.links} <= {*floor_ids(links, page)}, page.url.url


# --- Steps one by one ---


@asynccontextmanager
async def our_download(pages: Sequence[Visited]) -> AsyncIterator[Run]:
    client = downloader()

    async def run(watch: Watch) -> None:
        requests = iter([page_request(page.url.url) for page in pages])

        async def fetch() -> None:
            for request in requests:
                await client.fetch(request)

        with watch("download"):
            await asyncio.gather(*(fetch() for _ in range(PARALLEL)))

    await run(Watch())  # connections are there, as they are in a crawl
    yield run
    await client.close()


@asynccontextmanager
async def floor_download(pages: Sequence[Visited]) -> AsyncIterator[Run]:
    client, urls = floors.Client(PARALLEL), [page.url.url for page in pages]

    async def run(watch: Watch) -> None:
        with watch("download"):
            client.fetch(urls)

    await run(Watch())
    yield run
    client.close()


def our_decode(page: Visited) -> None:
    decode(page.answer.headers, page.answer.body, PAGE_BYTES)
    guard.refusal(page.decoded.html)


def floor_decode(page: Visited) -> None:
    floors.decode(page.answer.headers, page.answer.body)


def our_parse(page: Visited) -> None:
    parse(_as_read(page), max_links=SETTINGS.links.max_links, text=False)


def _as_read(page: Visited) -> bytes | str:
    """What a reader gives to the parser: bytes, which are nearly always UTF-8, and what the parser wants."""
    return page.decoded.utf8 or page.decoded.html


def our_hash(page: Visited) -> None:
    sha256(page.decoded.raw).digest()
    page_rules(page.answer.headers, page.reading.parsed.robots)


def our_links() -> Callable[[Visited], object]:
    reader = link_reader()
    return lambda page: followable(reader, page.url, page.reading)


def floor_links() -> Callable[[Visited], object]:
    links = floors.Links()
    return lambda page: floor_ids(links, page)


def floor_ids(links: floors.Links, page: Visited) -> list[bytes]:
    url, parsed = page.url.url, page.reading.parsed
    base = url if parsed.base is None else join_url(url, parsed.base)
    return links.ids(base, parsed.hrefs, page.reading.charset)


def our_sketch() -> Callable[[Visited], object]:
    sketch = sketcher()
    return lambda page: sketch(page.reading.parsed.main)


def our_robots(walked: Walked) -> Callable[[Visited], object]:
    rules = {origin: read_rules(text) for origin, text in walked.robots.items()}

    def ask(page: Visited) -> None:
        url_refusal(page.url.url, LOOPBACK)
        denial(rules[origin_of(page.url.url)], page.url.url, max_crawl_delay_s=SETTINGS.manners.max_crawl_delay_s)

    return ask


def floor_robots(walked: Walked) -> Callable[[Visited], object]:
    rules = {origin: Protego.parse(text) for origin, text in walked.robots.items()}
    return lambda page: rules[origin_of(page.url.url)].can_fetch(page.url.url, "gossamer")


@asynccontextmanager
async def our_store(pages: Sequence[Visited], folder: Path) -> AsyncIterator[Run]:
    blobs = DirectoryBlobs(folder, CrawlId("bench"))

    async def run(watch: Watch) -> None:
        with watch("store"):
            for some in portions(pages, SEGMENT_PAGES):
                await blobs.put(captures(some))

    yield run
    await blobs.close()


@asynccontextmanager
async def floor_store(pages: Sequence[Visited], folder: Path) -> AsyncIterator[Run]:
    os.mkdir(folder)

    async def run(watch: Watch) -> None:
        with watch("store"):
            for number, some in enumerate(portions(pages, SEGMENT_PAGES)):
                segment = floors.pack((page.url.url, page.answer.headers, page.answer.body) for page in some)
                floors.store(folder / str(number), segment)

    yield run


@asynccontextmanager
async def our_ledger(pages: Sequence[Visited], path: Path) -> AsyncIterator[Run]:
    ledger = SqliteLedger(path, SystemClock())
    lives = await Lives.begun(ledger, pages)
    yield lives.run
    await ledger.close()


@asynccontextmanager
async def floor_ledger(pages: Sequence[Visited], path: Path) -> AsyncIterator[Run]:
    ledger, twins = floors.Ledger(path), floors.Twins()
    ledger.add([Link(page.url.id, page.url.url, page.url.domain) for page in pages if not page.url.depth], 0)
    facts = msgspec.json.encode(("done", 200, "segment", 123_456, 7_890))

    async def run(watch: Watch) -> None:
        for some in portions(pages, GROUP):
            with watch("judge"):
                for page in some:
                    twins.judge(page.url.id, page.reading.sha256, page.sketch.signature, page.sketch.bands)
            with watch("ledger"):
                ledger.live([(page.url, facts, page.followed.links) for page in some])

    yield run
    ledger.close()


@asynccontextmanager
async def our_frontier(pages: Sequence[Visited], path: Path) -> AsyncIterator[Run]:
    ledger, broker = SqliteLedger(path, SystemClock()), MemoryBroker()
    passing = await Passing.begun(ledger, broker, pages)
    yield passing.run
    await passing.close()
    await broker.close()
    await ledger.close()


@asynccontextmanager
async def floor_frontier(pages: Sequence[Visited]) -> AsyncIterator[Run]:
    frontier, found = floors.Frontier(), new_links(pages)

    async def run(watch: Watch) -> None:
        with watch("frontier"):
            for some in portions(found, GROUP):
                if urls := [url for new in some for url in new]:
                    frontier.pass_on(urls)

    yield run


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.steps", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", action="store_true", help="figures for programs")
    parser.add_argument("--pages", type=int, default=400, help="of the web, 400 unless given")
    parser.add_argument("--rounds", type=int, default=5, help="of which the medians are told, 5 unless given")
    parser.add_argument("--external", action="store_true", help="the steps on servers as well")
    given = parser.parse_args()
    if given.pages < SITES or given.rounds < 1:
        parser.error(f"the web has {SITES} sites, each with a page at least; and there is a round at least")
    with ExitStack() as opened:
        folder = Path(opened.enter_context(tempfile.TemporaryDirectory()))
        web = opened.enter_context(synthetic_web(folder, "--sites", str(SITES), "--pages", str(given.pages), "--seed", "1"))
        stack = opened.enter_context(running_stack()) if given.external else None
        pages, ours, external = asyncio.run(run(web.seeds[0], given.pages, given.rounds, folder, stack))
    if given.json:
        print(json.dumps({**figures(ours), **({} if external is None else {"external": figures(external)})}, indent=1))
        return 0
    print(f"{pages} pages of {SITES} sites, Python {platform.python_version()}, medians of rounds: {given.rounds}, CPU time\n")
    print(table(ours))
    if external is not None:
        print(f"\nOn servers, in the place of the steps of the same names:\n\n{table(external)}")
    return 0


async def run(seed: str, most: int, rounds: int, folder: Path, stack: Stack | None) -> tuple[int, Measured, Measured | None]:
    walked = await walk(seed, most)
    pages = walked.pages
    check(pages)
    ours = await measured(steps(walked, folder), len(pages), rounds)
    if stack is None:
        return len(pages), ours, None
    return len(pages), ours, await measured(server_steps(pages, stack, folder), len(pages), rounds, servers(stack))


if __name__ == "__main__":
    sys.exit(main())
