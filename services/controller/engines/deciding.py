"""What the rules say of a URL, asked of the services that follow them: a second reading of the rules could be another one.

Nothing is fetched, and no name is looked up. Pure: settings and what is known of robots.txt in, words out.
Must not know: what became of the URL (its ledger does), or how any of this is shown.
"""

from collections.abc import Iterable
from functools import partial

import msgspec

from gossamer.messages import Url
from gossamer.records import Robots
from gossamer.settings import Links, Politeness, Scope, Settings
from gossamer.urls import domain_of, host_of, identity, origin_of, url_id
from services.frontier.bands import BandTable
from services.frontier.prioritizers import choose
from services.role.registrable import registrable
from services.worker import links
from services.worker.addresses import address_in, allowed_nets, endpoint, url_refusal
from services.worker.links import LinkReader, rules_of
from services.worker.permission import MOVED, Denied, understood
from services.worker.robotstxt import Rules, denial

#: Of a list of hosts that may be long.
HOSTS_NAMED = 3


class Check(msgspec.Struct, frozen=True):
    """What one kind of rule says, and by which rule."""

    passes: bool | None  #: None: that is not known
    why: str


class Ruling(msgspec.Struct, frozen=True, kw_only=True):
    """What each kind of rule says of a URL, in the order in which they are asked."""

    address: Check
    scope: Check
    shape: Check
    robots: Check
    crawl_delay_s: float | None  #: that its robots.txt asks for

    @property
    def of_a_link(self) -> Check | None:
        """The first that keeps a link to it from being followed; None if none does. robots.txt is asked later, by the worker."""
        return next((each for each in (self.address, self.scope, self.shape) if each.passes is False), None)


class Band(msgspec.Struct, frozen=True):
    """A queue of the frontier, and the priorities that belong to it."""

    number: int
    of: int
    first: int
    last: int


def url_of(url: str, settings: Settings) -> Url:
    """A URL in its requested form, as a seed would be."""
    by_domain = settings.manners.politeness is Politeness.DOMAIN
    return Url(url_id(identity(url)), url, domain_of(url, registrable if by_domain else None))


def site_of(url: str) -> str:
    """The registered domain of a URL in its requested form."""
    return registrable(domain_of(url))


def ruling(url: str, settings: Settings, scope: Iterable[str] | None, robots: Robots | None) -> Ruling:
    """`scope`: the hosts that count as the seeds'; None: they are not known. `robots`: of its origin, if that is known."""
    refusal = partial(url_refusal, allowed=allowed_nets(settings))
    reader = LinkReader(rules_of(settings.links), url_refusal=refusal, registrable=registrable)
    reader.widen(scope or ())
    known = None if robots is None or robots.verdict.startswith(MOVED) else understood(robots)
    return Ruling(
        address=_address(url, refusal(url)),
        scope=_scope(url, settings.links.scope, reader, scope),
        shape=_shape(url, settings.links, reader),
        robots=_robots(url, known, settings.manners.max_crawl_delay_s),
        crawl_delay_s=known.crawl_delay_s if isinstance(known, Rules) else None,
    )


def seed_priority(url: Url, settings: Settings) -> int:
    """What it is ranked as a seed. Raises `SettingsError` for a prioritizer that there is not."""
    return choose(settings.frontier.prioritizer).make()([url])[0]


def band(priority: int, settings: Settings) -> Band:
    table = BandTable(settings.frontier.bands)
    number = table.band(priority)
    return Band(number, table.bands, *table.ranges()[number])


def refusal_meaning(reason: str, settings: Settings) -> str:
    """What a reason for which a link was refused means where the URL itself does not tell; empty if it does."""
    match reason:
        case links.TOO_DEEP:
            return f"the page that links to it is {settings.links.max_depth} clicks from a seed, as deep as --max-depth goes"
        case links.NOFOLLOW:
            return "the link, or the page that it is on, asks not to be followed"
        case _:
            return ""


def _address(url: str, refused: str | None) -> Check:
    host, port = endpoint(url)
    if refused is not None:
        return Check(False, refused)
    if address_in(host) is not None:
        return Check(True, f"{host} may be dialled, on port {port}")
    return Check(True, f"port {port} is not refused; the name's addresses are judged when it is asked for")


def _scope(url: str, scope: Scope, reader: LinkReader, hosts: Iterable[str] | None) -> Check:
    if scope is Scope.WEB:
        return Check(True, "links are followed anywhere (--scope web)")
    host = host_of(url).removesuffix(".")
    name, kind = (host, "host") if scope is Scope.HOST else (registrable(host), "domain")
    if hosts is None:
        return Check(None, f"no seed is given (--scope {scope})")
    if reader.is_in_scope(host):
        return Check(True, f"{name} is a seed's {kind} (--scope {scope})")
    names = sorted({each.removesuffix(".") if scope is Scope.HOST else registrable(each.removesuffix(".")) for each in hosts})
    more = f" and {len(names) - HOSTS_NAMED:,} more" if len(names) > HOSTS_NAMED else ""
    return Check(False, f"{name} is not a seed's {kind}, as is {', '.join(names[:HOSTS_NAMED])}{more} (--scope {scope})")


def _shape(url: str, limits: Links, reader: LinkReader) -> Check:
    path, _, query = url[url.index("/", 8) :].partition("?")
    components = _of(path.count("/") - path.endswith("/"), "path component", limits.max_path_components)
    parameters = _of(sum(map(bool, query.split("&"))), "query parameter", limits.max_url_params)
    match reader.shape_refusal(url):
        case "":
            characters = _of(len(url), "character", limits.max_url_length)
            return Check(True, ", ".join((components, parameters, characters)))
        case links.FILE_TYPE:
            return Check(False, f"a file of type .{path.rpartition('.')[2]} is no page")
        case links.PATH_COMPONENTS:
            return Check(False, f"{components} (--max-path-components)")
        case links.QUERY_PARAMETERS:
            return Check(False, f"{parameters} (--max-url-params)")
        case links.NOT_INCLUDED:
            return Check(False, f"--include {_listed(limits.include)} is not found in it")
        case links.EXCLUDED:
            found = next(each for each in rules_of(limits).exclude if each.search(url))
            return Check(False, f"--exclude {found.pattern} is found in it")
        case reason:
            return Check(False, reason)


def _of(count: int, one: str, most: int | None) -> str:
    limit = "" if most is None else f" of at most {most:,}"
    return f"{count:,} {one if count == 1 else one + 's'}{limit}"


def _listed(patterns: Iterable[str]) -> str:
    return " or ".join(patterns)


def _robots(url: str, known: Rules | Denied | None, max_crawl_delay_s: float) -> Check:
    where = f"{origin_of(url)}/robots.txt"
    if known is None:
        return Check(None, f"{where} is asked for before anything else of its site")
    if isinstance(known, Denied):
        return Check(False, known.reason)
    if (reason := denial(known, url, max_crawl_delay_s=max_crawl_delay_s)) is not None:
        return Check(False, f"{reason}, in the group for {known.group}")
    if not known.group:
        return Check(True, f"{where} has no rules for us, or is not there")
    line = known.admits(url).line
    return Check(True, f"{line or 'no line is about it'}, in the group for {known.group}")
