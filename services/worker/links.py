"""Links: from what a page's markup says to URLs that are worth knowing, and the reasons for the rest (step 14).

Half of a page's links stand on every page of its site, so what is decided of a URL is remembered, by site: a known one costs a
look-up, and no object is made for it. What depends on the page (its depth, its own words on links) is asked first, once a page.
Links that are refused are counted by reason, with one of them to show; they never become known to the ledger.

Knows: URLs and rules for them. Must not know: the network, or what is known already (the ledger does).
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

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
from services.worker.read import Reading

#: Sites whose links are remembered; each holds up to a megabyte.
SITES_KEPT: Final = 64
VERDICTS_KEPT: Final = 50_000
#: How often a path may repeat a segment, or a run of up to `RUN_MAX` of them: what a page that links to itself relatively makes.
REPEATS_MAX: Final = 3
RUN_MAX: Final = 4

#: What no page lies behind, by the ending of the path (images, media, archives, documents, code): not asked for at all.
_ENDINGS: Final = (
    "7z aac apk atom avi avif bin bmp bz2 css csv deb dmg doc docx eot epub exe flac flv gif gz heic ico iso jar jpeg jpg js json"
    " m4a m4v mid mjs mkv mov mp3 mp4 mpeg mpg msi odp ods odt ogg ogv otf pdf png ppt pptx ps psd rar rpm rss rtf svg swf tar"
    " tgz tif tiff ttf wasm wav webm webp wma wmv woff woff2 xls xlsx xml xz zip zst"
)
FILE_ENDINGS: Final = frozenset(_ENDINGS.split())


@dataclass(frozen=True, slots=True)
class Followable:
    links: Sequence[Link]
    refused: Sequence[Refused]
    found: tuple[str, ...]  #: all URLs that the page links to, followed or not: what a module is shown


class Links:
    def __init__(
        self,
        ledger: Ledger,
        limits: Limits,
        allowed_nets: Sequence[Network],
        registrable: Callable[[str], str],
        *,
        by_domain: bool,
    ) -> None:
        """`by_domain`: the unit of politeness is the registered domain, not the host."""
        self._ledger, self._limits, self._allowed_nets, self._registrable = ledger, limits, allowed_nets, registrable
        self._unit = registrable if by_domain else None
        self._include = [re.compile(each) for each in limits.include]
        self._exclude = [re.compile(each) for each in limits.exclude]
        self._finders: OrderedDict[str, Finder] = OrderedDict()
        self._verdicts: dict[UrlId, str | None] = {}  # why not; None: it may be followed
        self._scope: frozenset[str] = frozenset()

    async def widen(self, scope_hosts: int) -> None:
        """The gate says how many hosts are in scope: only then a look into the ledger is worth it."""
        if self._limits.scope is not Scope.WEB and scope_hosts != len(self._scope):
            self._scope = (await self._ledger.crawl()).scope
            self._verdicts.clear()

    @step("worker.links")
    def followable(self, url: Url, page: Reading) -> Followable:
        parsed, limits = page.parsed, self._limits
        base, finder = self._base(url.url, parsed.base), self._finder(url.url)
        none_of_them = self._page_refuses(url, page)
        skipped = parsed.nofollow if limits.nofollow is Nofollow.SKIP else frozenset()
        links: dict[UrlId, Link] = {}
        found: dict[str, None] = {}
        refused = _Tally()
        hrefs: Iterable[str] = parsed.hrefs if parsed.refresh is None else (*parsed.hrefs, parsed.refresh)
        for href in hrefs:
            try:
                link = finder.resolve(base, _in_charset(href, page.charset))
            except UrlError as error:
                refused.add(str(error), href)
                continue
            found[link.url] = None
            reason = none_of_them or ("nofollow" if href in skipped else self._verdict(link))
            if reason is None:
                links[link.id] = link
            else:
                refused.add(reason, link.url)
        return Followable(list(links.values()), refused.counted(), tuple(found))

    def redirect_target(self, url: Url, asked: str, location: str) -> Link | str:
        """Where a redirect leads, or why it isn't followed. A seed may be moved anywhere: its target counts as a seed."""
        try:
            link = self._finder(asked).resolve(asked, location)
        except UrlError as error:
            return str(error)
        reason = self._shape_refuses(link.url) if url.depth == 0 else self._verdict(link)
        return link if reason is None else reason

    def _page_refuses(self, url: Url, page: Reading) -> str | None:
        if Flag.NOFOLLOW in page.flags:
            return "nofollow"
        too_deep = self._limits.max_depth is not None and url.depth >= self._limits.max_depth
        return "depth" if too_deep else None

    def _verdict(self, link: Link) -> str | None:
        try:
            return self._verdicts[link.id]
        except KeyError:
            reason = self._shape_refuses(link.url) or self._scope_refuses(link.url)
            if len(self._verdicts) >= VERDICTS_KEPT:
                self._verdicts.clear()
            self._verdicts[link.id] = reason
            return reason

    def _shape_refuses(self, url: str) -> str | None:
        """What a URL looks like, whoever links to it."""
        slash = url.index("/", 8)
        path, _, query = url[slash:].partition("?")
        segments = [each for each in path.split("/") if each]
        limits = self._limits
        if segments and segments[-1].rpartition(".")[2].lower() in FILE_ENDINGS and "." in segments[-1]:
            return "file type"
        if len(segments) > limits.max_path_components:
            return "path components"
        if limits.max_url_params is not None and query and query.count("&") + 1 > limits.max_url_params:
            return "query parameters"
        if repeats(segments):
            return "repeated path segments"
        if self._include and not any(each.search(url) for each in self._include):
            return "not included"
        if any(each.search(url) for each in self._exclude):
            return "excluded"
        return "address or port" if url_refusal(url, self._allowed_nets) is not None else None

    def _scope_refuses(self, url: str) -> str | None:
        match self._limits.scope:
            case Scope.WEB:
                return None
            case Scope.HOST:
                return None if host_of(url) in self._scope else "scope"
            case Scope.DOMAIN:
                wanted = {self._registrable(host) for host in self._scope}
                return None if self._registrable(host_of(url)) in wanted else "scope"

    def _base(self, url: str, base: str | None) -> str:
        if base is None:
            return url
        try:
            return requested(base, url)
        except UrlError:
            return url

    def _finder(self, url: str) -> Finder:
        origin = origin_of(url)
        finder = self._finders.get(origin)
        if finder is None:
            finder = self._finders[origin] = Finder(origin, self._unit, length_max=self._limits.max_url_length)
            if len(self._finders) > SITES_KEPT:
                self._finders.popitem(last=False)
        else:
            self._finders.move_to_end(origin)
        return finder


