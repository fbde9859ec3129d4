"""A crawl that waits for room is no stalled one; and whoever wants it to end does not wait with it."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from adapters.wiring import Ports, open_embedded
from gossamer.clock import ManualClock
from gossamer.errors import LedgerUnavailable
from gossamer.ids import CrawlId
from gossamer.notes import WorkerNote, encode_note, note_name
from gossamer.outcomes import CrawlOutcome
from gossamer.records import CrawlRecord, Rules
from gossamer.settings import Settings, Start
from services.controller.engines import CUT_S, Snapshot, Stop
from services.controller.engines.oversight import STALLED_S, Oversight

STEP_S: Final = 2.0
REASON: Final = "S3 has no room"


class Paused:
    """A crawl with a worker that says that it waits."""

    def __init__(self, ports: Ports, clock: ManualClock) -> None:
        self.ports, self.clock = ports, clock
        self.outcome: CrawlOutcome | None = None  #: it drains, with this one
        self.seen: list[Snapshot] = []

    async def begun(self) -> Oversight:
        oversight = Oversight(Settings(start=Start(seeds=("http://a.example/",))), self.ports, self.clock, ())
        await self.ports.ledger.create(Rules(delay_s=0.0, lease_s=1e6))
        await oversight.begin(Stop())
        return oversight

    async def look_after(self, for_s: float, stop: Stop) -> CrawlRecord:
        ledger, oversight = self.ports.ledger, await self.begun()
        seat = await ledger.register("a process")
        (record,) = await ledger.unfinished(1)
        await ledger.route([(record.url.id, 50)])
        await ledger.begin(seat, [record.url.id])
        if self.outcome is not None:
            await ledger.stop(self.outcome)
        await ledger.note(note_name(seat), encode_note(WorkerNote(paused=(REASON,))))
        began = self.clock.monotonic()

        def watch(snapshot: Snapshot) -> None:
            self.seen.append(snapshot)
            self.clock.advance(STEP_S)
            if self.clock.monotonic() - began >= for_s:
                stop.now.set()

        return await oversight.until_it_ends(watch, stop)


@pytest.fixture
async def paused(tmp_path: Path) -> AsyncIterator[Paused]:
    clock = ManualClock()
    ports = await open_embedded(tmp_path, CrawlId("crawl"), clock)
    yield Paused(ports, clock)
    await ports.close()


async def test_a_pause_however_long_is_no_stall(paused: Paused, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("services.controller.engines.oversight.WATCH_S", 0.0)
    record = await paused.look_after(3 * STALLED_S, Stop())

    assert record.outcome is None
    assert {tuple(snapshot.paused) for snapshot in paused.seen} == {(REASON,)}


async def test_a_crawl_that_is_stopped_while_it_is_paused_lets_go_of_what_is_in_flight(
    paused: Paused, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("services.controller.engines.oversight.WATCH_S", 0.0)
    stop, began = Stop(), paused.clock.monotonic()
    stop.gently.set()
    record = await paused.look_after(3 * STALLED_S, stop)

    assert record.outcome is CrawlOutcome.STOPPED
    assert paused.clock.monotonic() - began < CUT_S + 5 * STEP_S
    assert f"what is in flight can't be finished, and is let go: {REASON}; `resume` goes on from here" in caplog.text


async def test_a_budget_that_is_met_while_it_is_paused_holds_nobody_who_wants_it_to_end(
    paused: Paused, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("services.controller.engines.oversight.WATCH_S", 0.0)
    stop, began = Stop(), paused.clock.monotonic()
    stop.gently.set()
    monkeypatch.setattr(paused, "outcome", CrawlOutcome.PAGE_BUDGET)
    record = await paused.look_after(3 * STALLED_S, stop)

    assert record.outcome is CrawlOutcome.PAGE_BUDGET
    assert paused.clock.monotonic() - began < CUT_S + 5 * STEP_S


async def test_a_ledger_that_is_away_is_shown_and_holds_nobody_who_wants_the_crawl_to_end(
    paused: Paused, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("services.controller.engines.oversight.WATCH_S", 0.0)
    stop, pauses, away = Stop(), paused.ports.pauses, LedgerUnavailable("it is away")

    async def never() -> None:
        raise away

    def watch(snapshot: Snapshot) -> None:
        """The second look does not come back."""
        paused.seen.append(snapshot)
        monkeypatch.setattr(
            paused.ports.ledger, "end", lambda: pauses.outlast(never, LedgerUnavailable, away, "the ledger is away")
        )

    oversight = await paused.begun()
    looking = asyncio.ensure_future(oversight.until_it_ends(watch, stop))
    for second in range(60):
        if second == 20:
            stop.gently.set()
        await asyncio.sleep(0.01)  # what is in the ledger's thread comes back
        paused.clock.advance(1.0)
    record = await asyncio.wait_for(looking, 10)

    assert record.outcome is None
    assert stop.now.is_set()
    assert paused.seen[-1].paused == ("the ledger is away",)
    assert caplog.text.count("is let go: the ledger is away") == 1
