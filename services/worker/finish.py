"""Finish: pages are closed in groups, each with its links in the same step; then the links that are new are hinted at.

What modules keep in memory is made durable before the pages that it came from are closed: once closed they don't come again.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress

import msgspec

from gossamer.crash import step
from gossamer.errors import BrokerUnavailable
from gossamer.messages import Found, Url, encode
from gossamer.outcomes import Flag
from gossamer.ports.broker import URLS, Broker
from gossamer.ports.ledger import Ledger
from gossamer.records import Closing, Seat
from gossamer.together import Together

GROUP = 32


class Finish:
    def __init__(self, ledger: Ledger, seat: Seat, broker: Broker, flush: Callable[[], Awaitable[frozenset[Flag]]]) -> None:
        self._ledger, self._seat, self._broker, self._flush = ledger, seat, broker, flush
        self._finish = Together(self._finish_all, most=GROUP)

    async def __call__(self, closing: Closing) -> None:
        """Returns when the URL is closed."""
        await self._finish(closing)

    async def _finish_all(self, closings: Sequence[Closing]) -> Sequence[None]:
        if flags := await self._flush():
            closings = [_flagged(closing, flags) for closing in closings]
        new = await self.finish(closings)
        if new:
            await self.announce(new)
        return [None] * len(closings)

    @step("worker.finish")
    async def finish(self, closings: Sequence[Closing]) -> list[Url]:
        return await self._ledger.finish(self._seat, closings)

    @step("worker.announce")
    async def announce(self, new: Sequence[Url]) -> None:
        """A lost or refused hint loses nothing: the frontier asks for what waits without one."""
        with suppress(BrokerUnavailable):
            await self._broker.publish(URLS, [encode(Found(tuple(new)))])


def _flagged(closing: Closing, flags: frozenset[Flag]) -> Closing:
    """A page that a module may not have kept says so, if it was shown to one."""
    if closing.facts.blob is None:
        return closing
    facts = msgspec.structs.replace(closing.facts, flags=tuple(dict.fromkeys((*closing.facts.flags, *sorted(flags)))))
    return msgspec.structs.replace(closing, facts=facts)
