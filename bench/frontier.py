"""What the frontier is worth: the order of its pages, its draws, its fairness, and what it costs. Ends with 1 if a bound is broken.

    python -m bench.frontier [order draws fairness throughput] [--plot docs/frontier.png]

Downloads nothing: the web of a documentation package is left out, in one line, where the package is not installed.
"""

import argparse
import asyncio
import hashlib
import random
import resource
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final
from uuid import uuid4

import numpy as np

from adapters.distributed.broker import RabbitBroker
from adapters.distributed.ledger import RedisLedger, connect
from bench import orders
from bench.webgraphs import SHAPES, Web, from_files, generate
from gossamer.clock import SystemClock
from gossamer.ids import CrawlId, UrlId
from gossamer.messages import Found, Link, encode, in_hints
from gossamer.outcomes import Outcome
from gossamer.ports.blobs import BlobRef
from gossamer.ports.broker import URLS, worker_queue
from gossamer.records import Closing, Facts, Rules, Seat
from gossamer.settings import Law, QueueType, Settings
from gossamer.states import State
from services.frontier import frontier
from services.frontier.bands import BandTable
from services.frontier.draw import Draw
from services.frontier.prioritizers.pagerank import Pagerank
from services.frontier.rank.graph import Graph
from tests.servers import Rabbitmq, Redis
from tests.system.web import FREELY, run, synthetic_web

CRAWLED: Final = 0.1
OF_GREEDY: Final = 0.95

#: A package of documentation, where its pages lie, and the page to begin with.
DOCS: Final = ("openjdk-17-doc", Path("/usr/share/doc/openjdk-17-jre-headless/api"), "index.html")

DRAWS: Final = 100_000
DRAWS_OFF: Final = 0.01

SIZES: Final = "20000,20*50"
FAIR: Final = 0.05

URLS_A_CPU_SECOND: Final = 4_000
NEW_URLS: Final = 100_000
NEW_A_PAGE: Final = 20
PAGES_AT_ONCE: Final = 50
SITES: Final = 1_000
SETTLING_S: Final = 3.0  #: until the rank's owner has told what moved; it counts


# --- Order ---


def order(plot: Path | None) -> bool:
    webs = [generate(shape) for shape in SHAPES]
    package, root, first = DOCS
    if (root / first).is_file():
        webs.append(from_files(root, package, first))
    else:
        print(f"order: {package} is not installed, so the real web is left out")
    print(f"\nOrder: the share of the true PageRank that is collected by {CRAWLED:.0%} of the pages")
    names = f"{'optimum':>8} {'greedy':>8} {'polite greedy':>14} {'pagerank':>9} {'breadth':>8} {'random':>8}"
    print(f"{'web':34} {'pages':>7} {names}   of greedy")
    good = True
    curves = []
    for web in webs:
        count = int(len(web) * CRAWLED)
        found = {
            "optimum": orders.optimum(web, count),
            "exact greedy": orders.greedy(web, count),
            "exact greedy with manners": orders.greedy_with_manners(web, count),
            "pagerank, as it runs": orders.as_it_runs(web, count, Pagerank()),
            "breadth first": orders.breadth(web, count),
            "random": orders.at_random(web, count),
        }
        worth = orders.true_pagerank(web)
        shares = [float(worth[each].sum()) for each in found.values()]
        _, greedy, _, ours, breadth, _ = shares
        is_good = ours >= OF_GREEDY * greedy and ours > breadth
        good &= is_good
        optimum_, greedy_, polite_, ours_, breadth_, random_ = (f"{share:.1%}" for share in shares)
        print(
            f"{web.name:34} {len(web):7,} {optimum_:>8} {greedy_:>8} {polite_:>14} {ours_:>9} {breadth_:>8} {random_:>8}   "
            f"{ours / greedy:.1%}{'' if is_good else '  TOO LITTLE'}",
            flush=True,
        )
        curves.append((web, {name: np.cumsum(worth[each]) for name, each in found.items()}))
    if plot is not None:
        draw_curves(curves, plot)
    return good


