"""A crawl's JSON lines after kills at random moments: each stored page once, whole, and nothing else."""

import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from gossamer.ids import UrlId
from gossamer.parts import merge, parts_folder
from tests.a_module import an_id

ROOT = Path(__file__).parents[2]
KILLS = 20

#: A worker in miniature: visits, flushes, and only then says that its pages are closed. Big pages, so that writing takes time.
WORKER = """
import asyncio, random, sys
from pathlib import Path
from gossamer.options import parse_spec
from services.worker.plugins import load
from services.worker.visit import Visitor
from tests.a_module import a_crawl, a_page

async def work(out_dir, epoch, first):
    draw = random.Random(epoch)
    visitor = Visitor(load([parse_spec("jsonl")]), timeout_s=30)
    await visitor.open(a_crawl(out_dir, epoch=epoch))
    while True:
        group = range(first, first + draw.randint(1, 8))
        links = tuple(f"http://host/{n}/{'x' * 80}" for n in range(draw.choice([0, 100, 2000])))
        await asyncio.gather(*(visitor.visit(a_page(n, links=links)) for n in group))
        assert not await visitor.flush()
        print(*group, flush=True)
        first = group[-1] + 1

asyncio.run(work(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])))
"""

#: The end of a crawl in miniature: the first so many pages are stored.
MERGER = """
import asyncio, sys
from pathlib import Path
from gossamer.parts import merge

async def stored(ids):
    return [int.from_bytes(id, "big") < int(sys.argv[2]) for id in ids]

print("ready", flush=True)
asyncio.run(merge(Path(sys.argv[1]), stored))
"""


def killed(script: str, *arguments: object, after_s: float) -> Iterator[str]:
    """What a process said that was killed so long after its first word."""
    command = [sys.executable, "-c", script, *map(str, arguments)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=ROOT) as process:
        assert process.stdout is not None
        yield process.stdout.readline()
        time.sleep(after_s)
        process.send_signal(signal.SIGKILL)
        # A line without its end is one that the worker was about to say.
        yield from (line for line in process.stdout if line.endswith("\n"))


@pytest.mark.parametrize("seed", [7])
async def test_no_line_is_halved_lost_or_doubled_by_kills_and_resumes(tmp_path: Path, seed: int) -> None:
    draw = random.Random(seed)
    path = tmp_path / "crawl.jsonl"
    closed = 0  # pages 0 … closed - 1 are stored, as the ledger knows

    async def stored(ids: Sequence[UrlId]) -> list[bool]:
        return [int.from_bytes(id, "big") < closed for id in ids]

    for kill in range(KILLS):
        for said in killed(WORKER, tmp_path, kill, closed, after_s=draw.uniform(0, 0.06)):
            numbers = [int(number) for number in said.split()]
            assert numbers[0] == closed
            closed = numbers[-1] + 1
        if kill % 5 == 4:  # the crawl ended, and is resumed later
            list(killed(MERGER, path, closed, after_s=draw.uniform(0, 0.05)))
            assert await merge(path, stored) == closed

    records = [json.loads(line) for line in path.read_text().splitlines()]
    assert sorted(record["id"] for record in records) == [an_id(number).hex() for number in range(closed)]
    assert path.read_bytes().endswith(b"\n")
    assert not parts_folder(path).exists()
    assert closed > KILLS, "or the kills came before the work"
