"""`explain`: what became of a URL and why, or what would become of it. Changes nothing, and asks nothing of the web.

Facts are gathered (`asking`), from the ledger of a crawl or from settings alone; they are an `Explanation`, a value, of which the
rest is made: a sentence (`verdict`), lines for people (`words`), an object for programs (`fields`).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from gossamer.messages import Url
from gossamer.records import Counts, CrawlRecord, DomainRecord, SiteRecord, UrlRecord
from gossamer.settings import Settings
from services.controller.crawls import Place
from services.controller.engines.deciding import Band, Ruling


@dataclass(frozen=True, slots=True, kw_only=True)
class Crawl:
    """The crawl that was asked, as far as that matters for one URL."""

    place: Place
    record: CrawlRecord
    counts: Counts
    process: int | None  #: that runs it; None: nobody does here
    alive: bool  #: somebody is at work on it, here or elsewhere


@dataclass(frozen=True, slots=True, kw_only=True)
class Known:
    """What a crawl's ledger says of a URL that it has seen."""

    record: UrlRecord
    parents: Sequence[UrlRecord]  #: the page that it was found on, that one's own, and so on, as far as was read
    twin: UrlRecord | None  #: the page that it is a duplicate of
    band: Band


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """All that is known of a URL."""

    text: str  #: as it was given
    url: Url  #: in the form that is requested
    identity: str
    left_out: Sequence[str]  #: of the URL: what its identity does not have, in words
    settings: Settings
    ruling: Ruling
    is_seed: bool
    crawl: Crawl | None  #: None: no crawl was asked
    known: Known | None  #: None: the crawl never saw it
    domain: DomainRecord | None
    site: SiteRecord | None  #: its registered domain, of which other hosts may be known
    refused: str | None  #: why a link to it was not followed, if the crawl kept it as an example
    refused_means: str
    seed_band: tuple[int, Band] | None  #: a seed's priority, where the ledger does not tell it
    now: float


@dataclass(frozen=True, slots=True)
class Unusable:
    """A text that is no URL to a crawler."""

    text: str
    reason: str
    crawl: Crawl | None
    seen: bool  #: it is among the links that the crawl kept as examples of those it did not follow
