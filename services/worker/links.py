"""Links: from what a page's markup says to URLs that are worth knowing, and the reasons for the rest (step 14).

Half of a page's links stand on every page of its site. So what was made of a link, and why it may not be followed, is remembered by
site: a known one costs a look-up, and no object is made for it. What depends on the page itself (its depth, its own words on links)
is never part of that. Links that are refused are counted by reason, with one of them to show; the ledger never hears of them.

Knows: URLs and rules for them. Must not know: the network, what is refused there (that is handed in), what is known already (the
ledger does).
"""

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from typing import TYPE_CHECKING, Final

from gossamer.crash import step
from gossamer.errors import UrlError
from gossamer.ids import UrlId
from gossamer.messages import Link, Url
from gossamer.outcomes import Flag
from gossamer.ports.ledger import Ledger
from gossamer.records import Refused
from gossamer.settings import Links as Limits
from gossamer.settings import Nofollow, Scope
from gossamer.urls import Finder, host_of, origin_of, requested
from services.worker.addresses import Network, url_refusal
from services.worker.charsets import CODECS, UTF_8, UTF_16
from services.worker.parse import Parsed
from services.worker.read import Reading

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList

#: Sites whose links are remembered, and how many of each: some 30 MB at most.
SITES_KEPT: Final = 64
LINKS_KEPT: Final = 1024
#: Origins of which it is remembered whether they may be asked.
ORIGINS_KEPT: Final = 4096

#: How often a path may hold one segment, or a run of two to `RUN_MAX` of them in a row: what a page makes that links to itself.
REPEATS_MAX: Final = 3
RUN_MAX: Final = 4

EXAMPLE_LENGTH_MAX: Final = 500

FILE_TYPE: Final = "file type"
PATH_COMPONENTS: Final = "path components"
QUERY_PARAMETERS: Final = "query parameters"
REPEATED_SEGMENTS: Final = "repeated path segments"
NOT_INCLUDED: Final = "not included"
EXCLUDED: Final = "excluded"
OUT_OF_SCOPE: Final = "scope"
REFUSED_PLACE: Final = "address or port"
TOO_DEEP: Final = "depth"
NOFOLLOW: Final = "nofollow"

#: What no page lies behind, by the ending of the path: it is not even asked for. Endings that are also the end of a name
#: (`/about/open.ai`, `/sites/example.com`) are not in here: the type that the server names decides on those.
FILE_ENDINGS: Final = frozenset(
    ending
    for endings in (
        "avif bmp eps gif heic heif ico jpe jpeg jpg png psd svg svgz tif tiff webp",  # images
        "3gp aac aif aiff avi flac flv m3u m3u8 m4a m4v mid midi mkv mov mp3 mp4 mpeg mpg oga ogg ogv opus swf wav webm wma wmv",
        "7z apk bin bz2 cab deb dmg exe gz iso jar lz4 msi rar rpm tar tbz2 tgz torrent txz war xz zip zst",  # archives, programs
        "doc docm docx epub mobi odp ods odt pdf pps ppt pptx ps rtf xls xlsm xlsx",  # documents
        "atom css csv eot js json mjs otf rss ttf wasm woff woff2 xml xsd xsl",  # what pages and programs are made of
    )
    for ending in endings.split()
)


@dataclass(frozen=True, slots=True)
class Followable:
    """What a page links to."""

    links: Sequence[Link]  #: worth knowing, each identity once, in the page's order
    refused: Sequence[Refused]  #: how many were not, and why
    found: tuple[str, ...]  #: all URLs that it links to, followed or not: what a module is shown


@dataclass(frozen=True, slots=True, kw_only=True)
class LinkRules:
    """Which links are followed, whatever page they are on; as in `gossamer.settings`, but ready for use."""

    include: tuple[re.Pattern[str], ...] = ()
    exclude: tuple[re.Pattern[str], ...] = ()
    max_url_params: int | None = None
    max_path_components: int = 10
    max_url_length: int = 2048
    max_depth: int | None = None
    nofollow: Nofollow = Nofollow.FOLLOW
    scope: Scope = Scope.WEB


