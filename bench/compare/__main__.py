"""`make bench`: Gossamer and its peers crawl the same web in turns; what each takes, and what it gets wrong.

    python -m bench.compare [--peers .venv-peers/bin/python] [--quick] [--results bench/RESULTS.md] [--plot docs/performance.png]

A round is one crawl of each; then the next round. Then Gossamer crawls webs of growing size, and its start-up is measured, and its
steps beside their floors. All of it is judged by the targets. Everything stays on the loopback addresses of this machine, but for
names of hosts that a peer reads wrongly out of a link, and looks up. Ends with 1 if any run of Gossamer is not perfect.
"""

import argparse
import compileall
import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

import pytest

from bench.compare import crawlers as who
from bench.compare.measure import Run, end, measure
from bench.compare.plot import draw
from bench.compare.results import page
from bench.compare.startup import Startup, start_up
from bench.compare.targets import Seen
from tests.servers import ServerFailed
from tests.system.web import ROOT, Web, synthetic_web

SITES: Final = 20
WHOLE: Final = {"pages": 10_000, "rounds": 3, "sizes": [1_000, 10_000, 50_000]}
QUICK: Final = {"pages": 1_000, "rounds": 3, "sizes": [300, 1_000, 3_000]}
STEPS_S: Final = 900
#: Of the webs of growing size: what a page more costs at the end, against in the middle.
SIZES: Final = 3


