"""The worker's hand: what it holds, and the ways in which a URL leaves it.

A URL leaves only with the answer to the verb that let it go; until then nobody else may work on it, and a hint for it is dropped.
"""

import asyncio

from gossamer.answers import Dropped
from gossamer.clock import Clock
from gossamer.ids import UrlId
from gossamer.messages import Url
from gossamer.outcomes import Outcome
from gossamer.ports.ledger import Ledger
from gossamer.records import Closing, Deferral, PassedUp, Seat, Visit
from services.worker.agenda import Agenda
from services.worker.finish import Finish
from services.worker.gate import Gate


class Hand:
    def __init__(self, ledger: Ledger, seat: Seat, agenda: Agenda, gate: Gate, finish: Finish, clock: Clock) -> None:
        self._ledger, self._seat, self._agenda = ledger, seat, agenda
        self._gate, self._finish, self._clock = gate, finish, clock
        self._engaged: dict[str, UrlId] = {}  # domain → the URL whose request it waits for
        self._leaving: dict[UrlId, asyncio.Future[None]] = {}  # requests that are over, until the ledger has said so

    def take_up(self, url: Url) -> None:
        """Its domain is engaged from here until its request is over."""
        self._engaged[url.domain] = url.id

    def put_back(self, url: Url, seconds: float) -> None:
        """The gate said *wait*: it is its domain's next again, later."""
        del self._engaged[url.domain]
        self._agenda.later(url, self._clock.monotonic() + seconds)

    def drop(self, url: Url) -> None:
        """It is no longer this worker's."""
        self._leaving.pop(url.id, None)
        self._disengage(url, 0.0)
        self._agenda.drop(url.id)

    async def let_lie(self, url: Url, why: Dropped) -> None:
        """The gate let nothing through. Without a budget the URL stays open; should it be FETCHING, it must not stay so."""
        if why is Dropped.BUDGET:
            await self._ledger.defer(self._seat, [Deferral(id=url.id)])
        self.drop(url)

    async def request_is_over(self, url: Url, visit: Visit) -> Visit:
        """Lets the domain go on while this URL is read and stored, if another of its URLs waits; what is left to settle.

        If its delay is over by now, the next one may come to the gate before the answer to this, and this one may be judged:
        ledgers keep the order of calls, and do all of that in one go. Else the next one would come too early by as long as this
        call takes.
        """
        if not self._agenda.waits_for(url.domain):
            return visit
        rest_s = _rest_s(visit)
        leaving = self._gate.leave(url, visit)
        if rest_s:
            await leaving
        else:
            leaving.add_done_callback(_look_at)
            self._leaving[url.id] = leaving
        self._disengage(url, rest_s)
        return Visit()

    async def close(self, url: Url, closing: Closing) -> None:
        if (leaving := self._leaving.pop(url.id, None)) is not None:
            await leaving
        await self._finish(closing)
        self._disengage(url, _rest_s(closing.visit))
        self._agenda.drop(url.id)

    async def defer(self, url: Url, until_s: float | None, reason: str, visit: Visit) -> None:
        await self._ledger.defer(self._seat, [Deferral(id=url.id, until_s=until_s, reason=reason, visit=visit)])
        self.drop(url)

    async def pass_up(self, url: Url, outcome: Outcome, reason: str) -> None:
        await self._ledger.pass_up(self._seat, [PassedUp(id=url.id, outcome=outcome, reason=reason)])
        self.drop(url)

    def _disengage(self, url: Url, after_s: float) -> None:
        if self._engaged.get(url.domain) == url.id:  # else it went on to another long ago
            del self._engaged[url.domain]
            self._agenda.disengage(url.domain, self._clock.monotonic() + after_s)


def _look_at(leaving: "asyncio.Future[None]") -> None:
    """What went wrong is told to whoever closes the URL. If it is dropped or the worker ends, nobody needs to hear it."""
    if not leaving.cancelled():
        leaving.exception()


def _rest_s(visit: Visit) -> float:
    """How long until the domain may be asked again, as far as is known here; the gate knows for certain."""
    return max(0.0, (visit.delay_s or 0.0) - visit.since_start_s)