def draw_curves(curves: Sequence[tuple[Web, dict[str, np.typing.NDArray[np.float64]]]], file: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, len(curves), figsize=(4.2 * len(curves), 3.6), squeeze=False, layout="constrained")
    for axis, (web, each) in zip(axes[0], curves, strict=True):
        for name, collected in each.items():
            fetched = np.arange(1, len(collected) + 1) / len(web)
            axis.plot(fetched * 100, collected * 100, label=name, linewidth=2 if "runs" in name else 1)
        axis.set(title=web.name, xlabel="pages fetched, %", ylabel="true PageRank collected, %")
        axis.grid(alpha=0.3)
    axes[0][0].legend(fontsize="small")
    figure.savefig(file, dpi=80)
    pyplot.close(figure)


# --- Draws ---


def draws() -> bool:
    bands = 10
    print(f"\nDraws: {DRAWS:,} with all of {bands} bands full, in % of all; and the longest that any band was passed over")
    good = True
    for law, share_below in LAWS_IN_WORDS.items():
        draw = Draw(BandTable(bands), random.Random(1), law)
        drawn = np.array([draw.band([True] * bands) for _ in range(DRAWS)])
        shares = np.bincount(drawn, minlength=bands) / DRAWS
        expected = np.diff([share_below(band / bands) for band in range(bands + 1)])
        passed_over = max(int(np.diff(np.flatnonzero(drawn == band), prepend=-1, append=DRAWS).max()) for band in range(bands))
        is_good = bool(np.abs(shares - expected).max() <= DRAWS_OFF) and passed_over <= 1_000
        good &= is_good
        print(f"{law:8} {' '.join(f'{share:5.1%}' for share in shares)}   {passed_over:5}{'' if is_good else '  BROKEN'}")
    return good


#: The share of draws that each law gives to the best bands, up to this part of them.
LAWS_IN_WORDS: Final[dict[Law, Callable[[float], float]]] = {
    Law.SQUARE: lambda part: part**0.5,
    Law.EVEN: lambda part: part,
    Law.STRICT: lambda part: float(part > 0),
}


# --- Fairness ---


def fairness() -> bool:
    with tempfile.TemporaryDirectory() as name, synthetic_web(Path(name), "--sizes", SIZES) as web:
        folder = Path(name)
        (folder / "seeds.txt").write_text("\n".join(web.seeds))
        # The small ones, and as much of the big one as it may have by then: if they are not whole at the end, that was unfair.
        words = ("--seeds", "seeds.txt", "--workers", "4", "--max-pages", "2000", *FREELY[2:], "--delay", "0.05")
        run(folder, *words)
        score = web.score()
    big, *small = sorted(score["sites"], key=lambda site: -site["truth"])
    last = max(small, key=lambda site: site["last_page_s"])
    whole = all(site["pages"] == site["truth"] for site in small)
    share = (last["others_then"] - sum(site["pages"] for site in small if site is not last)) / big["truth"]
    good = whole and share <= FAIR
    print(f"\nFairness: sites of {SIZES} pages, delay 0.05 s, 4 workers")
    print(f"when the small ones were whole, {share:.2%} of the big one was fetched{'' if good else '  UNFAIR'}")
    return good


# --- Throughput ---


def throughput() -> bool:
    with Rabbitmq() as rabbitmq, Redis() as redis:
        spent_s, server_bytes = asyncio.run(_throughput(rabbitmq.url, redis.url))
    rate = NEW_URLS / spent_s
    good = rate >= URLS_A_CPU_SECOND
    print(f"\nThroughput: {NEW_URLS:,} new URLs, prioritized by pagerank and routed or parked, on RabbitMQ and Redis")
    print(f"{rate:,.0f} a CPU-second of the frontier{'' if good else '  TOO SLOW'}")
    graph = _grown(1_000_000)
    print(f"Memory: {server_bytes / NEW_URLS:,.0f} MB of Redis for a million URLs that wait, and for the links to them;")
    print(f"        {graph.size_bytes / graph.links:.0f} MB of the rank's owner for a million links to {len(graph):,} URLs")
    return good


