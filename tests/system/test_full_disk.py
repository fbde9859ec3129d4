"""A disk that is full under the embedded engine: the crawl pauses, says so, and goes on when there is room; nothing is torn."""

import asyncio
import os
import signal
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

from adapters.wiring import LEDGER_FILE, open_file
from gossamer.clock import SystemClock
from gossamer.ids import UrlId
from gossamer.testing.invariants import broken_invariants
from tests.system.a_full_disk import Disk, small_disk
from tests.system.stack import until
from tests.system.watched import Pages, Watched, lines, pages_of, watched
from tests.system.web import FREELY, Ran, Web, run, synthetic_web

ROOM_BYTES = 64_000_000
#: Leases that run out while it is paused; and a crawl of some seconds, so that it has a middle.
SLOWLY = (*FREELY, "--lease", "3s", "--delay", "0.2")
PAUSED = "warning: paused: no space left"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    with synthetic_web(tmp_path_factory.mktemp("web"), "--sites", "10", "--pages", "300", "--latency-ms", "20") as web:
        yield web


@pytest.fixture
def web(served: Web) -> Web:
    served.reset()
    return served


@dataclass(frozen=True)
class Undisturbed:
    ran: Ran
    pages: Pages
    output_bytes: int


@pytest.fixture(scope="module")
def undisturbed(served: Web, tmp_path_factory: pytest.TempPathFactory) -> Undisturbed:
    folder = tmp_path_factory.mktemp("undisturbed")
    ran = run(folder, "--seed", served.seeds[0], "--module", "jsonl:path=pages.jsonl", *FREELY)
    assert ran.code == 0, ran.said
    return Undisturbed(ran, pages_of(folder / "pages.jsonl"), (folder / "pages.jsonl").stat().st_size)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    with small_disk(tmp_path / "disk", ROOM_BYTES) as disk:
        yield disk


@dataclass(frozen=True)
class Case:
    """What lies on the disk that is full."""

    folder: Path
    disk: Disk
    output: Path

    @property
    def words(self) -> tuple[str, ...]:
        return ("--module", f"jsonl:path={self.output.relative_to(self.folder)}", *SLOWLY)

    def fill(self, crawl: Watched) -> None:
        """Until it pauses. More than once: what could not be written whole is deleted, which makes room again."""

        def pauses() -> bool:
            assert crawl.process.poll() is None, crawl.said()
            self.disk.fill()
            return PAUSED in crawl.said()

        until(pauses, "it pauses")


@pytest.fixture(params=["state", "output"])
def case(request: pytest.FixtureRequest, tmp_path: Path, disk: Disk) -> Case:
    if request.param == "state":
        (disk.path / "state").mkdir()
        (tmp_path / "state").symlink_to(disk.path / "state")
        return Case(tmp_path, disk, tmp_path / "pages.jsonl")
    return Case(tmp_path, disk, disk.path / "pages.jsonl")


def until_its_middle(crawl: Watched) -> None:
    crawl.until_stored(60, lambda: open_file(crawl.folder / "state", SystemClock()))


def same_result(crawl: Watched, output: Path, undisturbed: Undisturbed, web: Web) -> None:
    """It ends by itself, with each page and each line of an undisturbed crawl, once, and each page's blob."""
    ran = crawl.ended()
    assert (ran.code, ran.report.get("outcome")) == (0, "complete"), ran.said
    assert ran.report["outcomes"] == undisturbed.ran.report["outcomes"]
    assert pages_of(output) == undisturbed.pages
    assert len(lines(output)) == len(undisturbed.pages)
    assert "Traceback" not in ran.said
    score = web.score()
    assert (score["missed"], score["forbidden"], score["wrong"], score["most_in_flight"]) == (0, 0, 0, 1)
    assert asyncio.run(torn(crawl.folder / "state")) == []
    exported = crawl.ask("export", "--warc", "pages.warc.gz")
    assert exported.code == 0, f"a page without its blob: {exported.said}"


