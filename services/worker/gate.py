"""The gate, as a worker passes it: every request of the crawl comes through here, and none without.

What several URLs ask at the same moment is one call of the ledger; who comes later waits for no other one's answer, since a domain
is idle until it has its own.
"""

import asyncio
from collections.abc import Sequence

from gossamer.answers import GateAnswer
from gossamer.crash import step
from gossamer.ids import UrlId
from gossamer.messages import Url
from gossamer.ports.ledger import Ledger
from gossamer.records import Leaving, Seat, Visit
from gossamer.together import Together

GROUP = 32


class Gate:
    def __init__(self, ledger: Ledger, seat: Seat) -> None:
        self._ledger, self._seat = ledger, seat
        self._begin = Together(self._begin_all, most=GROUP, at_once=True)
        self._leave = Together(self._leave_all, most=GROUP, at_once=True)

    @step("worker.begin")
    async def begin(self, url: Url) -> GateAnswer:
        """May this URL be asked for now?"""
        return await self._begin(url.id)

    async def knock(self, url: Url) -> GateAnswer:
        """May its domain be asked now for something that is not the URL's first request: robots.txt, a retry?"""
        return await self._ledger.knock(self._seat, url.id)

    def leave(self, url: Url, visit: Visit, until_s: float | None = None) -> "asyncio.Future[None]":
        """The request is over; the URL goes on."""
        return self._leave.soon(Leaving(id=url.id, visit=visit, until_s=until_s))

    async def _begin_all(self, ids: Sequence[UrlId]) -> Sequence[GateAnswer]:
        return await self._ledger.begin(self._seat, ids)

    async def _leave_all(self, leavings: Sequence[Leaving]) -> Sequence[None]:
        await self._ledger.leave(self._seat, leavings)
        return [None] * len(leavings)
