"""What the ledger is told and what it tells: values, and no behaviour beyond simple sums.

Durations are seconds; what travels into a verb is never a moment, since the clock in a verb is the ledger's own.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from types import MappingProxyType
from typing import Final

import msgspec

from gossamer.ids import Epoch, UrlId, WorkerId
from gossamer.messages import Link, Url
from gossamer.outcomes import CrawlOutcome, Flag, Outcome
from gossamer.ports.blobs import BlobRef
from gossamer.states import State

# --- What the ledger is told ------------------------------------------------------------------------------------------

#: Every domain is its own registered domain.
NO_SITES: Final[Mapping[str, str]] = MappingProxyType({})

#: The priority of a URL that nobody has ranked yet: neither ahead of what is known to be good nor behind all the rest.
UNRANKED = 50


class Rules(msgspec.Struct, frozen=True, kw_only=True):
    """What the ledger has to know of a crawl's settings, because it decides by them."""

    max_pages: int = 10_000
    max_bytes: int = 50_000_000
    max_host_pages: int | None = 5_000  #: requests for pages begun at one domain (the unit of politeness)
    max_domain_pages: int | None = 20_000  #: the same, at all domains of one site
    max_hosts: int | None = 100  #: of one site
    max_variants: int | None = 100  #: URLs of one path, past which none is entered that combines parameters
    lifted: tuple[str, ...] = ()  #: domains and sites for which none of these four holds
    request_bytes: int = 516_384  #: reserved for a request in flight: a page's cap, and one read beyond it
    queue_size: int = 10_000  #: URLs that one worker may hold
    delay_s: float = 1.0  #: between two starts of requests to a domain, until the domain's own is known
    lease_s: float = 15.0
    owner_s: float = 300.0  #: how long a domain without work stays with its worker
    ttl_s: float = 3600.0  #: how long a crawl is kept after its last step
    poison_deaths: int = 2  #: deaths alone with a worker after which a URL is closed as poison; 0: never
    domain_failures: int = 10  #: in a row, after which a domain rests
    domain_rest_s: float = 10.0  #: the first rest; each further one is twice as long
    domain_rests: int = 3  #: the next failure in a row after so many rests closes the domain
    similarity: float | None = None  #: pages at least so alike are twins; None: the exact check alone
    keep_outlinks: bool = False  #: keep each stored page's out-links, for the rank
    settings: str = ""  #: the crawl's settings as their owner wrote them, for `resume`; the ledger doesn't look inside


def window(delay_s: float) -> int:
    """How many URLs of one domain may be with its worker: some two seconds of work.

    So a huge site takes no room; and what is fetched next is chosen late, by what is known of it then.
    """
    return 64 if delay_s * 64 <= 2 else max(2, int(2 / delay_s))


class Visit(msgspec.Struct, frozen=True, kw_only=True):
    """What a request did to its domain; carried by the verb that ends the request."""

    received_bytes: int = 0  #: of this request's body
    since_start_s: float = 0.0  #: since the request went out: from there the domain's delay is counted
    delay_s: float | None = None  #: the domain's delay as it now is; None: as it was
    failed: Outcome | None = None  #: a failure of the domain, not of the page: it counts towards a rest
    answered: bool = False  #: the domain is well: what was counted against it is forgotten


