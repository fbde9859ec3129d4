"""The worker's hand: when a domain goes on to its next URL."""

import asyncio
from typing import cast

import pytest

from gossamer.clock import ManualClock
from gossamer.errors import Fenced
from gossamer.ids import Epoch, UrlId, WorkerId
from gossamer.messages import Url
from gossamer.outcomes import Outcome
from gossamer.ports.ledger import Ledger
from gossamer.records import UNRANKED, Closing, Seat, Visit
from services.worker.agenda import Agenda
from services.worker.finish import Finish
from services.worker.gate import Gate
from services.worker.hand import Hand

URLS = [Url(UrlId(bytes([number]) * 16), f"http://a.example/{number}", "a.example") for number in range(2)]


class SlowGate:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def leave(self, url: Url, visit: Visit) -> "asyncio.Future[None]":
        return self.answer


class Closed:
    """Notes what is closed."""

    def __init__(self) -> None:
        self.ids: list[UrlId] = []

    async def __call__(self, closing: Closing) -> None:
        self.ids.append(closing.id)


def hand_of(agenda: Agenda, gate: SlowGate, finish: Closed, clock: ManualClock) -> tuple[Hand, Url]:
    """With one URL whose request is under way, and another one of its domain that waits."""
    nobody = cast(Ledger, None)
    hand = Hand(nobody, Seat(WorkerId(0), Epoch(1)), agenda, cast(Gate, gate), cast(Finish, finish), clock)
    agenda.add([(url, UNRANKED) for url in URLS])
    (first,) = agenda.next(clock.monotonic(), 10)
    hand.take_up(first)
    return hand, first


async def test_a_domain_with_a_delay_waits_for_the_gates_word() -> None:
    """Its next URL would else be at the gate too early, by as long as the word is on its way, and be sent away."""
    agenda, gate, clock = Agenda(), SlowGate(), ManualClock()
    hand, first = hand_of(agenda, gate, Closed(), clock)

    leaving = asyncio.create_task(hand.request_is_over(first, Visit(delay_s=1.0)))
    await asyncio.sleep(0)
    assert agenda.next(clock.monotonic() + 1.0, 10) == []

    gate.answer.set_result(None)
    assert await leaving == Visit()
    assert agenda.next(clock.monotonic() + 1.0, 10) == URLS[1:]


async def test_without_a_delay_neither_the_domain_nor_the_page_waits_for_it() -> None:
    agenda, gate, clock, closed = Agenda(), SlowGate(), ManualClock(), Closed()
    hand, first = hand_of(agenda, gate, closed, clock)

    assert await hand.request_is_over(first, Visit(delay_s=0.0)) == Visit()
    assert agenda.next(clock.monotonic(), 10) == URLS[1:]

    closing = asyncio.create_task(hand.close(first, Closing(id=first.id, outcome=Outcome.DONE)))
    await asyncio.sleep(0)
    assert closed.ids == []  # it is closed behind the gate's word

    gate.answer.set_result(None)
    await closing
    assert closed.ids == [first.id]


async def test_what_the_gate_failed_at_is_told_when_the_page_is_closed() -> None:
    agenda, gate, clock, closed = Agenda(), SlowGate(), ManualClock(), Closed()
    hand, first = hand_of(agenda, gate, closed, clock)
    await hand.request_is_over(first, Visit(delay_s=0.0))

    gate.answer.set_exception(Fenced("its lease is over"))
    with pytest.raises(Fenced):
        await hand.close(first, Closing(id=first.id, outcome=Outcome.DONE))

    assert closed.ids == []