async def _throughput(rabbitmq: str, redis: str) -> tuple[float, int]:
    """CPU-seconds of a frontier that is given pages with new links, and bytes that Redis takes for them."""
    clock, crawl = SystemClock(), CrawlId(f"bench-{uuid4().hex[:8]}")
    client = connect(redis)
    ledger = RedisLedger(client, crawl)
    broker = RabbitBroker(rabbitmq, crawl, queue_type=QueueType.CLASSIC, expires_s=300)
    await ledger.create(Rules(max_pages=10**9, max_bytes=10**15, delay_s=0.0, queue_size=10**6, lease_s=300, keep_outlinks=True))
    seat = await ledger.register("bench")
    await broker.declare({URLS: 10_000, worker_queue(seat.worker): 100_000})
    before = (await client.info("memory"))["used_memory"]
    await _find_links(ledger, broker, seat)
    after = (await client.info("memory"))["used_memory"]
    began_s = _cpu_s()
    running = asyncio.create_task(frontier.run(broker, ledger, Settings(), clock, random.Random(1), "bench"))
    while (await ledger.counts()).states[State.WAITING]:
        await clock.sleep(0.1)
    await clock.sleep(SETTLING_S)
    spent_s = _cpu_s() - began_s
    running.cancel()
    await asyncio.wait((running,))
    states = (await ledger.counts()).states
    assert states[State.ROUTED] + states[State.PARKED] == NEW_URLS, states
    await broker.remove()
    await broker.close()
    await ledger.close()
    await client.aclose()
    return spent_s, after - before


async def _find_links(ledger: RedisLedger, broker: RabbitBroker, seat: Seat) -> None:
    """Pages that were fetched, each with links to some known pages and to some that are new, which are hinted at."""
    for start in range(0, NEW_URLS // NEW_A_PAGE, PAGES_AT_ONCE):
        pages = range(start, start + PAGES_AT_ONCE)
        hubs = [_link(f"http://hub{page}.example/", f"hub{page}.example") for page in pages]
        await ledger.add([hub.found() for hub in hubs])
        await ledger.route([(hub.id, 0) for hub in hubs])
        await ledger.begin(seat, [hub.id for hub in hubs])
        found = await ledger.finish(seat, [_closing(hub, page) for hub, page in zip(hubs, pages, strict=True)])
        taken = await broker.publish(URLS, [encode(Found(each)) for each in in_hints(found)])
        assert taken


def _closing(hub: Link, page: int) -> Closing:
    rng = random.Random(page)
    numbers = [rng.randrange(NEW_A_PAGE * (page + 1)) for _ in range(NEW_A_PAGE)]
    numbers += range(NEW_A_PAGE * page, NEW_A_PAGE * (page + 1))
    links = [_link(f"http://site{n % SITES}.example/section/article-{n}.html", f"site{n % SITES}.example") for n in set(numbers)]
    blob = BlobRef("segment", page, 1, hashlib.sha256(hub.id).digest())
    return Closing(id=hub.id, outcome=Outcome.DONE, facts=Facts(status=200, blob=blob), links=links)


def _link(url: str, domain: str) -> Link:
    return Link(UrlId(hashlib.blake2b(url.encode(), digest_size=16).digest()), url, domain)


def _grown(links: int) -> Graph:
    """A graph of pages with fifty links each, some of them to much the same pages."""
    graph, rng = Graph(), np.random.default_rng(1)
    for start in range(0, links // 50, 200):
        to = np.minimum(rng.pareto(0.5, (200, 50)) * 1_000, 1_000_000).astype(np.int64)
        pages = np.arange(start, start + 200)
        graph.add([(_number(page), b"".join(map(_number, row))) for page, row in zip(pages.tolist(), to.tolist(), strict=True)])
    return graph


def _number(number: int) -> UrlId:
    return UrlId(hashlib.blake2b(number.to_bytes(8), digest_size=16).digest())


def _cpu_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


def main() -> int:
    parts = ("order", "draws", "fairness", "throughput")
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("parts", nargs="*", choices=[*parts, []], help="all, if none is named")
    parser.add_argument("--plot", type=Path, help="draw the curves of the order into this file")
    given = parser.parse_args()
    run_parts: dict[str, Callable[[], bool]] = {
        "order": lambda: order(given.plot),
        "draws": draws,
        "fairness": fairness,
        "throughput": throughput,
    }
    good = [run_parts[part]() for part in given.parts or parts]
    return 0 if all(good) else 1


if __name__ == "__main__":
    sys.exit(main())