class Facts(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is known of a closed URL besides its outcome. Kept as it is."""

    status: int | None = None
    blob: BlobRef | None = None  #: there exactly when the page is stored
    flags: tuple[Flag, ...] = ()
    twin: UrlId | None = None
    similarity: float | None = None
    title: str | None = None
    took_s: float | None = None


class Refused(msgspec.Struct, frozen=True):
    """Links of one page that were not followed, for one reason: how many, and one of them to show. A page may have several."""

    reason: str
    count: int
    example: str


class Closing(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a URL that was fetched, with the links that it brought."""

    id: UrlId
    outcome: Outcome
    reason: str = ""
    facts: Facts = Facts()
    visit: Visit = Visit()
    links: Sequence[Link] = ()  #: one click deeper than this URL
    sites: Mapping[str, str] = {}  #: the registered domain of each domain and host that is named here, where the two differ
    target: Link | None = None  #: where it redirects to: as deep as this URL, one hop on
    scope_host: str | None = None  #: a host that counts as a seed's from now on (a seed redirects there)
    refused: Sequence[Refused] = ()


class Leaving(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a request whose URL goes on; its domain is to be left alone for `until_s` seconds (None: it needn't be)."""

    id: UrlId
    visit: Visit = Visit()
    until_s: float | None = None


class Deferral(msgspec.Struct, frozen=True, kw_only=True):
    """A URL to be asked for again, not before `until_s` seconds from now (None: the domain's own not_before will do)."""

    id: UrlId
    until_s: float | None = None
    reason: str = ""
    visit: Visit = Visit()


class PassedUp(msgspec.Struct, frozen=True, kw_only=True):
    """The end of a URL that no request was made for."""

    id: UrlId
    outcome: Outcome
    reason: str = ""


class Content(msgspec.Struct, frozen=True, kw_only=True):
    """What a page says, as the content index sees it."""

    id: UrlId
    exact: bytes  #: hash of the whole text: equal means the same page
    signature: bytes = b""  #: MinHash values, four bytes each; two pages are as alike as these agree, place by place
    bands: Sequence[bytes] = ()  #: keys; pages that share one are compared


class Seat(msgspec.Struct, frozen=True):
    """A worker's standing: its id, and the epoch that fences whoever had the id before."""

    worker: WorkerId
    epoch: Epoch


# --- What the ledger tells --------------------------------------------------------------------------------------------


class CrawlStatus(StrEnum):
    RUNNING = "running"
    DRAINING = "draining"  #: nothing new is begun; what is FETCHING goes on to its end
    ENDED = "ended"


class UrlRecord(msgspec.Struct, frozen=True, kw_only=True):
    url: Url
    state: State
    worker: WorkerId | None
    priority: int
    suspect: bool
    deaths: int
    deferrals: int
    added_at: float
    changed_at: float
    outcome: Outcome | None
    reason: str
    facts: Facts | None


class DomainRecord(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    site: str  #: its registered domain
    owner: WorkerId | None
    owner_until: float
    out: int  #: ROUTED and FETCHING
    parked: int
    busy: UrlId | None  #: what a request is in flight for
    next_at: float
    delay_s: float
    not_before: float
    due_at: float | None
    failures: int
    rests: int
    stored: int
    begun: int  #: requests for pages
    closed: Outcome | None


class SiteRecord(msgspec.Struct, frozen=True, kw_only=True):
    """A registered domain: what its hosts have in common is that somebody else may make as many of them as they like."""

    name: str
    hosts: int
    begun: int  #: requests for pages, at all of its hosts
    own: bool  #: a seed's: the operator named it


class WorkerRecord(msgspec.Struct, frozen=True, kw_only=True):
    id: WorkerId
    epoch: Epoch
    process: str
    lease_until: float
    load: int  #: ROUTED and FETCHING


class Counts(msgspec.Struct, frozen=True, kw_only=True):
    """The crawl in numbers. The pages that are reserved are those that are FETCHING."""

    states: dict[State, int]
    outcomes: dict[Outcome, int]
    stored: int
    requests: int
    used_bytes: int  #: received
    charged_bytes: int  #: reserved by requests whose end nobody saw
    reserved_bytes: int  #: for requests in flight
    domains: int
    refused: dict[str, int]  #: links that were never added, by reason
    budgets: dict[str, int]  #: URLs that were closed as `budget`, by rule

    @property
    def open(self) -> int:
        return sum(count for state, count in self.states.items() if state is not State.CLOSED)

    @property
    def fetching(self) -> int:
        return self.states[State.FETCHING]


class CrawlRecord(msgspec.Struct, frozen=True, kw_only=True):
    status: CrawlStatus
    outcome: CrawlOutcome | None
    rules: Rules
    scope: frozenset[str]  #: hosts of seeds, and those that seeds redirect to
    created_at: float
    kept_until: float


class Robots(msgspec.Struct, frozen=True):
    """robots.txt of an origin as it was last had: its text, or the verdict that stands in for one."""

    text: str | None
    verdict: str = ""  #: why there is no text: "allow all", "deny all", …
