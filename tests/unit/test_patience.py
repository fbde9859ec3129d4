"""A port that waits out outages: repeated until it is there, told once, and nothing else is swallowed."""

import asyncio
import logging
from contextlib import suppress

import pytest

from adapters.patience import patient
from gossamer.clock import SystemClock
from gossamer.errors import Fenced, LedgerUnavailable
from gossamer.pauses import LONGEST_PAUSE_S, Pauses, read_pause


class Moody:
    """A port that is away, or full, for its next few calls."""

    def __init__(self, away: int, *, full: bool = False) -> None:
        self.away, self.full, self.calls = away, full, 0

    async def verb(self, word: str) -> str:
        self.calls += 1
        if self.calls <= self.away:
            raise LedgerUnavailable("nobody there", full=self.full)
        return word

    async def read(self) -> str:
        """As reading does when a disk is full."""
        return "read"

    async def fenced(self) -> None:
        self.calls += 1
        raise Fenced("your lease is over")


class QuickClock(SystemClock):
    async def sleep(self, seconds: float) -> None:
        assert 0 <= seconds <= LONGEST_PAUSE_S
        await asyncio.sleep(0)


def patiently(moody: Moody, pauses: Pauses | None = None) -> Moody:
    return patient(moody, pauses or Pauses(QuickClock()), "ledger", "no space left on state")


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    """But for how long it took."""
    return [record.getMessage().partition(" after")[0] for record in caplog.records]


async def test_a_call_is_made_until_it_is_answered() -> None:
    moody = Moody(away=12)

    assert await patiently(moody).verb("yes") == "yes"
    assert moody.calls == 13


async def test_an_outage_is_told_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "gossamer.engine"):
        port = patiently(Moody(away=5))
        assert list(await asyncio.gather(*map(port.verb, ("one", "two", "three")))) == ["one", "two", "three"]
        await port.verb("yes")

    assert told(caplog) == ["paused: the ledger can't be used (nobody there; tried again until it works)", "goes on"]


async def test_what_is_full_is_told_as_full(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "gossamer.engine"):
        await patiently(Moody(away=2, full=True)).verb("yes")

    assert told(caplog) == ["paused: no space left on state (nobody there; tried again until it works)", "goes on"]


async def test_two_ports_on_one_full_disk_are_one_pause(caplog: pytest.LogCaptureFixture) -> None:
    pauses = Pauses(QuickClock())
    with caplog.at_level(logging.WARNING, "gossamer.engine"):
        ports = [patiently(Moody(away=away, full=True), pauses) for away in (3, 9)]
        await asyncio.gather(*(port.verb("yes") for port in ports))

    assert told(caplog) == ["paused: no space left on state (nobody there; tried again until it works)", "goes on"]


async def test_that_reading_works_does_not_end_a_pause_of_writing(caplog: pytest.LogCaptureFixture) -> None:
    moody, pauses = Moody(away=1_000_000), Pauses(QuickClock())
    port = patiently(moody, pauses)
    with caplog.at_level(logging.WARNING, "gossamer.engine"):
        writing = asyncio.create_task(port.verb("yes"))
        while moody.calls < 20:
            assert await port.read() == "read"
            await asyncio.sleep(0)
        assert list(pauses.reasons) == ["the ledger can't be used"]
        assert len(told(caplog)) == 1
        moody.away = 0
        assert await writing == "yes"

    assert not pauses.reasons
    assert told(caplog)[1:] == ["goes on"]


async def test_whoever_gives_up_waiting_leaves_no_pause_behind_and_tells_of_no_end(caplog: pytest.LogCaptureFixture) -> None:
    moody, pauses = Moody(away=1_000_000), Pauses(QuickClock())
    with caplog.at_level(logging.WARNING, "gossamer.engine"):
        waiting = asyncio.create_task(patiently(moody, pauses).verb("yes"))
        for _ in range(100):
            await asyncio.sleep(0)
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting

    assert not pauses.reasons
    assert len(told(caplog)) == 1


async def test_a_pause_that_ended_in_a_refusal_is_over_whoever_gives_up_behind_it(caplog: pytest.LogCaptureFixture) -> None:
    """A worker whose lease ran out meanwhile is fenced: the ledger is there again."""
    moody, hung, pauses = Moody(away=3), Moody(away=1_000_000), Pauses(QuickClock())

    async def refused() -> None:
        await moody.verb("yes")
        await moody.fenced()

    with caplog.at_level(logging.WARNING, "gossamer.engine"):
        waiting = asyncio.create_task(patiently(hung, pauses).verb("yes"))
        with pytest.raises(Fenced):
            await pauses.outlast(refused, LedgerUnavailable, LedgerUnavailable("nobody there"), "the ledger can't be used")
        waiting.cancel()
        with suppress(asyncio.CancelledError):
            await waiting

    assert not pauses.reasons
    assert told(caplog)[1:] == ["goes on"]


async def test_what_is_no_outage_passes_through_at_once() -> None:
    moody = Moody(away=0)

    with pytest.raises(Fenced):
        await patiently(moody).fenced()
    assert moody.calls == 1


async def test_only_the_verbs_that_are_named_are_patient() -> None:
    with pytest.raises(LedgerUnavailable):
        await patient(Moody(away=1), Pauses(QuickClock()), "store", "full", ("put",)).verb("yes")


async def test_both_lines_of_a_pause_are_known_by_their_form(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "gossamer.engine"):
        await patiently(Moody(away=2)).verb("yes")

    read = [read_pause(record.getMessage()) for record in caplog.records]
    assert read == [("the ledger can't be used", True), ("the ledger can't be used", False)]
    assert read_pause("worker.fenced worker=0") is None
