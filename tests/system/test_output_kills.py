"""What the modules write, after kills at random moments: each stored page once, whole, and nothing else."""

import csv
import json
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import pyarrow.parquet as parquet
import pytest

from gossamer.ids import UrlId
from gossamer.options import parse_spec
from gossamer.parts import merge, parts_folder
from services.worker.plugins import load, outputs
from tests.a_module import a_crawl, an_id

ROOT = Path(__file__).parents[2]

#: A worker in miniature: visits, flushes, and only then says that its pages are closed. Big pages, so that writing takes time.
WORKER = """
import asyncio, random, sys
from pathlib import Path
from gossamer.clock import SystemClock
from gossamer.options import parse_spec
from gossamer.pauses import Pauses
from services.worker.plugins import load
from services.worker.visit import Visitor
from tests.a_module import a_crawl, a_page

async def work(spec, out_dir, epoch, first):
    draw = random.Random(epoch)
    visitor = Visitor(load([parse_spec(spec)]), timeout_s=30, pauses=Pauses(SystemClock()))
    await visitor.open(a_crawl(out_dir, epoch=epoch))
    while True:
        group = range(first, first + draw.randint(1, 8))
        links = tuple(f"http://host/{n}/{'x' * 80}" for n in range(draw.choice([0, 100, 2000])))
        await asyncio.gather(*(visitor.visit(a_page(n, links=links)) for n in group))
        assert not await visitor.flush()
        print(*group, flush=True)
        first = group[-1] + 1

asyncio.run(work(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])))
"""

#: The end of a crawl in miniature: the first so many pages are stored.
MERGER = """
import asyncio, sys
from pathlib import Path
from gossamer.options import parse_spec
from gossamer.parts import merge
from services.worker.plugins import load, outputs
from tests.a_module import a_crawl

async def stored(ids):
    return [int.from_bytes(id, "big") < int(sys.argv[3]) for id in ids]

(output,) = outputs(load([parse_spec(sys.argv[1])]), a_crawl(Path(sys.argv[2])))
list(output.form.lines(output.path.with_name("none")))  # what it imports is imported before it says that it is ready
print("ready", flush=True)
asyncio.run(merge(output.path, stored, form=output.form))
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


def jsonl_ids(path: Path) -> list[str]:
    assert path.read_bytes().endswith(b"\n")
    return [json.loads(line)["id"] for line in path.read_text().splitlines()]


def csv_ids(path: Path) -> list[str]:
    with path.open(newline="") as file:
        header, *rows = csv.reader(file, strict=True)
    assert [row for row in rows if len(row) != len(header)] == []
    return [row[0] for row in rows]


def parquet_ids(path: Path) -> list[str]:
    table = parquet.read_table(path)
    table.validate(full=True)
    ids: list[str] = table.column("id").to_pylist()
    return ids


@pytest.mark.parametrize(
    ("spec", "ids_in", "kills"),
    [
        pytest.param("jsonl", jsonl_ids, 20, id="jsonl"),
        pytest.param("csv:columns=url title links", csv_ids, 10, id="csv"),
        pytest.param("parquet", parquet_ids, 10, id="parquet"),
    ],
)
async def test_no_page_is_halved_lost_or_doubled_by_kills_and_resumes(
    tmp_path: Path, spec: str, ids_in: Callable[[Path], list[str]], kills: int
) -> None:
    draw = random.Random(7)
    (output,) = outputs(load([parse_spec(spec)]), a_crawl(tmp_path))
    closed = 0  # pages 0 … closed - 1 are stored, as the ledger knows

    async def stored(ids: Sequence[UrlId]) -> list[bool]:
        return [int.from_bytes(id, "big") < closed for id in ids]

    for kill in range(kills):
        for said in killed(WORKER, spec, tmp_path, kill, closed, after_s=draw.uniform(0, 0.06)):
            numbers = [int(number) for number in said.split()]
            assert numbers[0] == closed
            closed = numbers[-1] + 1
        if kill % 5 == 4:  # the crawl ended, and is resumed later
            list(killed(MERGER, spec, tmp_path, closed, after_s=draw.uniform(0, 0.05)))
            assert await merge(output.path, stored, form=output.form) == closed

    assert sorted(ids_in(output.path)) == [an_id(number).hex() for number in range(closed)]
    assert not parts_folder(output.path).exists()
    assert closed > kills, "or the kills came before the work"
