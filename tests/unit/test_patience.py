"""A port that waits out outages: repeated until it is there, told once, and nothing else is swallowed."""

import logging

import pytest

from adapters.patience import patient
from gossamer.clock import SystemClock
from gossamer.errors import Fenced, LedgerUnavailable


class Moody:
    """A port that is away for its next few calls."""

    def __init__(self, away: int) -> None:
        self.away, self.calls = away, 0

    async def verb(self, word: str) -> str:
        self.calls += 1
        if self.calls <= self.away:
            raise LedgerUnavailable("nobody there")
        return word

    async def fenced(self) -> None:
        self.calls += 1
        raise Fenced("your lease is over")


class QuickClock(SystemClock):
    async def sleep(self, seconds: float) -> None:
        assert 0 <= seconds <= 5


async def test_a_call_is_made_until_it_is_answered() -> None:
    moody = Moody(away=12)

    assert await patient(moody, QuickClock(), "ledger").verb("yes") == "yes"
    assert moody.calls == 13


async def test_an_outage_is_told_once_and_so_is_its_end(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "gossamer.engine"):
        port = patient(Moody(away=5), QuickClock(), "ledger")
        await port.verb("yes")
        await port.verb("yes")

    assert [record.getMessage().split(" after")[0] for record in caplog.records] == [
        "the ledger is away, and is waited for: nobody there",
        "the ledger is back",
    ]


async def test_what_is_no_outage_passes_through_at_once() -> None:
    moody = Moody(away=0)

    with pytest.raises(Fenced):
        await patient(moody, QuickClock(), "ledger").fenced()
    assert moody.calls == 1


async def test_only_the_verbs_that_are_named_are_patient() -> None:
    moody = Moody(away=1)

    with pytest.raises(LedgerUnavailable):
        await patient(moody, QuickClock(), "store", ("put",)).verb("yes")
