"""URLs: what is requested, what counts as seen, and whose it is.

Two forms of one URL. The *requested* form is the link as a browser reads it (WHATWG), without its fragment, and nothing else is
changed: no server is asked for a URL that nobody linked to. The *identity* decides whether two URLs are one page, so it leaves
out what does not choose a page. Its rules, in this order, and no others:

1. escapes: those of letters, digits and `-._~` are decoded, the rest is in upper case, and a stray `%` is `%25`. Nothing is
   decoded twice; `%2F` stays, and `+` is not `%20`;
2. the host loses the dot at its end;
3. session ids in the path go: `;jsessionid=…` at its end, and ASP.NET's segment `(S(…24 letters and digits…))`;
4. query parameters that are tracking or session ids (`gossamer.tracking`) go, as do empty ones; `a=` is `a`; the rest is sorted;
   a query of which nothing is left goes too.

The case of a path, slashes at its end, double slashes, `index.html`, `www.` and http against https stay as they are: whether they
matter is for each server to say, and the content check finds the twins.

Knows: texts. Must not know: addresses, ports and paths that are refused, scope, or the Public Suffix List (it is handed in).
"""

import re
from collections.abc import Callable, Iterable
from hashlib import blake2b
from itertools import product
from string import hexdigits
from typing import Final, NamedTuple

from ada_url import join_url, normalize_url

from gossamer.errors import UrlError
from gossamer.ids import URL_ID_BYTES, UrlId
from gossamer.messages import Link
from gossamer.tracking import MAYBE_SESSIONS, SESSION_PREFIXES, SESSIONS, TRACKING, TRACKING_PREFIXES

URL_LENGTH_MAX: Final = 2048
HOST_LENGTH_MAX: Final = 253  # RFC 1035, section 2.3.4, without the dot at the end
LABEL_LENGTH_MAX: Final = 63
SITES_KEPT: Final = 1024
FAMILY_BYTES: Final = 8


def requested(text: str, base: str | None = None, *, length_max: int = URL_LENGTH_MAX) -> str:
    """The URL to ask for when a page at `base` links to `text`. Doing it twice changes nothing.

    Raises `UrlError` with one of a few short reasons, which are counted: what is no URL, has another scheme than http and https,
    a user name or password, a host that no name server knows, or more than `length_max` characters.
    """
    url = _read(text, base, length_max)
    _check_site(url[: url.index("/", 8)])
    return url


def identity(url: str) -> str:
    """What counts as seen: two requested URLs are taken for one page exactly if it is equal. Doing it twice changes nothing.

    It is a URL in its requested form itself, so that robots.txt can be asked about it as well.
    """
    slash = url.index("/", 8)
    return _site_identity(url[:slash]) + _rest_identity(url[slash:])


def url_id(identity: str) -> UrlId:
    """The name of an identity, on every machine and in every run."""
    return UrlId(blake2b(identity.encode(), digest_size=URL_ID_BYTES).digest())


def family_of(identity: str) -> tuple[bytes, bool]:
    """What an identity with a query shares with the others of its path, and whether it combines two or more parameters.

    Only combinations explode: of `/page?id=7` there are as many as the site has pages.
    """
    path, _, query = identity.partition("?")
    return (blake2b(path.encode(), digest_size=FAMILY_BYTES).digest(), "&" in query) if query else (b"", False)


def origin_of(url: str) -> str:
    """Scheme, host and port of a requested URL: what one robots.txt is for. The port is there unless it is the scheme's own."""
    return url[: url.index("/", 8)]


def host_of(url: str) -> str:
    """The host of a requested URL as it stands there, without port; an IPv6 address keeps its brackets."""
    return _host(origin_of(url))


def domain_of(url: str, registrable: Callable[[str], str] | None = None) -> str:
    """The unit of politeness: the host, or what `registrable` makes of it. `example.com.` and port 8080 are the same machine."""
    host = host_of(url).removesuffix(".")
    return host if registrable is None else registrable(host)


def sites_of(names: Iterable[str], registrable: Callable[[str], str]) -> dict[str, str]:
    """The registered domain of each host or domain, where the two differ: what the ledger can't know by itself."""
    return {name: site for name in names if (site := registrable(name)) != name}


