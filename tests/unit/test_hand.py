"""The worker's hand: when a domain goes on to its next URL."""

import asyncio
from typing import cast

import pytest

from gossamer.clock import ManualClock
from gossamer.ids import Epoch, UrlId, WorkerId
from gossamer.messages import Url
from gossamer.ports.ledger import Ledger
from gossamer.records import UNRANKED, Seat, Visit
from services.worker.agenda import Agenda
from services.worker.finish import Finish
from services.worker.gate import Gate
from services.worker.hand import Hand

URLS = [Url(UrlId(bytes([number]) * 16), f"http://a.example/{number}", "a.example") for number in range(2)]


class SlowGate:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.answers = asyncio.Event()

    async def leave(self, url: Url, visit: Visit) -> None:
        await self.answers.wait()


@pytest.mark.parametrize(("delay_s", "at_once"), [(0.0, True), (1.0, False)])
async def test_a_domain_with_a_delay_waits_for_the_gates_word(delay_s: float, at_once: bool) -> None:
    """Its next URL would else be at the gate too early, by as long as the word is on its way, and be sent away."""
    agenda, gate, clock = Agenda(), SlowGate(), ManualClock()
    nobody = cast(Ledger, None)
    hand = Hand(nobody, Seat(WorkerId(0), Epoch(1)), agenda, cast(Gate, gate), cast(Finish, None), clock)
    agenda.add([(url, UNRANKED) for url in URLS])
    (first,) = agenda.next(clock.monotonic(), 10)
    hand.take_up(first)

    leaving = asyncio.create_task(hand.request_is_over(first, Visit(delay_s=delay_s)))
    await asyncio.sleep(0)
    assert (agenda.next(clock.monotonic() + delay_s, 10) != []) == at_once

    gate.answers.set()
    assert await leaving == Visit()
    assert at_once or agenda.next(clock.monotonic() + delay_s, 10) == URLS[1:]
