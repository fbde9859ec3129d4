"""What `kill -9` costs a crawl: Scrapy with a job directory, scrapy-redis, and Gossamer on both engines, on the same web.

    python -m bench.killed --peers .venv-peers/bin/python [--kills 5 20] [--seeds 1 2 3] [--json killed.json]

Each crawls once undisturbed. Then it is killed so many times, at moments that are drawn from the seed and counted in requests that
the web has seen; is started again as its documentation says; and is left to end. What it lost is told by the web, which knows what
it was asked for, and by the crawl's own output, each against its own undisturbed crawl: what a crawler never finds is no loss.
"""

import argparse
import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from redis import Redis as Client

from bench.synthweb import normal_escapes, sorted_query, without_tracking
from tests.system.stack import Stack, running_stack
from tests.system.web import ROOT, Web, command, synthetic_web

DRIVER: Final = ROOT / "bench" / "peers" / "everything.py"
WEB: Final = ("--sites", "20", "--pages", "300", "--latency-ms", "20")
DELAY_S: Final = 0.5
OURS: Final = (
    *("--delay", str(DELAY_S), "--allow-net", "127.0.0.0/8", "--max-bytes", "1GB", "--similarity", "off"),
    *("--state", "state", "--module", "jsonl:path=pages.jsonl"),
)
#: What a busy machine puts between two starts is not the crawler's: a request is too soon if this share of the delay is missing.
SLACK: Final = 0.25
#: Longer than any pause that a crawler takes here: a start, a lease, an idle spider's last wait.
IDLE_S: Final = 45.0
LOOK_EVERY_S: Final = 0.01

Url = tuple[str, str]  # host and port, target


# --- The crawlers ---


class Crawler(Protocol):
    """A crawl that runs, dies, and is started again."""

    def start(self) -> None: ...

    def die(self, draw: random.Random) -> None:
        """One of its processes is killed; whatever does not come back by itself is started again."""
        ...

    def has_ended(self) -> bool: ...

    def output(self) -> list[Path]: ...

    def kill(self) -> None:
        """The end of all its processes."""
        ...


class OneProcess:
    """A crawler that is one command; and another one, perhaps, to go on."""

    def __init__(
        self,
        folder: Path,
        begin: Sequence[str],
        go_on: Sequence[str],
        *,
        feed: str,
        environ: Mapping[str, str] = {},
        by: signal.Signals = signal.SIGKILL,
    ) -> None:
        self._folder, self._words, self._go_on, self._feed, self._by = folder, begin, go_on, feed, by
        self._environ = {**os.environ, **environ}

    def start(self) -> None:
        with (self._folder / f"{self._feed}.said").open("ab") as said:
            self.process = subprocess.Popen(self._words, cwd=self._folder, env=self._environ, stdout=said, stderr=said)
        self._words = self._go_on

    def die(self, draw: random.Random) -> None:
        self.process.send_signal(self._by)
        self.process.wait(IDLE_S)
        self.start()

    def has_ended(self) -> bool:
        return self.process.poll() is not None

    def output(self) -> list[Path]:
        return [self._folder / self._feed]

    def kill(self) -> None:
        self.process.kill()
        self.process.wait(IDLE_S)


class WithRoles(OneProcess):
    """A controller that starts its children again by itself."""

    def die(self, draw: random.Random) -> None:
        victim = draw.choice([self.process.pid, *self._children()])
        if victim == self.process.pid:
            super().die(draw)
        else:
            with suppress(ProcessLookupError):  # it ended just now
                os.kill(victim, signal.SIGKILL)

    def kill(self) -> None:
        children = self._children()
        super().kill()
        for child in children:
            with suppress(ProcessLookupError):
                os.kill(child, signal.SIGKILL)

    def _children(self) -> list[int]:
        pid = self.process.pid
        with suppress(FileNotFoundError):
            return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
        return []


class Several:
    """Processes that share their work; of those that are at it one dies."""

    def __init__(self, each: Sequence[OneProcess]) -> None:
        self._each = each

    def start(self) -> None:
        for one in self._each:
            one.start()

    def die(self, draw: random.Random) -> None:
        draw.choice([one for one in self._each if not one.has_ended()]).die(draw)

    def has_ended(self) -> bool:
        return all(one.has_ended() for one in self._each)

    def output(self) -> list[Path]:
        return [path for one in self._each for path in one.output()]

    def kill(self) -> None:
        for one in self._each:
            one.kill()


@dataclass(frozen=True)
class Place:
    """Where they crawl, and what they stand on."""

    peers: str  #: the Python of the peers' environment
    stack: Stack
    seed: str


