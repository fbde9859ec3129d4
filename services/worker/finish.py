"""Finish: pages are closed in groups, each with its links in the same step; then the links that are new are hinted at.

What modules keep in memory is made durable before the pages that it came from are closed: once closed they don't come again.
"""

from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress

import msgspec

from gossamer.crash import step
from gossamer.errors import BrokerUnavailable
from gossamer.messages import Found, Url, encode, in_hints
from gossamer.outcomes import Flag
from gossamer.ports.broker import URLS, Broker
from gossamer.ports.ledger import Ledger
from gossamer.records import Closing, Seat
from gossamer.together import Together
from gossamer.urls import sites_of

GROUP = 32
#: Of one group: while an engine enters them nobody else is served, for a tenth of a second as a rule, and for a second or more
#: where each link is to a host of its own. A sitemap may have as many.
LINKS_AT_ONCE = 10_000


class Finish:
    def __init__(
        self,
        ledger: Ledger,
        seat: Seat,
        broker: Broker,
        flush: Callable[[], Awaitable[frozenset[Flag]]],
        registrable: Callable[[str], str],
    ) -> None:
        self._ledger, self._seat, self._broker, self._flush, self._registrable = ledger, seat, broker, flush, registrable
        self._finish = Together(self._finish_all, most=GROUP)

    async def __call__(self, closing: Closing) -> None:
        """Returns when the URL is closed."""
        sites = sites_of(_names(closing), self._registrable)
        await self._finish(msgspec.structs.replace(closing, sites=sites) if sites else closing)

    async def _finish_all(self, closings: Sequence[Closing]) -> Sequence[None]:
        if flags := await self._flush():
            closings = [_flagged(closing, flags) for closing in closings]
        for some in portions(closings):
            new = await self.finish(some)
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
            await self._broker.publish(URLS, [encode(Found(urls)) for urls in in_hints(new)])


def portions(closings: Sequence[Closing]) -> Iterator[Sequence[Closing]]:
    """With no more links than are entered at once, or one page alone."""
    start = links = 0
    for at, closing in enumerate(closings):
        links += len(closing.links)
        if links > LINKS_AT_ONCE and at > start:
            yield closings[start:at]
            start, links = at, len(closing.links)
    yield closings[start:]


def _names(closing: Closing) -> set[str]:
    """The domains and hosts that it names, of which the ledger may not have heard: one for a host, however many links."""
    names = {link.domain for link in closing.links}
    if closing.target is not None:
        names.add(closing.target.domain)
    if closing.scope_host is not None:
        names.add(closing.scope_host)
    return names


def _flagged(closing: Closing, flags: frozenset[Flag]) -> Closing:
    """A page that a module may not have kept says so, if it was shown to one."""
    if closing.facts.blob is None:
        return closing
    facts = msgspec.structs.replace(closing.facts, flags=tuple(dict.fromkeys((*closing.facts.flags, *sorted(flags)))))
    return msgspec.structs.replace(closing, facts=facts)
