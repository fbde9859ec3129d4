"""Who crawls, and with which settings: Gossamer on both engines, and the peers that are there.

All of them are told to obey robots.txt, wait for nothing and may go everywhere. Gossamer asks a host one thing at a time, and keeps
its pages, its state and its signatures; the peers ask a host as much at once as they like, and store no page; scrapy-redis
keeps its queue, and what it has seen, in Redis.
"""

import json
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Final

from redis import Redis as Client

from tests.servers import Redis
from tests.system.stack import running_stack
from tests.system.web import ROOT, command

DRIVERS: Final = ROOT / "bench" / "peers"
#: As many downloads at once as the peers are given. One worker, since in one process several only share out the same work.
QUICKLY: Final = ("--workers", "1", "--parallel", "64")
#: Budgets in which everything fits, and all that the web links to, also from pages that are nearly the same as others.
FREELY: Final = (
    *("--delay", "0", "--allow-net", "127.0.0.0/8", "--max-pages", "1000000", "--max-bytes", "100GB"),
    *("--duplicate-links", "follow", "--state", "state"),
)
WGET: Final = ("-r", "-l", "0", "-H", "-q", "--no-config", "-R", "pdf,jpg,css", "--delete-after", "--timeout=10", "--tries=2")

GOSSAMER: Final = "Gossamer"
AS_IT_COMES: Final = "Gossamer, as it comes"
NO_SIMILARITY: Final = "Gossamer, similarity off"
EXTERNAL_2: Final = "Gossamer, external, 2 workers"
EXTERNAL_1: Final = "Gossamer, external, 1 worker"
SCRAPY: Final = "Scrapy, as it comes"
SCRAPY_TUNED: Final = "Scrapy, tuned"
SCRAPY_REDIS: Final = "scrapy-redis, 2 processes"
CRAWLEE: Final = "Crawlee"
SPIDER_RS: Final = "spider_rs"


@dataclass(frozen=True)
class Footing:
    """The servers that a crawl stands on: how it finds them, and their processes."""

    environ: Mapping[str, str] = field(default_factory=dict)
    servers: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class Peers:
    """Environments of the peers: each package's Python and version, of the first environment that has it."""

    python: Mapping[str, str] = field(default_factory=dict)
    version: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Crawler:
    name: str
    words: Callable[[Sequence[str], Peers], list[str]]  #: its command line, for these seeds
    settings: str  #: in words, for the reader
    why_absent: Callable[[Peers], str | None] = lambda peers: None
    #: Started for each crawl: nobody works beside servers that idle, or on what an earlier crawl has left in them.
    footing: Callable[[], AbstractContextManager[Footing]] = lambda: nullcontext(Footing())

    @property
    def is_ours(self) -> bool:
        return self.name.startswith(GOSSAMER)


def find_peers(pythons: Sequence[str]) -> Peers:
    python: dict[str, str] = {}
    version: dict[str, str] = {}
    told = "import importlib.metadata as m, json, platform\n"
    told += "print(json.dumps({d.name.lower(): d.version for d in m.distributions()} | {'python': platform.python_version()}))"
    for each in pythons:
        answer = subprocess.run([each, "-c", told], check=True, capture_output=True, timeout=60).stdout
        found: dict[str, str] = json.loads(answer)
        python = dict.fromkeys(found, each) | python
        version = found | version
    return Peers(python, version)


@contextmanager
def three_servers() -> Iterator[Footing]:
    with running_stack() as stack:
        yield Footing(stack.environ, {"RabbitMQ": stack.rabbitmq.pid, "Redis": stack.redis.pid, "S3": stack.s3.pid})


@contextmanager
def a_redis() -> Iterator[Footing]:
    """Which writes nothing down: that is how scrapy-redis is cheapest."""
    with Redis() as server:
        with Client.from_url(server.url) as client:
            client.config_set("appendonly", "no")
        yield Footing({"REDIS_URL": server.url}, {"Redis": server.pid})


def gossamer(name: str, *words: str, external: bool = False) -> Crawler:
    everything = [*words, *FREELY, *(["--engine", "external"] if external else [])]

    def line(seeds: Sequence[str], _: Peers) -> list[str]:
        return command(*(word for seed in seeds for word in ("--seed", seed)), *everything)

    settings = f"`{' '.join(everything)}`"
    return Crawler(name, line, settings, footing=three_servers) if external else Crawler(name, line, settings)


def driven(name: str, package: str, driver: str, settings: str, *, redis: bool = False) -> Crawler:
    def line(seeds: Sequence[str], peers: Peers) -> list[str]:
        return [peers.python[package], str(DRIVERS / driver), *seeds]

    def why_absent(peers: Peers) -> str | None:
        return None if package in peers.python else f"no {package} in the peers' environment"

    settings = f"{settings}: `bench/peers/{driver}`"
    return Crawler(name, line, settings, why_absent, a_redis) if redis else Crawler(name, line, settings, why_absent)


def installed(program: str, *words: str) -> Crawler:
    """It gets one seed, which leads everywhere: with more, wget crawls all of it once for each."""

    def why_absent(_: Peers) -> str | None:
        return None if shutil.which(program) else f"no {program} on the PATH"

    settings = f"one seed, `{program} {' '.join([*WGET, *words])}`"
    return Crawler(program, lambda seeds, _: [program, *WGET, *words, "-P", "files", seeds[0]], settings, why_absent)


CRAWLERS: Final = (
    gossamer(GOSSAMER, *QUICKLY),
    gossamer(AS_IT_COMES),
    gossamer(NO_SIMILARITY, *QUICKLY, "--similarity", "off"),
    gossamer(EXTERNAL_2, "--workers", "2", "--parallel", "32", external=True),
    gossamer(EXTERNAL_1, *QUICKLY, external=True),
    driven(SCRAPY, "scrapy", "scrapy_plain.py", "defaults, its own link extractor"),
    driven(SCRAPY_TUNED, "scrapy", "scrapy_tuned.py", "64 at once, 16 to a host, links read by hand, uvloop"),
    driven(SCRAPY_REDIS, "scrapy-redis", "scrapy_redis_two.py", "the tuned spider twice, 32 at once each", redis=True),
    driven(CRAWLEE, "crawlee", "crawlee_parsel.py", "ParselCrawler, 16 to 64 at once, storage in memory"),
    driven(SPIDER_RS, "spider_rs", "spider_rs_all.py", "a Website for each site, as many threads"),
    installed("wget2", "--max-threads=16"),
    installed("wget"),
)


def by_name(name: str) -> Crawler:
    return next(crawler for crawler in CRAWLERS if crawler.name == name)