#: By href: its link, and why it is not followed ("" if it may be). None: it is no link at all.
_Known = dict[str, tuple[Link | None, str]]


class LinkReader:
    """Reads the links of pages, and remembers them. Pure, but for its memory: the same page gives the same links."""

    def __init__(
        self,
        rules: LinkRules,
        *,
        url_refusal: Callable[[str], str | None],
        registrable: Callable[[str], str],
        by_domain: bool = False,
    ) -> None:
        """`url_refusal`: why an origin is not asked. `by_domain`: the unit of politeness is the registered domain, not the host."""
        self._rules, self._url_refusal, self._registrable = rules, url_refusal, registrable
        # It is at home nowhere, and so keeps no links: they are kept here, together with what was decided of them.
        self._finder = Finder("", registrable if by_domain else None, length_max=rules.max_url_length)
        self._sites: dict[str, _Known] = {}  # by origin
        self._origins: dict[str, str] = {}  # why not; "": it may be asked
        self._scope: frozenset[str] = frozenset()

    def widen(self, scope_hosts: Iterable[str]) -> None:
        """From here on the crawl's scope is these hosts."""
        names = {host.removesuffix(".") for host in scope_hosts}
        if self._rules.scope is Scope.DOMAIN:
            names = {self._registrable(name) for name in names}
        if names != self._scope:
            self._scope = frozenset(names)
            self._sites.clear()
            self._origins.clear()

    def followable(
        self, parsed: Parsed, *, url: str, id: UrlId, depth: int = 0, charset: str = UTF_8, nofollow: bool = False
    ) -> Followable:
        """The links of a page at `url`, but for those to itself. `nofollow`: it asks that none of them be followed."""
        base = self._base(url, parsed.base)
        known = self._site(origin_of(base))
        hrefs, marked = self._hrefs(parsed, charset)
        of_page = self._page_refusal(depth, nofollow)
        links: dict[UrlId, Link] = {}
        found: dict[str, None] = {}
        refused: dict[str, list[str]] = {}
        for href in hrefs:
            link, reason = known.get(href) or self._verdict(known, base, href)
            if link is None:
                refused.setdefault(reason, []).append(href)
                continue
            found[link.url] = None
            reason = reason or of_page or (NOFOLLOW if href in marked else "")
            if reason:
                refused.setdefault(reason, []).append(link.url)
            elif link.id not in links:
                links[link.id] = link
        links.pop(id, None)
        tally = [Refused(reason, len(each), each[0][:EXAMPLE_LENGTH_MAX]) for reason, each in refused.items()]
        return Followable(list(links.values()), tally, tuple(found))

    def redirect_target(self, url: str, location: str, *, in_scope: bool = True) -> Link | str:
        """Where a redirect leads, or why it isn't followed. `in_scope`: only within the crawl's scope."""
        link, reason = self._judged(url, location)
        if link is not None and reason == OUT_OF_SCOPE and not in_scope:
            reason = self._shape_refusal(link.url)
        return reason if link is None or reason else link

    def _base(self, url: str, base: str | None) -> str:
        if base is None:
            return url
        try:
            return requested(base, url)
        except UrlError:
            return url

    def _site(self, origin: str) -> _Known:
        """What is remembered of it; the longest unused site is forgotten for a new one."""
        known = self._sites.pop(origin, None)
        if known is None:
            known = {}
            if len(self._sites) >= SITES_KEPT:
                del self._sites[next(iter(self._sites))]
        self._sites[origin] = known
        return known

    def _hrefs(self, parsed: Parsed, charset: str) -> tuple[Sequence[str], frozenset[str]]:
        """All of them, and those that are not followed because they are marked so."""
        hrefs = parsed.hrefs if parsed.refresh is None else (*parsed.hrefs, parsed.refresh)
        marked = parsed.nofollow if self._rules.nofollow is Nofollow.SKIP else _NONE
        if charset == UTF_8 or charset in UTF_16:
            return hrefs, marked
        codec = CODECS.get(charset, UTF_8)
        return [in_charset(href, codec) for href in hrefs], frozenset(in_charset(href, codec) for href in marked)

    def _page_refusal(self, depth: int, nofollow: bool) -> str:
        if nofollow:
            return NOFOLLOW
        max_depth = self._rules.max_depth
        return "" if max_depth is None or depth < max_depth else TOO_DEEP

    def _verdict(self, known: _Known, base: str, href: str) -> tuple[Link | None, str]:
        """What a link means that was not found as it stands there; remembered if that does not depend on this one page."""
        if _SAME_ON_EVERY_PAGE(href):
            key = href
        elif _SAME_IN_A_FOLDER(href):
            key = base.partition("?")[0].rpartition("/")[0] + "/" + href
            if key in known:
                return known[key]
        else:
            return self._judged(base, href)
        verdict = self._judged(base, href)
        if len(key) <= self._rules.max_url_length:
            if len(known) >= LINKS_KEPT:
                known.clear()  # what is still on every page is soon back
            known[key] = verdict
        return verdict

    def _judged(self, base: str, href: str) -> tuple[Link | None, str]:
        try:
            link = self._finder.resolve(base, href)
        except UrlError as refused:
            return None, str(refused)
        return link, self._origin_refusal(origin_of(link.url)) or self._shape_refusal(link.url)

    def _origin_refusal(self, origin: str) -> str:
        """Where a URL leads to; scope comes last, since a seed's redirect may leave it."""
        reason = self._origins.get(origin)
        if reason is None:
            url = origin + "/"
            refused = self._url_refusal(url) is not None
            reason = REFUSED_PLACE if refused else "" if self._is_in_scope(host_of(url).removesuffix(".")) else OUT_OF_SCOPE
            if len(self._origins) >= ORIGINS_KEPT:
                self._origins.clear()
            self._origins[origin] = reason
        return reason

    def _is_in_scope(self, host: str) -> bool:
        match self._rules.scope:
            case Scope.WEB:
                return True
            case Scope.HOST:
                return host in self._scope
            case Scope.DOMAIN:
                return self._registrable(host) in self._scope

    def _shape_refusal(self, url: str) -> str:
        """What a URL looks like, whoever links to it."""
        rules = self._rules
        path = url[url.index("/", 8) :]
        query = ""
        if "?" in path:
            path, _, query = path.partition("?")
        ending = path.rfind(".") + 1
        if ending and path[ending:].lower() in FILE_ENDINGS:
            return FILE_TYPE
        components = path.count("/") - path.endswith("/")
        if components > rules.max_path_components:
            return PATH_COMPONENTS
        if components > REPEATS_MAX and repeats([each for each in path.split("/") if each]):
            return REPEATED_SEGMENTS
        if query and rules.max_url_params is not None and sum(map(bool, query.split("&"))) > rules.max_url_params:
            return QUERY_PARAMETERS
        if rules.include and not any(each.search(url) for each in rules.include):
            return NOT_INCLUDED
        if rules.exclude and any(each.search(url) for each in rules.exclude):
            return EXCLUDED
        return ""


