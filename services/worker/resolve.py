"""Names to addresses: looked up once, judged, remembered for a while.

The address that was judged here is the one that is dialled: whoever asked never looks the name up again, so a name server that
answers differently the second time gains nothing. Knows: DNS, and what may be dialled (`addresses`). Must not know: HTTP.
"""

import asyncio
import socket
from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import Final

import aiodns
import msgspec
import pycares

from gossamer.clock import Clock
from gossamer.outcomes import Outcome
from services.worker.addresses import Network, address_in, name_refusal, own_refusal, port_refusal, refusal

DEADLINE_S: Final = 10.0
NAMES_MAX: Final = 10_000
ADDRESSES_MAX: Final = 8

#: What a name's servers may choose. Shorter, and a crawl asks for every page; longer, and a host that moved is lost for a crawl.
TTL_MIN_S: Final = 60.0
TTL_MAX_S: Final = 3600.0


class Resolved(msgspec.Struct, frozen=True):
    """All of them were judged; any may be dialled."""

    addresses: tuple[str, ...]


class Unresolved(msgspec.Struct, frozen=True):
    """Nothing may be dialled for this name."""

    outcome: Outcome
    reason: str
    again: bool = False  #: a second try is worth it


Resolution = Resolved | Unresolved


class Record(msgspec.Struct, frozen=True):
    """One address of a name, and how long its servers vouch for it."""

    address: str
    ttl_s: float


class LookupFailed(Exception):
    """No answer, or the answer that there is no such name."""

    def __init__(self, reason: str, *, again: bool) -> None:
        super().__init__(reason)
        self.reason = reason
        self.again = again  #: it was the servers, not the name


#: The look-up itself: all addresses of a name, of both families. Raises `LookupFailed`. Bounded in time by its caller.
Lookup = Callable[[str], Awaitable[Sequence[Record]]]


class Resolver:
    """Says where a host may be dialled. One query for one name at a time, however many ask for it."""

    def __init__(
        self,
        lookup: Lookup,
        clock: Clock,
        allowed: Sequence[Network] = (),
        own: Collection[tuple[str, int]] = (),
        *,
        deadline_s: float = DEADLINE_S,
        names_max: int = NAMES_MAX,
    ) -> None:
        """`own`: the servers that the crawl stands on, which no page may lead to, whatever networks are allowed."""
        self._lookup, self._clock, self._allowed, self._own = lookup, clock, tuple(allowed), own
        self._deadline_s, self._names_max = deadline_s, names_max
        self._known: dict[str, tuple[float, Resolution]] = {}  # until when
        self._asking: dict[str, asyncio.Task[Resolution]] = {}

    async def resolve(self, host: str, port: int) -> Resolution:
        """The addresses of a host as it stands in a URL. Takes at most the deadline; a cancelled asker leaves the others be."""
        if (known := self.known(host, port)) is not None:
            return known
        name = host.removesuffix(".")
        if name not in self._asking:
            task = asyncio.create_task(self._ask(name), name=f"resolve {name}")
            self._asking[name] = task
            task.add_done_callback(lambda _: self._asking.pop(name))
        return self._but_for_own(host, port, await asyncio.shield(self._asking[name]))

    def known(self, host: str, port: int) -> Resolution | None:
        """What can be said at once, without a query: refused ports and names, addresses, and names that are remembered."""
        if (reason := port_refusal(port)) is not None:
            return Unresolved(Outcome.URL_REFUSED, reason)
        name = host.removesuffix(".")
        remembered = self._known.get(name)
        if remembered is not None and self._clock.monotonic() < remembered[0]:
            return self._but_for_own(host, port, remembered[1])
        if (literal := address_in(host)) is not None:
            return self._but_for_own(host, port, self._remember(name, self._judged([str(literal)]), TTL_MAX_S))
        if (reason := name_refusal(host, self._allowed)) is not None:
            return Unresolved(Outcome.URL_REFUSED, reason)
        return None

    async def close(self) -> None:
        """Drops the queries that are under way."""
        asking = list(self._asking.values())
        for task in asking:
            task.cancel()
        await asyncio.gather(*asking, return_exceptions=True)

    async def _ask(self, name: str) -> Resolution:
        try:
            async with asyncio.timeout(self._deadline_s):
                records = await self._lookup(name)
        except TimeoutError:
            return Unresolved(Outcome.DNS_FAILED, f"no answer for {name} within {self._deadline_s:g} s", again=True)
        except LookupFailed as failed:
            resolution = Unresolved(Outcome.DNS_FAILED, f"{name}: {failed.reason}", failed.again)
            # A server that fails may be well again a moment later; that there is no such name stays true for a while.
            return resolution if failed.again else self._remember(name, resolution, TTL_MIN_S)
        if not records:
            return self._remember(name, Unresolved(Outcome.DNS_FAILED, f"{name} has no address"), TTL_MIN_S)
        ttl_s = min(record.ttl_s for record in records)
        return self._remember(name, self._judged([record.address for record in records]), ttl_s)

    def _judged(self, addresses: Sequence[str]) -> Resolution:
        # One refused address refuses the name: which of them is dialled would else be for its owner to choose.
        for address in addresses:
            if (reason := refusal(address, self._allowed)) is not None:
                return Unresolved(Outcome.ADDRESS_REFUSED, reason)
        return Resolved(tuple(dict.fromkeys(addresses))[:ADDRESSES_MAX])

    def _but_for_own(self, host: str, port: int, resolution: Resolution) -> Resolution:
        if self._own and isinstance(resolution, Resolved):
            reason = own_refusal(host, port, resolution.addresses, self._own)
            return resolution if reason is None else Unresolved(Outcome.URL_REFUSED, reason)
        return resolution

    def _remember(self, name: str, resolution: Resolution, ttl_s: float) -> Resolution:
        self._known.pop(name, None)
        if len(self._known) >= self._names_max:
            del self._known[next(iter(self._known))]  # the one that was looked up first
        self._known[name] = self._clock.monotonic() + min(max(ttl_s, TTL_MIN_S), TTL_MAX_S), resolution
        return resolution


class Dns:
    """The machine's own way to look names up: its hosts file, then its name servers. A `Lookup`."""

    def __init__(self) -> None:
        # The names in URLs are whole: no search list, or `example.com` that is gone would be looked for in our own domain.
        self._resolver = aiodns.DNSResolver(flags=pycares.ARES_FLAG_EDNS | pycares.ARES_FLAG_NOSEARCH)

    async def __call__(self, name: str) -> Sequence[Record]:
        try:
            found = await self._resolver.getaddrinfo(name, family=socket.AF_UNSPEC, type=socket.SOCK_STREAM)
        except aiodns.error.DNSError as error:
            code, text = error.args
            raise LookupFailed(text, again=code not in _NO_SUCH_NAME) from error
        # A ttl of 0 is the hosts file's.
        return [Record(node.addr[0].decode("ascii"), node.ttl) for node in found.nodes]

    async def close(self) -> None:
        await self._resolver.close()


#: Of c-ares: NXDOMAIN, no address, and a name that can't be asked for. All else is a server's failure.
_NO_SUCH_NAME: Final = frozenset({aiodns.error.ARES_ENOTFOUND, aiodns.error.ARES_ENODATA, aiodns.error.ARES_EBADNAME})