async def torn(state: Path) -> list[str]:
    """What is wrong with the ledger's file, or with what it says."""
    with closing(sqlite3.connect(state / LEDGER_FILE)) as file:
        (found,) = file.execute("PRAGMA integrity_check").fetchone()
        ids = [UrlId(id) for (id,) in file.execute("SELECT id FROM url")]
    ledger = open_file(state, SystemClock())
    try:
        return [*([] if found == "ok" else [found]), *await broken_invariants(ledger, ids)]
    finally:
        await ledger.close()


def test_a_crawl_whose_disk_is_full_pauses_says_so_and_goes_on(case: Case, web: Web, undisturbed: Undisturbed) -> None:
    with watched(case.folder, "--seed", web.seeds[0], *case.words) as crawl:
        until_its_middle(crawl)
        case.fill(crawl)
        if case.output.parent == case.folder:  # the ledger is full, so that no lease can be prolonged
            crawl.until_said("worker.fenced")
        spent_s = cpu_s(crawl)
        for _ in range(3):
            status = crawl.ask("status")
            assert (status.code, "is running" in status.said) == (0, True), status.said
        assert cpu_s(crawl) - spent_s < 3, "it works hard at nothing"
        case.disk.make_room()

        same_result(crawl, case.output, undisturbed, web)
    # As a rule one of each. A page that just fits is a moment without a pause; but there is never a line a page.
    assert crawl.said().count(PAUSED) <= 5, crawl.said()
    assert crawl.said().count("was paused: no space left") >= 1


def cpu_s(crawl: Watched) -> float:
    user, system = Path(f"/proc/{crawl.process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize(("case", "how"), [("state", "ctrl-c"), ("state", "stop"), ("output", "ctrl-c")], indirect=["case"])
def test_a_crawl_that_is_paused_can_be_ended_and_resumed(how: str, case: Case, web: Web, undisturbed: Undisturbed) -> None:
    with watched(case.folder, "--seed", web.seeds[0], *case.words) as crawl:
        until_its_middle(crawl)
        case.fill(crawl)
        if how == "stop":
            stopped = crawl.ask("stop")
            assert stopped.code == 0, stopped.said
        else:
            crawl.process.send_signal(signal.SIGINT)
        ran = crawl.ended()
        # A `stop` that the ledger could not take was passed on as a signal, which counts as Ctrl-C.
        assert ran.code in ((130,) if how == "ctrl-c" else (0, 130)), ran.said
        assert "controller.py resume" in ran.said
        assert "Traceback" not in ran.said
        case.disk.make_room()

    with watched(case.folder, "resume") as resumed:
        same_result(resumed, case.output, undisturbed, web)


def test_an_output_that_finds_no_room_when_it_is_merged_is_merged_when_there_is(
    web: Web, undisturbed: Undisturbed, tmp_path: Path
) -> None:
    """Parts and merged file are there together for a moment: this disk has room for one and a half of them."""
    with small_disk(tmp_path / "disk", undisturbed.output_bytes * 3 // 2) as disk:
        output = disk.path / "pages.jsonl"
        words = ("--seed", web.seeds[0], "--module", "jsonl:path=disk/pages.jsonl", *FREELY)
        with watched(tmp_path, *words) as crawl:
            crawl.until_said("warning: paused: no space left for disk/pages.jsonl")
            crawl.process.send_signal(signal.SIGINT)
            ran = crawl.ended()
            assert (ran.code, output.exists()) == (4, False), ran.said
            assert "disk/pages.jsonl can't be written: No space left on device; `resume` merges what modules wrote" in ran.said
            assert "Traceback" not in ran.said

        with watched(tmp_path, "resume") as resumed:
            resumed.until_said("warning: paused: no space left for disk/pages.jsonl")
            disk.resize(ROOM_BYTES)

            same_result(resumed, output, undisturbed, web)


def test_a_crawl_does_not_begin_on_a_full_disk_and_says_why_in_a_line(web: Web, disk: Disk, tmp_path: Path) -> None:
    disk.fill()
    ran = run(tmp_path, "--seed", web.seeds[0], *FREELY, "--state", "disk/state")

    assert (ran.code, ran.said) == (2, "controller.py: disk/state can't be used: No space left on device\n")