class Base(NamedTuple):
    """What a page's links are relative to."""

    url: str
    site: str
    path: str
    query: str  #: with its mark
    folder: str  #: the path up to its last slash; empty if it begins with two: relative to it, nothing is plain

    @classmethod
    def of(cls, url: str) -> "Base":
        """Of a requested URL."""
        slash = url.index("/", 8)
        path, mark, query = url[slash:].partition("?")
        return cls(url, url[:slash], path, mark + query, "" if path.startswith("//") else path[: path.rindex("/") + 1])

    def guess(self, href: str) -> tuple[str, str] | None:
        """Site and path of a link as it stands there: right if there is such a path on that site that is plain, as `place` has it.

        So it is good for looking links up that are known, in a third of the time that it takes to be sure.
        """
        if href.startswith(_SCHEMES):
            slash = href.find("/", 8)
            return (href[:slash], href[slash:]) if slash > 0 else None
        if not href or href[0] in "/?#" or ":" in href or not self.folder:
            return None
        folder = self.folder
        href = href.removeprefix("./")
        while href.startswith("../"):
            href = href[3:]
            folder = folder[: folder.rfind("/", 0, -1) + 1] or "/"
        return self.site, folder + href


class Finder:
    """Resolves links. What is the same for all links to a site is remembered: 1,024 of them, and then all are forgotten."""

    def __init__(self, registrable: Callable[[str], str] | None = None, *, length_max: int = URL_LENGTH_MAX) -> None:
        self._registrable = registrable
        self._length_max = length_max
        self._sites: dict[str, tuple[str, str]] = {}  # those linked to: their identity, and their domain

    def resolve(self, base: str, href: str) -> Link:
        """What `href` links to on a page at `base`. Raises `UrlError`."""
        url = _read(href, base, self._length_max)
        slash = url.index("/", 8)
        return self.link(url[:slash], url[slash:])

    def place(self, base: Base, href: str) -> tuple[str, str] | None:
        """Site and path of a link in which there is nothing that a browser would read otherwise than it stands there.

        None if there is. Most are like that, and to be sure of it takes a fourth of the time that the whole of the standard does.
        The path, with its query, begins with one slash. Only refusals may differ: blanks at the ends of a link do not count as its
        length here, and nothing in a fragment is refused.
        """
        found = _PLAIN(href)
        if found is None:
            href = href.strip(_BLANKS).partition("#")[0]
            if (found := _PLAIN(href)) is None:
                return None
        if "%" in href and "%2e" in href.lower():  # a dot, and so perhaps a step up
            return None
        named, steps = found.groups()
        if named is None:
            site, path = base.site, _path(base, href, steps)
        else:
            site, path = named if named[0] == "h" else base.site[: base.site.index("/")] + named, href[len(named) :]
            if site not in self._sites:  # those are spelled as a browser spells them
                return None
        return None if path is None or len(site) + len(path) > self._length_max else (site, path)

    def link(self, site: str, path: str) -> Link:
        """To a requested URL of these two. Raises `UrlError` if it is a site that nobody can have."""
        known = self._sites.get(site)
        if known is None:
            _check_site(site)
            known = _site_identity(site), domain_of(f"{site}/", self._registrable)
            if len(self._sites) >= SITES_KEPT:
                self._sites.clear()
            self._sites[site] = known
        identity = known[0] + _rest_identity(path)
        return Link(url_id(identity), site + path, known[1], *family_of(identity))


def _path(base: Base, href: str, steps: str) -> str | None:
    """Where a plain link without a site leads on the page's own. `steps`: what it begins with that stays or steps up."""
    if href.startswith("/"):
        return href
    if not base.folder:
        return None
    if not href or href[0] == "?":
        path = base.path + (href or base.query)
        return None if _PLAIN(path) is None else path
    folder = base.folder
    for _ in range(steps.count("..")):
        folder = folder[: folder.rfind("/", 0, -1) + 1] or "/"
    path = folder + href[len(steps) :]
    return None if path.startswith("//") else path


def _read(text: str, base: str | None, length_max: int) -> str:
    if len(text) > length_max:
        # Only a fragment may be that long. Its # stays: a blank before it belongs to the path, and at the end would not.
        text = text[: text.find("#") + 1] or text
        if len(text) > length_max + 1:
            raise UrlError("too long")
    try:
        url = normalize_url(text) if base is None else join_url(base, text)
    except ValueError:
        raise UrlError("not a URL") from None
    if not url.startswith(_SCHEMES):
        raise UrlError("not http or https")
    if "#" in url:
        url = url[: url.index("#")]
    if len(url) > length_max:
        raise UrlError("too long")
    return url


