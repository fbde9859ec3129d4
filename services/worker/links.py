"""Links: from what a page's markup says to URLs that are worth knowing, and the reasons for the rest (step 15).

Half of a page's links stand on every page of its site, and most others lead where another page's have led. So what was made of a
link, and why it may not be followed, is remembered: a known one costs a look-up, and no object is made for it. What depends on the
page itself (its depth, its own words on links) is never part of that. Links that are refused are counted by reason, with a few of
them to show; the ledger knows no more of them.

Knows: URLs and rules for them. Must not know: the network, what is refused there (that is handed in), what is known already (the
ledger does).
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from types import MappingProxyType
from typing import Final, NamedTuple

import msgspec

from gossamer.crash import step
from gossamer.errors import UrlError
from gossamer.ids import UrlId
from gossamer.messages import Link, Url
from gossamer.outcomes import Flag, Outcome
from gossamer.ports.ledger import Ledger
from gossamer.records import Refused
from gossamer.settings import Links as Limits
from gossamer.settings import Nofollow, Scope
from gossamer.urls import Base, Finder, host_of, origin_of, requested
from services.worker.addresses import Network, url_refusal
from services.worker.charsets import CODECS, UTF_8, UTF_16
from services.worker.parse import Parsed
from services.worker.read import Reading

#: How many links are remembered, and how long ones: some 30 MB of usual ones, and 85 at most.
PLAIN_KEPT: Final = 81_920
SPELLED_KEPT: Final = 16_384
LENGTH_KEPT: Final = 256
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
NESTED: Final = "an index in an index of sitemaps"
NOFOLLOW: Final = "nofollow"

#: How many indexes of sitemaps may lie above one another. One, by the protocol of sitemaps; large sites have two.
INDEX_LEVELS_MAX: Final = 2

#: What sitemaps end with, of what is not asked for as a page.
SITEMAP_ENDINGS: Final = frozenset({"gz", "xml"})

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


class Followable(msgspec.Struct, frozen=True):
    """What a page links to."""

    links: Sequence[Link]  #: worth knowing, each identity once, in the page's order
    refused: Sequence[Refused]  #: how many were not, and why
    found: tuple[str, ...]  #: all URLs that it links to, followed or not, if somebody wants them: what a module is shown


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
    sitemaps: bool = False


class _Refusal(NamedTuple):
    """A link that is not followed."""

    link: Link | None  #: None: it is no link at all
    reason: str


#: What a link means, whatever page it is on.
_Verdict = Link | _Refusal


class _Memory:
    """Verdicts, by site and by a key of that site: so many of them, each site counted as one.

    When there are more, the oldest quarter of each site's are forgotten, one at least. What is on every page is soon back.
    """

    def __init__(self, most: int) -> None:
        self._most, self._kept = most, 0
        self._sites: dict[str, dict[str, _Verdict]] = {}

    def site(self, site: str) -> Mapping[str, _Verdict]:
        return self._sites.get(site, _NO_VERDICTS)

    def find(self, site: str, key: str) -> _Verdict | None:
        known = self._sites.get(site)
        return None if known is None else known.get(key)

    def keep(self, site: str, key: str, verdict: _Verdict) -> None:
        """A verdict that is not kept yet."""
        if len(site) + len(key) <= LENGTH_KEPT and _length(verdict) <= 2 * LENGTH_KEPT:
            if self._kept >= self._most:
                self._forget()
            known = self._sites.get(site)
            if known is None:
                known = self._sites[site] = {}
                self._kept += 1
            known[key] = verdict
            self._kept += 1

    def _forget(self) -> None:
        for site, known in list(self._sites.items()):
            for key in list(islice(known, len(known) // 4 + 1)):
                del known[key]
            if not known:
                del self._sites[site]
        self._kept = len(self)

    def __len__(self) -> int:
        return len(self._sites) + sum(map(len, self._sites.values()))


_NO_VERDICTS: Final[Mapping[str, _Verdict]] = MappingProxyType({})


def _length(verdict: _Verdict) -> int:
    """Of the URL, which is longer than what stands on the page where much of it is percent-encoded."""
    link = verdict.link if isinstance(verdict, _Refusal) else verdict
    return 0 if link is None else len(link.url)


class LinkReader:
    """Reads the links of pages, and remembers them. Pure, but for its memory: the same page gives the same links."""

    def __init__(
        self,
        rules: LinkRules,
        *,
        url_refusal: Callable[[str], str | None],
        registrable: Callable[[str], str],
        by_domain: bool = False,
        tells_all: bool = True,
    ) -> None:
        """`url_refusal`: why an origin is not asked. `by_domain`: the unit of politeness is the registered domain, not the host.

        `tells_all`: somebody wants to know of all links.
        """
        self._tells_all = tells_all
        self._rules, self._url_refusal, self._registrable = rules, url_refusal, registrable
        self._finder = Finder(registrable if by_domain else None, length_max=rules.max_url_length)
        self._remember_nothing()
        self._origins: dict[str, str] = {}  # why not; "": it may be asked
        self._scope: frozenset[str] = frozenset()

    def widen(self, scope_hosts: Iterable[str]) -> None:
        """From here on the crawl's scope is these hosts."""
        names = {host.removesuffix(".") for host in scope_hosts}
        if self._rules.scope is Scope.DOMAIN:
            names = {self._registrable(name) for name in names}
        if names != self._scope:
            self._scope = frozenset(names)
            self._remember_nothing()
            self._origins.clear()

    def followable(
        self,
        parsed: Parsed,
        *,
        url: str,
        id: UrlId,
        depth: int = 0,
        charset: str = UTF_8,
        nofollow: bool = False,
        of_sitemaps: bool = False,
    ) -> Followable:
        """The links of a page at `url`, but for those to itself. `nofollow`: it asks that none of them be followed.

        `of_sitemaps`: they lead to sitemaps.
        """
        base = Base.of(self._base(url, parsed.base))
        hrefs, marked = self._hrefs(parsed, charset)
        of_page = self._page_refusal(depth + of_sitemaps, nofollow)  # a sitemap whose own links are too deep is of no use
        links: dict[UrlId, Link] = {}
        found: dict[str, None] = {}
        refused: dict[str, list[str]] = {}
        plain, spelled, read = self._plain.site(base.site), self._spelled.site(base.site), self._verdict
        if of_sitemaps:
            plain, spelled, read = _NO_VERDICTS, _NO_VERDICTS, self._verdict_of_sitemap
        for href in hrefs:
            verdict = plain.get(href) or spelled.get(href) or read(base, href)
            if isinstance(verdict, Link):
                link, reason = verdict, of_page
            elif verdict.link is not None:
                link, reason = verdict.link, verdict.reason
            else:
                refused.setdefault(verdict.reason, []).append(href)
                continue
            if self._tells_all:
                found[link.url] = None
            if reason or href in marked:
                refused.setdefault(reason or NOFOLLOW, []).append(link.url)
            else:
                links.setdefault(link.id, link)
        links.pop(id, None)
        tally = [each for reason, urls in refused.items() for each in _examples(reason, urls)]
        return Followable(list(links.values()), tally, tuple(found))

    def redirect_target(self, url: str, location: str, *, in_scope: bool = True) -> Link | str:
        """Where a redirect leads, or why it isn't followed. `in_scope`: only within the crawl's scope."""
        try:
            link = self._finder.resolve(url, location)
        except UrlError as refused:
            return str(refused)
        reason = self._origin_refusal(origin_of(link.url))
        if reason == OUT_OF_SCOPE and not in_scope:
            reason = ""
        # A sitemap that has moved is still one; what it is now is seen when it comes.
        is_sitemap = self._rules.sitemaps and _ending(link.url) in SITEMAP_ENDINGS
        return reason or self.shape_refusal(link.url, is_sitemap=is_sitemap) or link

    def named_sitemaps(self, hrefs: Sequence[str], *, url: str, depth: int) -> list[Link]:
        """Those sitemaps named at `url` that are asked for, but for itself. If their links were too deep, none is."""
        if self._page_refusal(depth + 1, nofollow=False):
            return []
        judged = [self._judged(url, href, is_sitemap=True) for href in hrefs]
        return list({each.id: each for each in judged if isinstance(each, Link) and each.url != url}.values())

    def _remember_nothing(self) -> None:
        self._plain = _Memory(PLAIN_KEPT)  # by the site that is linked to, and the path there
        self._spelled = _Memory(SPELLED_KEPT)  # by the page's site, and as they stand on its pages

    def _base(self, url: str, base: str | None) -> str:
        if base is None:
            return url
        try:
            return requested(base, url)
        except UrlError:
            return url

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

    def _verdict(self, base: Base, href: str) -> _Verdict:
        """What a link means that was not found at once; remembered if that does not depend on this one page.

        What is plain is remembered by where it leads to, whatever page links to it, and in whatever way.
        """
        guessed = base.guess(href)
        if guessed is not None and (verdict := self._plain.find(*guessed)) is not None:
            return verdict
        place = self._finder.place(base, href)
        if place is None:
            verdict = self._judged(base.url, href)
            if _SAME_ON_EVERY_PAGE(href) and self._spelled.find(base.site, href) is None:
                self._spelled.keep(base.site, href, verdict)
        elif (verdict := self._plain.find(*place)) is None:
            verdict = self._verdict_on(self._finder.link(*place))
            self._plain.keep(*place, verdict)
        return verdict

    def _verdict_of_sitemap(self, base: Base, href: str) -> _Verdict:
        return self._judged(base.url, href, is_sitemap=True)

    def _judged(self, base: str, href: str, *, is_sitemap: bool = False) -> _Verdict:
        try:
            link = self._finder.resolve(base, href)
        except UrlError as refused:
            return _Refusal(None, str(refused))
        return self._verdict_on(link, is_sitemap=is_sitemap)

    def _verdict_on(self, link: Link, *, is_sitemap: bool = False) -> _Verdict:
        reason = self._origin_refusal(origin_of(link.url)) or self.shape_refusal(link.url, is_sitemap=is_sitemap)
        return _Refusal(link, reason) if reason else link

    def _origin_refusal(self, origin: str) -> str:
        """Where a URL leads to; scope comes last, since a seed's redirect may leave it."""
        reason = self._origins.get(origin)
        if reason is None:
            url = origin + "/"
            refused = self._url_refusal(url) is not None
            reason = REFUSED_PLACE if refused else "" if self.is_in_scope(host_of(url).removesuffix(".")) else OUT_OF_SCOPE
            if len(self._origins) >= ORIGINS_KEPT:
                self._origins.clear()
            self._origins[origin] = reason
        return reason

    def is_in_scope(self, host: str) -> bool:
        """A host without the dot at its end."""
        match self._rules.scope:
            case Scope.WEB:
                return True
            case Scope.HOST:
                return host in self._scope
            case Scope.DOMAIN:
                return self._registrable(host) in self._scope

    def shape_refusal(self, url: str, *, is_sitemap: bool = False) -> str:
        """Why a URL is not followed because of what it looks like, whoever links to it; "" if it may be.

        A sitemap may end as files do, and needs not be included: that is asked of the pages that it lists.
        """
        rules = self._rules
        path = url[url.index("/", 8) :]
        query = ""
        if "?" in path:
            path, _, query = path.partition("?")
        ending = path.rfind(".") + 1
        if ending and not is_sitemap and path[ending:].lower() in FILE_ENDINGS:
            return FILE_TYPE
        components = path.count("/") - path.endswith("/")
        if components > rules.max_path_components:
            return PATH_COMPONENTS
        if components > REPEATS_MAX and repeats([each for each in path.split("/") if each]):
            return REPEATED_SEGMENTS
        if query and rules.max_url_params is not None and sum(map(bool, query.split("&"))) > rules.max_url_params:
            return QUERY_PARAMETERS
        if rules.include and not is_sitemap and not any(each.search(url) for each in rules.include):
            return NOT_INCLUDED
        if rules.exclude and any(each.search(url) for each in rules.exclude):
            return EXCLUDED
        return ""