def scrapy(place: Place, folder: Path, by: signal.Signals = signal.SIGKILL) -> Crawler:
    words = [place.peers, str(DRIVER), "jobdir", "job", place.seed, "pages.jsonl", str(DELAY_S)]
    return OneProcess(folder, words, words, feed="pages.jsonl", by=by)


def scrapy_stopped(place: Place, folder: Path) -> Crawler:
    return scrapy(place, folder, signal.SIGTERM)


def scrapy_redis(place: Place, folder: Path) -> Crawler:
    url = place.stack.redis.url
    with Client.from_url(url) as client:
        client.delete("everything:requests", "everything:dupefilter", "everything:start_urls")
        client.rpush("everything:start_urls", json.dumps({"url": place.seed}))
    feeds = ("pages-0.jsonl", "pages-1.jsonl")
    words = {feed: [place.peers, str(DRIVER), "redis", url, "-", feed, str(DELAY_S)] for feed in feeds}
    return Several([OneProcess(folder, words[feed], words[feed], feed=feed) for feed in feeds])


def embedded(place: Place, folder: Path) -> Crawler:
    return OneProcess(folder, command("--seed", place.seed, *OURS), command("resume", "--state", "state"), feed="pages.jsonl")


def external(place: Place, folder: Path) -> Crawler:
    begin = command("--seed", place.seed, *OURS, "--engine", "external", "--workers", "2", "--lease", "3s", "--poison-deaths", "0")
    go_on = command("resume", "--state", "state")
    return WithRoles(folder, begin, go_on, feed="pages.jsonl", environ=place.stack.environ)


CRAWLERS: Final[dict[str, Callable[[Place, Path], Crawler]]] = {
    "Scrapy, JOBDIR": scrapy,
    "Scrapy, JOBDIR, by SIGTERM": scrapy_stopped,
    "scrapy-redis, 2 processes": scrapy_redis,
    "Gossamer, embedded": embedded,
    "Gossamer, external, 2 workers": external,
}


# --- A crawl and what became of it ---


@dataclass(frozen=True)
class Seen:
    """What the web was asked for, and what the crawler wrote."""

    requests: list[tuple[float, Url, int]]  #: start, what, status; robots.txt too
    lines: list[str]  #: the URLs of its whole lines
    halved: int  #: lines that can't be read
    kills: int
    ended: bool  #: by itself
    took_s: float

    def asked(self) -> set[Url]:
        return {_plain(url) for _, url, _ in self.requests if url[1] != "/robots.txt"}

    def delivered(self) -> set[Url]:
        return {_plain(_split(line)) for line in self.lines}


@dataclass(frozen=True)
class Result:
    """One crawl beside the undisturbed one of the same crawler on the same web."""

    kills: int
    pages_lost: int  #: of the undisturbed crawl's output
    links_lost: int  #: URLs that the undisturbed crawl asked for
    fetched_again: int  #: answers of 200 to a URL that had been answered so before
    doubled: int  #: lines
    halved: int  #: lines
    too_soon: int  #: requests to a host within its delay
    requests: int
    ended: bool  #: by itself
    took_s: float


def result(seen: Seen, undisturbed: Seen) -> Result:
    again = Counter(url for _, url, status in seen.requests if status == 200 and url[1] != "/robots.txt")
    return Result(
        kills=seen.kills,
        pages_lost=len(undisturbed.delivered() - seen.delivered()),
        links_lost=len(undisturbed.asked() - seen.asked()),
        fetched_again=again.total() - len(again),
        doubled=len(seen.lines) - len(set(seen.lines)),
        halved=seen.halved,
        too_soon=_too_soon(seen.requests),
        requests=len(seen.requests),
        ended=seen.ended,
        took_s=round(seen.took_s, 1),
    )


def _too_soon(requests: Sequence[tuple[float, Url, int]]) -> int:
    starts: dict[str, list[float]] = defaultdict(list)
    for start, (host, _), _ in sorted(requests):
        starts[host].append(start)
    return sum(after - before < DELAY_S * (1 - SLACK) for each in starts.values() for before, after in pairwise(each))


def _plain(url: Url) -> Url:
    """Without what makes no difference to the web."""
    return url[0], sorted_query(without_tracking(normal_escapes(url[1])))


def _split(url: str) -> Url:
    parts = urlsplit(url)
    return parts.netloc, parts.path + (f"?{parts.query}" if parts.query else "")


def crawl(web: Web, crawler: Crawler, moments: Sequence[int], draw: random.Random) -> Seen:
    """To its end, with a death at each of these moments, in requests; and none at those that it does not live to see."""
    web.reset()
    began, kills, died_at = time.monotonic(), 0, 0
    try:
        crawler.start()
        for moment in moments:
            if not _reached(web, crawler, max(moment, died_at + 1)):
                break
            died_at = _requests(web)
            crawler.die(draw)
            kills += 1
        _reached(web, crawler, sys.maxsize)
        ended = crawler.has_ended()
    finally:
        crawler.kill()
    lines, halved = _lines(crawler.output())
    return Seen(_log(web), lines, halved, kills, ended, time.monotonic() - began)


