"""Errands: a robots.txt that was moved to another host is read by whoever has that host, and left where both can see it.

RFC 9309 wants such a redirect followed, and the rules to bind the host that was asked first. But the other host has a gate of its
own, and perhaps another worker: a request from here would be one more in flight there than is polite. So the target is added to the
ledger as a URL of its own. A mark behind a `#`, which no URL has that is requested, says what it is for. Its worker reads it as a
robots.txt, leaves what it says in the ledger under this very URL, and closes it: no page is fetched for it. Who waits looks there.

The mark counts the redirects, so that hosts that send each other in a circle come to an end, and names the day, since what was read
yesterday is too old.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from gossamer.messages import Url
from gossamer.ports.ledger import Ledger
from gossamer.records import Seat, UrlRecord
from gossamer.urls import domain_of, sites_of, url_id

_MARK: Final = "#robots.txt-"
_DAY_S: Final = 24 * 3600.0
#: What an errand brought, however soon its server wants it forgotten: there will be no second one like it.
KEPT_S: Final = 2 * _DAY_S


def errand(target: str, hop: int, now: float) -> str:
    """The URL by which `target`, so many redirects away, is to be read as a robots.txt."""
    return f"{target}{_MARK}{hop}-{int(now // _DAY_S)}"


def is_errand(url: str) -> bool:
    return "#" in url


def target_of(errand: str) -> tuple[str, int]:
    """What is to be asked for, and how many redirects led there."""
    target, _, mark = errand.partition(_MARK)
    return target, int(mark.partition("-")[0])


def fresh_s(errand: str, now: float) -> float:
    """How long what it brings may still be gone by: to the end of its day, whenever on that day it was read."""
    return max((int(errand.rpartition("-")[2]) + 1) * _DAY_S - now, 0.0)


class Errands:
    """Sends for what lies with other domains."""

    def __init__(
        self,
        ledger: Ledger,
        seat: Seat,
        announce: Callable[[Sequence[Url]], Awaitable[None]],
        registrable: Callable[[str], str],
        *,
        by_domain: bool,
    ) -> None:
        """`announce`: hints at URLs that were added. `by_domain`: the unit of politeness is the registered domain, not the host."""
        self._ledger, self._seat, self._announce = ledger, seat, announce
        self._registrable, self._by_domain = registrable, by_domain

    def domain_of(self, url: str) -> str:
        """Whose gate a request for it has to pass."""
        return domain_of(url, self._registrable if self._by_domain else None)

    async def send(self, errand: str) -> UrlRecord | None:
        """Has it done by whoever has its domain, once, however many ask; how it stands."""
        # As a seed would be: others wait for it, and it costs one request.
        url = Url(url_id(errand), errand, self.domain_of(errand))
        new = await self._ledger.add([url], sites=sites_of([url.domain], self._registrable), seat=self._seat)
        if new:
            await self._announce(new)
        (record,) = await self._ledger.records([url.id])
        return record