def _ending(url: str) -> str:
    return url.partition("?")[0].rpartition(".")[2].lower()


_NONE: Final[frozenset[str]] = frozenset()

#: Does not depend on the page's own path. `http:x` would: on an http page a browser takes it for `x`.
_SAME_ON_EVERY_PAGE: Final = re.compile(r"/|https?://|(?!https?:)[a-z][a-z0-9+.-]*+:", re.I | re.A).match


def _examples(reason: str, urls: Sequence[str]) -> list[Refused]:
    """Up to three of them, each for a share. Not the first three: a site has those on every page, and the last ones too."""
    shown = list(dict.fromkeys((urls[0], urls[len(urls) // 2], urls[-1])))
    shares = [len(urls) - len(shown) + 1, *(1 for _ in shown[1:])]
    return [Refused(reason, share, url[:EXAMPLE_LENGTH_MAX]) for share, url in zip(shares, shown, strict=True)]


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


def rules_of(limits: Limits) -> LinkRules:
    """The settings, ready for use."""
    return LinkRules(
        include=tuple(map(re.compile, limits.include)),
        exclude=tuple(map(re.compile, limits.exclude)),
        max_url_params=limits.max_url_params,
        max_path_components=limits.max_path_components,
        max_url_length=limits.max_url_length,
        max_depth=limits.max_depth,
        nofollow=limits.nofollow,
        scope=limits.scope,
        sitemaps=limits.sitemaps,
    )


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
        tells_all: bool = True,
    ) -> None:
        self._ledger, self._scope, self._scope_hosts = ledger, limits.scope, 0
        refusal = partial(url_refusal, allowed=allowed_nets)
        self._reader = LinkReader(
            rules_of(limits), url_refusal=refusal, registrable=registrable, by_domain=by_domain, tells_all=tells_all
        )

    async def widen(self, scope_hosts: int) -> None:
        """The gate says how many hosts are in scope: only when that has changed a look into the ledger is worth it."""
        if self._scope is not Scope.WEB and scope_hosts != self._scope_hosts:
            await self._widen()

    async def _widen(self) -> None:
        hosts = (await self._ledger.crawl()).scope
        if len(hosts) >= self._scope_hosts:  # it only grows: an answer with fewer was overtaken by another
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
            of_sitemaps=page.of_sitemaps,
        )

    async def listed(self, url: Url, page: Reading) -> Followable:
        """What a sitemap lists. An index under too many others lists nothing: there would be no end of it."""
        if not page.of_sitemaps or not await self._is_nested(url):
            return self.followable(url, page)
        hrefs = page.parsed.hrefs
        return Followable((), [Refused(NESTED, len(hrefs), hrefs[0][:EXAMPLE_LENGTH_MAX])] if hrefs else (), hrefs)

    async def named_sitemaps(self, url: Url, named_at: str, hrefs: Sequence[str]) -> list[Url]:
        """Sitemaps that robots.txt names, which was asked because of this URL, as links of it."""
        if hrefs and self._scope is not Scope.WEB:  # the gate has not said yet how many hosts there are
            await self._widen()
        links = self._reader.named_sitemaps(hrefs, url=named_at, depth=url.depth)
        return [Url(link.id, link.url, link.domain, url.depth + 1, parent=url.id) for link in links]

    async def _is_nested(self, url: Url) -> bool:
        levels, above = 0, url.parent
        while above is not None and levels < INDEX_LEVELS_MAX:
            (record,) = await self._ledger.records([above])
            if record is None or record.facts is None:
                break
            if Flag.SITEMAP in record.facts.flags:
                levels += 1
            elif record.outcome is not Outcome.REDIRECT:
                break
            above = record.url.parent
        return levels >= INDEX_LEVELS_MAX

    def redirect_target(self, url: Url, asked: str, location: str) -> Link | str:
        """Where a redirect leads, or why it isn't followed. A seed may be moved anywhere: its target counts as a seed."""
        return self._reader.redirect_target(asked, location, in_scope=url.depth > 0)
