"""What a page costs, counted and not timed: ledger calls, messages, blob writes, parses. A guard against growing by accident.

Both engines run in this process, over ports that count. What the clock drives (ticks, leases, the display's looks) is left out: its
number is the crawl's duration, and not a page's cost.
"""

import asyncio
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import pytest
from msgspec.structs import replace

from adapters.wiring import Ports, Servers, open_embedded, open_external
from gossamer.clock import SystemClock
from gossamer.ids import CrawlId
from gossamer.outcomes import CrawlOutcome
from gossamer.settings import Settings, load
from services.controller.engines import Ended, Stop, beginning
from services.controller.engines.embedded import EmbeddedEngine
from services.worker.parse import parse
from tests.servers import rabbitmq_url, redis_url, s3_credentials, s3_url
from tests.system.web import Web, synthetic_web

PAGES: Final = 200
#: Calls that a URL's own way through the crawl makes.
OF_A_URL: Final = ("route", "robots", "know_robots", "knock", "leave", "begin", "judge", "finish", "defer", "pass_up", "records")
#: Of each, for one URL; what isn't named is rare: once for a domain, or for a URL in ten.
AT_MOST: Final = {"begin": 1.1, "leave": 1.0, "judge": 0.9, "finish": 1.0, "route": 0.3}
BY_THE_CLOCK: Final = (
    "promote", "reap", "keep", "shed", "waiting", "counts", "workers", "crawl", "end", "domains", "notes", "note", "renew", "held",
    "lease", "outlinks", "rank",
)  # fmt: skip
ONCE: Final = ("create", "add", "register", "release", "close")

T = TypeVar("T")


@dataclass
class Counts:
    calls: Counter[str] = field(default_factory=Counter)
    messages: Counter[str] = field(default_factory=Counter)
    blobs: int = 0
    captures: int = 0
    parses: int = 0


class Counted:
    """A port whose calls are noted before they are made."""

    def __init__(self, port: object, note: Callable[..., None]) -> None:
        self._port, self._note = port, note

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._port, name)

        def call(*args: Any, **kwargs: Any) -> Any:
            self._note(name, *args)
            return method(*args, **kwargs)

        return call


def counted(port: T, note: Callable[..., None]) -> T:
    return cast(T, Counted(port, note))


async def embedded(settings: Settings, crawl: CrawlId, folder: Path) -> Ports:
    return await open_embedded(folder, crawl, SystemClock())


async def external(settings: Settings, crawl: CrawlId, folder: Path) -> Ports:
    keys = s3_credentials()
    servers = Servers(rabbitmq_url(), redis_url(), s3_url(), keys.access_key, keys.secret_key)
    return open_external(servers, crawl, settings, SystemClock())


Open = Callable[[Settings, CrawlId, Path], Awaitable[Ports]]


@asynccontextmanager
async def engine(open_ports: Open, web: Web, folder: Path, counts: Counts) -> AsyncIterator[EmbeddedEngine]:
    flags = {"seed": [web.seeds[0]], "workers": "2", "delay": "0", "allow_net": ["127.0.0.0/8"], "max_bytes": "1GB"}
    settings, crawl = load(flags, {}, None).settings, CrawlId(f"cost-{secrets.token_hex(4)}")
    ports = await open_ports(settings, crawl, folder)

    def of_broker(verb: str, *args: Any) -> None:
        if verb == "publish":
            counts.messages[args[0].partition(".")[0]] += len(args[1])

    def of_blobs(verb: str, *args: Any) -> None:
        if verb == "put":
            counts.blobs += 1
            counts.captures += len(args[0])

    ports = replace(
        ports,
        ledger=counted(ports.ledger, lambda verb, *_: counts.calls.update([verb])),
        broker=counted(ports.broker, of_broker),
        blobs=counted(ports.blobs, of_blobs),
    )
    await ports.ledger.create(beginning.rules(settings))
    yield EmbeddedEngine(settings, crawl, ports, SystemClock(), beginning.load_plugins(settings, crawl, resume=False))


async def crawl_counted(open_ports: Open, folder: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Ended, Counts]:
    counts = Counts()

    def parse_counted(*args: Any, **kwargs: Any) -> Any:
        counts.parses += 1
        return parse(*args, **kwargs)

    monkeypatch.setattr("services.worker.read.parse", parse_counted)
    with synthetic_web(folder, "--sites", "5", "--pages", str(PAGES)) as web:
        async with engine(open_ports, web, folder, counts) as crawling, asyncio.timeout(120):
            return await crawling.run(lambda snapshot: None, Stop()), counts


@pytest.mark.parametrize("open_ports", [embedded, external], ids=["embedded", "external"])
async def test_a_page_costs_no_more_than_it_did(open_ports: Open, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ended, counts = await crawl_counted(open_ports, tmp_path, monkeypatch)

    assert (ended.record.outcome, ended.counts.stored) == (CrawlOutcome.COMPLETE, PAGES)
    urls = sum(ended.counts.outcomes.values())
    assert set(counts.calls) <= {*OF_A_URL, *BY_THE_CLOCK, *ONCE}, "a new kind of call: whose is it?"
    assert sum(counts.calls[verb] for verb in ONCE) <= 20
    # Several URLs share a call where they can, so these are what a lone URL would need.
    per_url = {verb: counts.calls[verb] / urls for verb in OF_A_URL}
    assert {verb: cost for verb, cost in per_url.items() if cost > AT_MOST.get(verb, 0.1)} == {}
    assert sum(per_url.values()) <= 3.5
    assert sum(counts.messages.values()) / urls <= 0.7, counts.messages
    assert counts.captures == PAGES
    assert counts.blobs / PAGES <= 0.5
    assert counts.parses == PAGES