def _check_site(site: str) -> None:
    """Refuses what WHATWG lets through: credentials, and names that no server has (empty or overlong labels, bad Punycode)."""
    if "@" in site:
        raise UrlError("user name or password")
    host = _host(site).removesuffix(".")
    labels = host.split(".")
    if len(host) > HOST_LENGTH_MAX or not all(0 < len(label) <= LABEL_LENGTH_MAX for label in labels):
        raise UrlError("not a host name")
    if not all(_says_what_it_means(label) for label in labels if label.startswith("xn--")):
        raise UrlError("not a host name")


def _says_what_it_means(label: str) -> bool:
    """Whether a label in Punycode is the one spelling of what it stands for; ada takes those in plain ASCII as they come."""
    try:
        name = label[4:].encode().decode("punycode")
        return not name.isascii() and normalize_url(f"http://{name}/") == f"http://{label}/"
    except ValueError:
        return False


def _host(site: str) -> str:
    host = site[7 if site[4] == ":" else 8 :]
    if ":" not in host:
        return host
    return host[: host.index("]") + 1] if host[0] == "[" else host[: host.index(":")]


def _site_identity(site: str) -> str:
    return site.replace(".:", ":") if ".:" in site else site.removesuffix(".")


def _rest_identity(rest: str) -> str:
    """Of path and query."""
    # Most links have nothing in them that would be spelled otherwise.
    if "?" not in rest and "%" not in rest and ";" not in rest and "(" not in rest:
        return rest
    if "%" in rest:
        rest = _ESCAPE.sub(_spelled, rest)
    path, _, query = rest.partition("?")
    if ";" in path:
        path = _JSESSIONID.sub("", path)
    if "/(S(" in path:
        path = _ASP_SESSION.sub("", path)
    if query and (query := _query_identity(query)):
        return f"{path}?{query}"
    return path


def _spelled(escape: re.Match[str]) -> str:
    return _SPELLING[escape[0]]


def _query_identity(query: str) -> str:
    kept = []
    for parameter in query.split("&"):
        name, _, value = parameter.partition("=")
        folded = name.lower()
        if folded in _NEVER_A_PAGE or folded.startswith(_NEVER_A_PAGE_PREFIXES):
            continue
        if folded in MAYBE_SESSIONS and _HEX_ID(value):
            continue
        if value:
            kept.append(parameter)
        elif name:
            kept.append(name)
    kept.sort()
    return "&".join(kept)


_SCHEMES: Final = ("http://", "https://")

#: Behind a site, from the root, or from the page's folder or one above it: plain segments, none of which begins with a dot, and a
#: plain query. A name before a colon is no segment: it would be a scheme.
_PLAIN: Final = re.compile(
    r"(?:((?:https?:)?+//[a-z0-9.:-]++)(?=/)|(?!//)((?:\./)?+(?:\.\./)*+)(?![^/?:]*+:))"
    r"/?+(?:[A-Za-z0-9_~!$&'()*+,;=@:%-][A-Za-z0-9_.~!$&'()*+,;=@:%-]*+/?+)*+(?:\?[A-Za-z0-9_.~!$&()*+,;=@:%/?-]*+)?+"
).fullmatch
#: What URL parsers take off at either end (URL Standard, section 4.4).
_BLANKS: Final = "".join(map(chr, range(0x21)))

_ESCAPE: Final = re.compile(r"%(?:[0-9A-Fa-f]{2})?")
_UNRESERVED: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")  # RFC 3986, section 2.3
#: A stray % must not stay: with what is decoded behind it, it could become an escape that the next pass decodes again.
_SPELLING: Final = {"%": "%25"} | {
    f"%{digits}": char if (char := chr(int(digits, 16))) in _UNRESERVED else f"%{digits.upper()}"
    for digits in map("".join, product(hexdigits, repeat=2))
}

#: Not behind a segment of dots: `/..;jsessionid=1` would become `/..`, which is another path.
_JSESSIONID: Final = re.compile(r"(?<!/\.)(?<!/\.\.)(?:;jsessionid=[^/;]*)+$", re.I)
_ASP_SESSION: Final = re.compile(r"/\(S\([a-z0-9]{24}\)\)(?=/)")
_HEX_ID: Final = re.compile(r"[0-9a-fA-F]{32,}").fullmatch

_NEVER_A_PAGE: Final = TRACKING | SESSIONS
_NEVER_A_PAGE_PREFIXES: Final = TRACKING_PREFIXES + SESSION_PREFIXES
