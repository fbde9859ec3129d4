"""Fairness: sites that do their worst cost the others next to nothing."""

import json
import signal
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from tests.system.hostile_sites import ADDRESSES
from tests.system.web import PATIENCE_S, ROOT, Web, start, synthetic_web

SITES = 10
PAGES = 600
#: So long that what a crawl takes is politeness and not work: 60 pages of a site, one after the other.
DELAY_S = 0.15
#: Times as long as alone, at most.
RATIO = 1.3


@contextmanager
def hostile_sites() -> Iterator[tuple[list[str], "subprocess.Popen[str]"]]:
    """Their seeds, and the process that says at its end what each of them was asked."""
    command = [sys.executable, "-m", "tests.system.hostile_sites"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        yield [f"http://{address}:{port}/" for address in ADDRESSES], process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


def honest_s(folder: Path, web: Web, seeds: Sequence[str]) -> float:
    """From the first request to the last honest page, by the honest sites' own log. The crawl is ended there."""
    web.reset()
    folder.mkdir()
    (folder / "seeds.txt").write_text("\n".join(seeds))
    words = ("--workers", "4", "--delay", str(DELAY_S), "--allow-net", "127.0.0.0/8", "--max-bytes", "10GB", "--similarity", "off")
    crawl = start(folder, "--seeds", "seeds.txt", *words, "--attempt-timeout", "3")
    try:
        give_up_at = time.monotonic() + PATIENCE_S
        while web.score()["missed"]:
            assert crawl.poll() is None, crawl.communicate()[0]
            assert time.monotonic() < give_up_at
            time.sleep(0.25)
    finally:
        crawl.send_signal(signal.SIGKILL)
        crawl.communicate(timeout=PATIENCE_S)
    with urllib.request.urlopen(f"{web.control}/-/log", timeout=PATIENCE_S) as answer:
        log: list[tuple[float, float, str, int, str, int]] = json.load(answer)
    seen: dict[tuple[int, str], float] = {}
    for begun_at, _, _, site, target, status, *_ in log:
        if status == 200:
            seen.setdefault((site, target), begun_at)
    return max(seen.values()) - min(entry[0] for entry in log)


def test_ten_hostile_sites_cost_ten_honest_ones_less_than_a_third_of_their_time(tmp_path: Path) -> None:
    honest = synthetic_web(tmp_path, "--sites", str(SITES), "--pages", str(PAGES), "--seed", "7")
    with honest as web, hostile_sites() as (hostile, server):
        alone_s = honest_s(tmp_path / "alone", web, web.seeds)
        together_s = honest_s(tmp_path / "together", web, [*hostile, *web.seeds])
        asked, _ = server.communicate(timeout=PATIENCE_S)

    assert all(int(each) >= 3 for each in asked.split()), f"each was at its worst meanwhile: {asked}"
    sys.stdout.write(f"alone {alone_s:.1f} s, beside ten hostile sites {together_s:.1f} s: {together_s / alone_s:.2f} times\n")
    assert together_s <= RATIO * alone_s