def _reached(web: Web, crawler: Crawler, moment: int) -> bool:
    """Waits for it; False if the crawl has ended before, or seems to be going nowhere."""
    requests, news_at = -1, time.monotonic()
    while not crawler.has_ended() and time.monotonic() - news_at < IDLE_S:
        if (seen := _requests(web)) >= moment:
            return True
        if seen != requests:
            requests, news_at = seen, time.monotonic()
        time.sleep(LOOK_EVERY_S)
    return False


def _requests(web: Web) -> int:
    return int(_ask(web, "stats")["requests"])


def _log(web: Web) -> list[tuple[float, Url, int]]:
    hosts = [urlsplit(seed).netloc for seed in web.seeds]
    return [(start, (hosts[site], target), status) for start, _, _, site, target, status, *_ in _ask(web, "log") if site >= 0]


def _ask(web: Web, what: str) -> Any:
    with urllib.request.urlopen(f"{web.control}/-/{what}", timeout=60) as answer:
        return json.load(answer)


def _lines(paths: Sequence[Path]) -> tuple[list[str], int]:
    urls, halved = [], 0
    for line in (line for path in paths if path.exists() for line in path.read_bytes().splitlines()):
        try:
            urls.append(json.loads(line)["url"])
        except ValueError:
            halved += 1
    return urls, halved


# --- All of them ---


def measure(place: Place, web: Web, seed: int, kills: Sequence[int], names: Sequence[str]) -> Iterator[dict[str, Any]]:
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            undisturbed = crawl(web, CRAWLERS[name](place, Path(folder)), [], random.Random(seed))
        yield {"crawler": name, "seed": seed, "asked_to_die": 0, **asdict(result(undisturbed, undisturbed))}
        for count in kills:
            draw = random.Random(f"{seed} {count}")
            moments = sorted(int(draw.uniform(0.03, 0.9) * len(undisturbed.requests)) for _ in range(count))
            with tempfile.TemporaryDirectory() as folder:
                seen = crawl(web, CRAWLERS[name](place, Path(folder)), moments, draw)
            yield {"crawler": name, "seed": seed, "asked_to_die": count, **asdict(result(seen, undisturbed))}


def table(rows: Sequence[dict[str, Any]]) -> str:
    """Medians. Kills: those that the crawl lived to see, of those that were meant for it."""
    columns = ("pages_lost", "links_lost", "fetched_again", "doubled", "halved", "too_soon", "requests", "took_s")
    lines = [
        "| | kills | pages lost | links lost | fetched again | doubled lines | halved | too soon | requests | seconds | ends |",
        "|---|" + "--:|" * 10,
    ]
    for name in dict.fromkeys(row["crawler"] for row in rows):
        for count in sorted({row["asked_to_die"] for row in rows}):
            mine = [row for row in rows if (row["crawler"], row["asked_to_die"]) == (name, count)]
            medians = [f"{statistics.median(row[column] for row in mine):.0f}" for column in columns]
            kills = f"{statistics.median(row['kills'] for row in mine):.0f} of {count}"
            lines.append(f"| {name} | {kills} | {' | '.join(medians)} | {sum(row['ended'] for row in mine)} of {len(mine)} |")
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", metavar="PYTHON", help="of an environment with bench/peers/requirements.txt; else ours alone")
    parser.add_argument("--kills", type=int, nargs="+", default=[5, 20])
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3], help="of the web and of the moments, one crawl each")
    parser.add_argument("--only", metavar="NAME", nargs="+", choices=CRAWLERS, help="of these crawlers: " + "; ".join(CRAWLERS))
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes every crawl there")
    given = parser.parse_args()
    names = given.only or [name for name in CRAWLERS if given.peers or name.startswith("Gossamer")]
    rows: list[dict[str, Any]] = []
    with tempfile.TemporaryDirectory() as name, running_stack() as stack:
        for seed in given.seeds:
            with synthetic_web(Path(name), *WEB, "--seed", str(seed)) as web:
                place = Place(given.peers or "", stack, web.seeds[0])
                for row in measure(place, web, seed, given.kills, names):
                    rows.append(row)
                    print(json.dumps(row), file=sys.stderr, flush=True)
                    if given.json:
                        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    print(table(rows))
    ours = [row for row in rows if row["crawler"].startswith("Gossamer")]
    lossless = ("pages_lost", "links_lost", "doubled", "halved")
    return 0 if all(row["ended"] and not any(row[column] for column in lossless) for row in ours) else 1


if __name__ == "__main__":
    sys.exit(main())
