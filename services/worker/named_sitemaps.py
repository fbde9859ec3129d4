"""Named sitemaps: those that a robots.txt names become URLs of the crawl, before its rules become known to anybody.

In that order, so that no death can leave rules behind whose sitemaps are lost: whoever learns the rules next names them again, and
adding is idempotent. A named sitemap counts as a link of the URL that led to the origin, and is judged as one: scope, address,
shape, depth. It is then fetched as any other URL is, and what it turns out to be decides what is made of it.

No robots.txt opens a new domain: hosts that name each other's sitemaps, each with a robots.txt that names the next, would have no
end, and no page would ever be counted for them.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from gossamer.crash import step
from gossamer.messages import Url
from gossamer.ports.ledger import Ledger
from gossamer.records import Seat
from services.worker.links import Links

#: Of one robots.txt. Who has more has an index of them.
NAMED_MAX: Final = 50


class NamedSitemaps:
    def __init__(self, ledger: Ledger, seat: Seat, links: Links, announce: Callable[[Sequence[Url]], Awaitable[None]]) -> None:
        self._ledger, self._seat, self._links, self._announce = ledger, seat, links, announce

    @step("worker.sitemaps")
    async def enter(self, url: Url, origin: str, named: Sequence[str]) -> None:
        """Those that `origin` names, which was asked because of `url`. May be repeated."""
        found = await self._links.named_sitemaps(url, f"{origin}/robots.txt", named[:NAMED_MAX])
        known = [each for each in found if each.domain == url.domain or await self._ledger.domain(each.domain) is not None]
        if known and (new := await self._ledger.add(known, seat=self._seat)):
            await self._announce(new)