def repeats(segments: Sequence[str]) -> bool:
    """Whether a segment stands there more than three times, or a run of two to four of them that often in a row."""
    if len(segments) <= REPEATS_MAX:
        return False
    if max(map(segments.count, segments)) > REPEATS_MAX:
        return True
    for length in range(2, RUN_MAX + 1):
        for start in range(len(segments) - length * REPEATS_MAX + 1):
            run = list(segments[start : start + length])
            if list(segments[start : start + length * REPEATS_MAX]) == run * REPEATS_MAX:
                return True
    return False


def _in_charset(href: str, charset: str) -> str:
    """The query in the page's own charset, as browsers send it (URL Standard, "encode"); everything else is UTF-8 anyway."""
    if charset == UTF_8 or charset in UTF_16 or href.isascii() or "?" not in href:
        return href
    path, _, rest = href.partition("?")
    query, hash_, fragment = rest.partition("#")
    # A character that the charset doesn't have is sent as the reference to it, whose signs are escaped.
    encoded = "".join(
        letter if letter.isascii() else "".join(f"%{byte:02X}" for byte in _bytes(letter, charset)) for letter in query
    )
    return f"{path}?{encoded}{hash_}{fragment}"


def _bytes(letter: str, charset: str) -> bytes:
    try:
        return letter.encode(CODECS.get(charset, "utf-8"))
    except (UnicodeEncodeError, LookupError):
        return f"&#{ord(letter)};".encode()


class _Tally:
    """Refusals of one page, by reason."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}
        self._examples: dict[str, str] = {}

    def add(self, reason: str, example: str) -> None:
        self._counts[reason] = self._counts.get(reason, 0) + 1
        self._examples.setdefault(reason, example[:500])

    def counted(self) -> list[Refused]:
        return [Refused(reason, count, self._examples[reason]) for reason, count in self._counts.items()]