def tell(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


@contextmanager
def a_web(pages: int) -> Iterator[Web]:
    words = ("--sites", str(SITES), "--pages", str(pages), "--seed", "1")
    with tempfile.TemporaryDirectory() as name, synthetic_web(Path(name), *words) as web:
        yield web


def crawl(crawler: who.Crawler, peers: who.Peers, web: Web, size: int, number: int) -> Run:
    with tempfile.TemporaryDirectory() as name, crawler.footing() as footing:
        run = measure(
            crawler.name,
            crawler.words(web.seeds, peers),
            web,
            Path(name),
            number=number,
            size=size,
            environ=footing.environ,
            servers=footing.servers,
            said=Path(name) / "said" if crawler.is_ours else Path(os.devnull),  # some peers write much, which costs them
        )
    wrong = {key: count for key, count in run.score.items() if count and key not in ("pages", "requests")}
    tell(
        f"round {number + 1}, {size:,} pages, {crawler.name}: {run.cpu_ms_a_page:.2f} CPU-s per 1,000 correct pages, "
        f"{run.peak_mb:.0f} MB, {run.pages_a_second:.0f} pages/s, {run.score['pages']:,} pages, {wrong or 'nothing wrong'}"
        f"{', HUNG' if run.hung else ''}"
    )
    if not (run.is_perfect if crawler.is_ours else run.score["pages"]):
        tell(f"{'NOT PERFECT' if crawler.is_ours else 'no page at all'}: exit code {run.code}\n{run.said}")
    return run


def compare(chosen: Sequence[who.Crawler], peers: who.Peers, size: int, rounds: int) -> tuple[list[Run], dict[str, str]]:
    """All runs, and who is absent, and why."""
    absent = {crawler.name: reason for crawler in chosen if (reason := crawler.why_absent(peers))}
    for name, reason in absent.items():
        tell(f"absent: {name}, {reason}")
    runs = []
    with a_web(size) as web:
        for number in range(rounds):
            for crawler in chosen:
                if crawler.name in absent:
                    continue
                try:
                    runs.append(crawl(crawler, peers, web, size, number))
                except (pytest.skip.Exception, ServerFailed) as missing:  # no server on this machine, or one that does not start
                    absent[crawler.name] = str(missing).partition("\n")[0]
                    tell(f"absent: {crawler.name}, {absent[crawler.name]}")
    return runs, absent


def grow(sizes: Sequence[int], rounds: int) -> list[Run]:
    runs = []
    for number in range(rounds):
        for size in sizes:
            with a_web(size) as web:
                runs.append(crawl(who.by_name(who.GOSSAMER), who.Peers(), web, size, number))
    return runs


def begin() -> Startup:
    tell("start-up ...")
    with tempfile.TemporaryDirectory() as name:
        return start_up(Path(name))


def steps() -> Mapping[str, Any]:
    """A process of its own: what it measures is not to find our memory and our imports."""
    tell("the steps of a page, and their floors ...")
    process = subprocess.Popen([sys.executable, "-m", "bench.steps", "--json"], cwd=ROOT, stdout=subprocess.PIPE)
    try:
        said, _ = process.communicate(timeout=STEPS_S)
    except BaseException:
        end(process.pid)  # with the web that it serves
        raise
    if process.returncode != 0:
        tell(f"bench.steps ended with {process.returncode}: nothing is judged by the floor")
        return {}
    told: Mapping[str, Any] = json.loads(said)
    return told


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,  # --quick is looked for as it stands
    )
    parser.add_argument("--peers", metavar="PYTHON", nargs="+", default=[], help="of environments that have peers")
    parser.add_argument("--quick", action="store_true", help="small webs, in under five minutes")
    parser.add_argument("--pages", type=int, help="of the web that all crawl")
    parser.add_argument("--rounds", type=int)
    parser.add_argument("--sizes", type=int, nargs="*", help="webs for the growth: three, or none to leave it out")
    names = [crawler.name for crawler in who.CRAWLERS]
    parser.add_argument("--only", metavar="NAME", nargs="+", choices=names, help="of these crawlers: " + "; ".join(names))
    parser.add_argument("--json", type=Path, metavar="FILE", help="writes every run there")
    parser.add_argument("--results", type=Path, metavar="FILE", help="writes the page there")
    parser.add_argument("--plot", type=Path, metavar="FILE", help="draws the picture there")
    parser.set_defaults(**(QUICK if "--quick" in sys.argv else WHOLE))
    given = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # so that whatever was started is ended
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # every crawler starts from its bytecode, as it does for who uses it
    for package in ("gossamer", "adapters", "services", "modules"):
        compileall.compile_dir(ROOT / package, quiet=2)  # or the first run would pay for it

    # Whatever is wrong is said now, and not when all has been measured.
    if min([given.pages, *given.sizes]) < SITES or given.rounds < 1:
        parser.error(f"a web has {SITES} sites, each with a page at least; and there is a round at least")
    if given.sizes and (len(given.sizes) != SIZES or given.sizes != sorted(set(given.sizes))):
        parser.error("--sizes: three, the smallest first, or none")
    for file in (given.json, given.results, given.plot):
        if file is not None and not file.resolve().parent.is_dir():
            parser.error(f"{file}: there is no such folder")
    try:
        peers = who.find_peers([str(Path(python).absolute()) for python in given.peers])  # crawlers run in folders of their own
    except (OSError, ValueError, subprocess.CalledProcessError) as error:
        parser.error(f"--peers: no Python that tells what it has; `make bench` makes the peers' environment: {error}")
    chosen = [crawler for crawler in who.CRAWLERS if not given.only or crawler.name in given.only]

    def keep(seen: Seen) -> Seen:
        """After each part: what took so long is not lost with the rest."""
        if given.json:
            given.json.write_text(json.dumps(asdict(seen), indent=1) + "\n")
        return seen

    runs, absent = compare(chosen, peers, given.pages, given.rounds)
    seen = keep(Seen(sites=SITES, size=given.pages, sizes=given.sizes, runs=runs, absent=absent))
    seen = keep(replace(seen, growing=grow(given.sizes, given.rounds)))
    seen = keep(replace(seen, startup=begin(), steps=steps()))
    text = page(seen, peers)
    print(text)
    if given.results:
        given.results.write_text(text)
    if given.plot:
        draw(seen, given.plot)
    for run in seen.imperfect:
        tell(f"not perfect: {run.crawler}, {run.size:,} pages, round {run.round + 1}: {dict(run.score)}, exit code {run.code}")
    return 1 if seen.imperfect else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