_NONE: Final[frozenset[str]] = frozenset()

#: Does not depend on the page's own path.
_SAME_ON_EVERY_PAGE: Final = re.compile(r"/|https?://|mailto:|tel:|javascript:", re.I).match
#: Is relative to the folder that the page is in: with that in front of it, it is a URL and means the same.
_SAME_IN_A_FOLDER: Final = re.compile(r"[^\0- :/?#\\][^:/?#\\]*+(?:[/?#]|\Z)").match


def repeats(segments: list[str]) -> bool:
    """Whether a segment stands there more than three times, or a run of two to four of them that often in a row."""
    if len(segments) <= REPEATS_MAX or len(set(segments)) == len(segments):
        return False
    if max(map(segments.count, segments)) > REPEATS_MAX:
        return True
    return any(
        segments[at : at + length * REPEATS_MAX] == segments[at : at + length] * REPEATS_MAX
        for length in range(2, RUN_MAX + 1)
        for at in range(len(segments) - length * REPEATS_MAX + 1)
    )


def in_charset(href: str, codec: str) -> str:
    """With its query in the page's own charset, as browsers send it (URL Standard, "encoding"); all the rest is UTF-8 anyway."""
    if href.isascii():
        return href
    before, hash, fragment = href.partition("#")
    path, mark, query = before.partition("?")
    return f"{path}{mark}{_NOT_ASCII(partial(_escaped, codec), query)}{hash}{fragment}"


