"""What a worker holds by the ledger's word and has not in hand: taken up, and freed where a ledger forgot its last second."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path

import pytest

from adapters.embedded.ledger import SqliteLedger
from gossamer.answers import Go
from gossamer.clock import SystemClock
from gossamer.ids import UrlId
from gossamer.messages import Url
from gossamer.records import Deferral, Rules, Seat
from gossamer.states import State
from services.worker.agenda import Agenda
from services.worker.missing import missing

FORGOTTEN, WAITING, UNHINTED = (Url(UrlId(bytes(15) + bytes([n])), f"http://a.example/{n}", "a.example") for n in range(3))


@pytest.fixture
async def ledger(tmp_path: Path) -> AsyncIterator[SqliteLedger]:
    opened = SqliteLedger(tmp_path / "ledger.sqlite", SystemClock())
    await opened.create(Rules(delay_s=0.0))
    yield opened
    await opened.close()


@pytest.fixture
async def seat(ledger: SqliteLedger) -> Seat:
    """One of its URLs is FETCHING, the others are ROUTED: a domain that is busy."""
    urls = [FORGOTTEN, WAITING, UNHINTED]
    seat = await ledger.register("process")
    await ledger.add(urls)
    await ledger.route([(url.id, 50) for url in urls])
    (answer,) = await ledger.begin(seat, [FORGOTTEN.id])
    assert isinstance(answer, Go)
    return seat


async def test_a_page_that_is_fetching_in_nobodys_hand_keeps_no_domain_busy(ledger: SqliteLedger, seat: Seat) -> None:
    agenda = Agenda()
    agenda.add([(WAITING, 50)])
    (waiting,) = agenda.next(0.0, 1)

    found = await missing(ledger, seat, agenda)

    assert {url.id for url in found} == {FORGOTTEN.id, UNHINTED.id}
    records = await ledger.records([FORGOTTEN.id, WAITING.id, UNHINTED.id])
    assert [record.state for record in records if record is not None] == [State.PARKED, State.ROUTED, State.ROUTED]
    (answer,) = await ledger.begin(seat, [waiting.id])
    assert isinstance(answer, Go)


async def test_what_is_in_hand_is_left_as_it_is(ledger: SqliteLedger, seat: Seat) -> None:
    agenda = Agenda()
    agenda.add([(url, 50) for url in (FORGOTTEN, WAITING, UNHINTED)])

    assert await missing(ledger, seat, agenda) == []

    (record,) = await ledger.records([FORGOTTEN.id])
    assert record is not None
    assert record.state is State.FETCHING


async def test_a_hint_that_comes_while_the_ledger_is_told_is_dropped(
    ledger: SqliteLedger, seat: Seat, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else its request could be in flight when the ledger is told that nobody works on it."""
    agenda, defer = Agenda(), ledger.defer

    async def defer_beside_a_hint(seat: Seat, deferrals: Sequence[Deferral]) -> None:
        agenda.add([(FORGOTTEN, 50)])
        assert agenda.next(0.0, 1) == []
        await defer(seat, deferrals)

    monkeypatch.setattr(ledger, "defer", defer_beside_a_hint)

    assert FORGOTTEN in await missing(ledger, seat, agenda)

    agenda.add([(FORGOTTEN, 50)])  # it may be taken up from now on
    assert agenda.next(0.0, 1) == [FORGOTTEN]
