"""What the ledger answers: small unions, to be matched to the end."""

from enum import Enum

import msgspec

from gossamer.ids import UrlId, WorkerId
from gossamer.messages import Url


class Unrouted(Enum):
    """Why `route` gave a URL to nobody."""

    PARKED = "parked"  #: it waits in the ledger for its domain
    CLOSED = "closed"  #: it isn't WAITING (a doubled hint, a domain that was given up): drop the hint
    NO_ROOM = "no room"  #: no live worker has room, or the crawl takes no more: stop drawing for now


RouteAnswer = WorkerId | Unrouted


class Routing(msgspec.Struct, frozen=True):
    """A URL that `promote` gave to a worker."""

    worker: WorkerId
    url: Url
    priority: int


class Why(Enum):
    """What a URL waits for at the gate."""

    BUSY = "another request to the domain is in flight"
    DELAY = "the domain's delay is not over"
    NOT_BEFORE = "the domain asked to be left alone for a while"
    ALONE = "a URL that its worker died with is fetched alone"
    BUDGET = "the rest of the budget is reserved by requests in flight"
    TWIN = "a page like it is being fetched, and may yet fail"


class Go(msgspec.Struct, frozen=True):
    """The gate is open: one request, at once."""

    allowance_bytes: int  #: no more than this may be received
    scope_hosts: int  #: how many hosts the crawl's scope has; it only grows, so a number tells whether one's own is old


class Wait(msgspec.Struct, frozen=True):
    """Ask again in so many seconds; sooner is harmless."""

    seconds: float
    why: Why


class Dropped(Enum):
    """The URL is no longer this worker's to fetch."""

    CLOSED = "closed"  #: it is closed, parked or another's: let it go from the hand
    BUDGET = "budget"  #: the crawl takes no more; the URL stays open for a `resume`


GateAnswer = Go | Wait | Dropped


class Fresh(msgspec.Struct, frozen=True):
    """Nothing like it is known; it is entered under this id until the page fails."""


class Twin(msgspec.Struct, frozen=True):
    """A stored page says the same."""

    id: UrlId
    similarity: float  #: 1.0: exactly the same


Judgement = Fresh | Twin | Wait | Dropped