_NOT_ASCII: Final = re.compile(r"[^\0-\x7f]+").sub


def _escaped(codec: str, found: re.Match[str]) -> str:
    """A character that the charset doesn't have is sent as a reference to it, whose signs are escaped."""
    encoded = found[0].encode(codec, "xmlcharrefreplace")
    # The second byte of a pair may be a letter or a backslash, which stay as they are.
    return "".join(f"%{byte:02X}" if byte in _ESCAPED_BYTES else chr(byte) for byte in encoded)


_ESCAPED_BYTES: Final = frozenset(range(0x21)) | frozenset(b"\"#&';<>") | frozenset(range(0x7F, 0x100))


@lru_cache(maxsize=4096)
def registrable(host: str) -> str:
    """The registered domain of a host, by the Public Suffix List; an address, and a name that has none, is its own."""
    if host[:1] == "[" or host.rpartition(".")[2].isdigit():
        return host
    return _suffixes().privatesuffix(host) or host


@cache
def _suffixes() -> "PublicSuffixList":
    from publicsuffixlist import PublicSuffixList  # a tenth of a second, which most crawls don't need

    return PublicSuffixList()


class Links:
    """The reader as a crawl has it: its settings, and its scope as the ledger knows it."""

    def __init__(
        self,
        ledger: Ledger,
        limits: Limits,
        allowed_nets: Sequence[Network],
        registrable: Callable[[str], str],
        *,
        by_domain: bool,
    ) -> None:
        self._ledger, self._scope, self._scope_hosts = ledger, limits.scope, 0
        rules = LinkRules(
            include=tuple(map(re.compile, limits.include)),
            exclude=tuple(map(re.compile, limits.exclude)),
            max_url_params=limits.max_url_params,
            max_path_components=limits.max_path_components,
            max_url_length=limits.max_url_length,
            max_depth=limits.max_depth,
            nofollow=limits.nofollow,
            scope=limits.scope,
        )
        refusal = partial(url_refusal, allowed=allowed_nets)
        self._reader = LinkReader(rules, url_refusal=refusal, registrable=registrable, by_domain=by_domain)

    async def widen(self, scope_hosts: int) -> None:
        """The gate says how many hosts are in scope: only when that has changed a look into the ledger is worth it."""
        if self._scope is not Scope.WEB and scope_hosts != self._scope_hosts:
            hosts = (await self._ledger.crawl()).scope
            self._reader.widen(hosts)
            self._scope_hosts = len(hosts)

    @step("worker.links")
    def followable(self, url: Url, page: Reading) -> Followable:
        return self._reader.followable(
            page.parsed,
            url=url.url,
            id=url.id,
            depth=url.depth,
            charset=page.charset,
            nofollow=Flag.NOFOLLOW in page.flags,
        )

    def redirect_target(self, url: Url, asked: str, location: str) -> Link | str:
        """Where a redirect leads, or why it isn't followed. A seed may be moved anywhere: its target counts as a seed."""
        return self._reader.redirect_target(asked, location, in_scope=url.depth > 0)
