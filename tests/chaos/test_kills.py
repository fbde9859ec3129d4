"""`kill -9` at any moment, and a death at every crash point: what was promised holds, and the crawl ends as it would have."""

import asyncio
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from adapters.embedded.blobs import DirectoryBlobs
from adapters.embedded.ledger import SqliteLedger
from gossamer.clock import SystemClock
from gossamer.crash import EXIT_CODE, VARIABLE
from gossamer.errors import NoCrawl
from gossamer.outcomes import CrawlOutcome, Outcome
from gossamer.testing.invariants import broken_invariants
from tests.chaos import miniature
from tests.chaos.miniature import CRAWL, NUMBERS, body, content

KILLS = 50
PATIENCE_S = 60
MARKED = re.findall(r'@step\("([^"]+)"\)', Path(miniature.__file__).read_text())


def test_a_crawl_killed_fifty_times_loses_nothing(tmp_path: Path) -> None:
    """The moment of each kill is a number of steps and then nothing: whatever the process does just then is cut in two."""
    moments = random.Random(20261118)
    for _ in range(KILLS):
        kill_after(moments.randint(1, 22), tmp_path)
        asyncio.run(check(tmp_path))
    assert asyncio.run(open_urls(tmp_path)) > 0, "the last kills hit a crawl that had ended: they showed nothing"

    run_to_the_end(tmp_path)

    asyncio.run(check(tmp_path, complete=True))


@pytest.mark.parametrize("edge", ["before", "after"])
@pytest.mark.parametrize("name", MARKED)
def test_a_crawl_that_dies_at_a_crash_point_ends_as_it_would_have(tmp_path: Path, name: str, edge: str) -> None:
    for times in (1, 3):
        died = start(tmp_path, crash_at=f"{name}:{edge}:{times}")
        died.communicate(timeout=PATIENCE_S)
        assert died.returncode == EXIT_CODE
        asyncio.run(check(tmp_path))

    run_to_the_end(tmp_path)

    asyncio.run(check(tmp_path, complete=True))


def start(folder: Path, crash_at: str = "") -> "subprocess.Popen[bytes]":
    environment = {**os.environ, VARIABLE: crash_at}
    return subprocess.Popen([sys.executable, "-m", "tests.chaos.miniature", str(folder)], stdout=subprocess.PIPE, env=environment)


def kill_after(steps: int, folder: Path) -> None:
    process = start(folder)
    assert process.stdout is not None
    seen = 0
    while seen < steps and (dots := os.read(process.stdout.fileno(), steps - seen)):
        seen += len(dots)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=PATIENCE_S)


def run_to_the_end(folder: Path) -> None:
    process = start(folder)
    process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0


async def check(folder: Path, *, complete: bool = False) -> None:
    """I1-I7, and every reference leads to a whole record with the right body."""
    ledger = SqliteLedger(folder / "ledger.sqlite", SystemClock())
    blobs = DirectoryBlobs(folder, CRAWL)
    try:
        if not await there(ledger):
            return
        assert await broken_invariants(ledger, NUMBERS) == []
        records = {record.url.id: record for record in await ledger.records(list(NUMBERS)) if record is not None}
        for id, record in records.items():
            if record.facts is not None and record.facts.blob is not None:
                capture = await blobs.get(record.facts.blob)
                assert capture is not None, "a reference to a missing record"
                assert (capture.url, capture.body) == (record.url.url, body(NUMBERS[id]))
        if complete:
            assert (await ledger.crawl()).outcome is CrawlOutcome.COMPLETE
            assert set(records) == set(NUMBERS), "a link was lost"
            outcomes = [records[id].outcome for id in NUMBERS]
            contents = {content(number) for number in NUMBERS.values()}
            assert outcomes.count(Outcome.DONE) == len(contents), "each content is stored once"
            assert outcomes.count(Outcome.DUPLICATE) == len(NUMBERS) - len(contents)
    finally:
        await ledger.close()
        await blobs.close()


async def open_urls(folder: Path) -> int:
    ledger = SqliteLedger(folder / "ledger.sqlite", SystemClock())
    try:
        return (await ledger.counts()).open
    finally:
        await ledger.close()


async def there(ledger: SqliteLedger) -> bool:
    """Whether the crawl was created before the first kill."""
    try:
        await ledger.crawl()
    except NoCrawl:
        return False
    return True
