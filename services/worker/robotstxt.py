"""robots.txt and its kin, the pure half: what an origin's file, its absence, or a page itself asks of us.

RFC 9309, and on the side of the site where it leaves a choice. The matcher is our own: it names the line that decides, which
`explain` shows; it looks for the parts between `*` one after the other, so that no file can make it run away; and it costs a tenth
of protego's, which is its oracle in the tests.

Knows: texts, statuses and URLs. Must not know: how a file is fetched, how long it is kept, when to try again.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from enum import Enum
from typing import Final, NamedTuple

import msgspec

from gossamer.urls import identity

AGENT: Final = "gossamer"

#: RFC 9309, section 2.5: parsers must take at least this much. The rest is cut, at the end of a line.
BYTES_MAX: Final = 500 * 1024

#: No rule is longer; a line that is has no business here.
LINE_LENGTH_MAX: Final = 16 * 1024

#: Rules with `*` or `$` in them: each is tried on each URL of the host, and 30,000 of them take a tenth of a second. Real files
#: have some hundred. Which of more than these to leave out is not for us to say, so then all is forbidden.
PATTERNS_MAX: Final = 3_000


# --- What an answer to the request for robots.txt means ---


class Meaning(Enum):
    READ = "read"  #: it has a text; an empty one allows everything
    MOVED = "moved"  #: up to five hops are followed; beyond them, and where none is named, it counts as not there
    ALLOWS_ALL = "allows all"  #: there is none
    NOT_NOW = "not now"  #: it may well be there: nothing is asked for until it can be read


def meaning(status: int) -> Meaning:
    """Of a status. A failure in its place means *not now*, or is final: the transport tells (`Trouble.again`)."""
    if 200 <= status <= 299:
        return Meaning.READ
    if 300 <= status <= 399:
        return Meaning.MOVED
    if 400 <= status <= 499 and status != 429:
        return Meaning.ALLOWS_ALL
    return Meaning.NOT_NOW


def kept_s(headers: Iterable[tuple[str, str]]) -> float:
    """How long the answer is gone by: what its `Cache-Control` says, within bounds (RFC 9309, section 2.4)."""
    said = ",".join(value for name, value in headers if name.lower() == "cache-control").lower()
    if "no-store" in said or "no-cache" in said:
        return KEPT_S_MIN
    age = _MAX_AGE(said)
    return KEPT_S if age is None else min(max(float(age[1]), KEPT_S_MIN), KEPT_S)


#: A little less than the day that the RFC allows: workers look for what is new every few minutes.
KEPT_S: Final = 23.5 * 3600.0
#: Shorter, and robots.txt would be asked for between any two pages of a slow site.
KEPT_S_MIN: Final = 300.0
_MAX_AGE: Final = re.compile(r"(?:^|[,\s])max-age\s*=\s*\"?([0-9]{1,12})").search


# --- From bytes to rules ---


def text_of(body: bytes, *, cut: bool = False) -> str:
    """A robots.txt as text, whatever it was written in; empty if it is a page or a file of another kind.

    `cut`: there was more of it. Then its last line is not whole, and left out: half a rule is another rule.
    """
    cut = cut or len(body) > BYTES_MAX
    body = body[:BYTES_MAX]
    text = body.decode("utf-16", "replace") if body.startswith((b"\xff\xfe", b"\xfe\xff")) else _decoded(body)
    text = text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n").lstrip("\ufeff")
    if text.lstrip()[:1] == "<":
        return ""
    return text[: text.rfind("\n") + 1] if cut else text


def _decoded(body: bytes) -> str:
    try:
        return body.decode("utf-8")
    except UnicodeDecodeError:
        # One byte of Latin-1, in a comment most often, must not cost the other lines.
        return "\n".join(_line(each) for each in body.split(b"\n"))


def _line(line: bytes) -> str:
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError:
        return line.decode("latin-1")


class Verdict(NamedTuple):
    allowed: bool
    line: str = ""  #: that decided, with its number; empty if none did


class _Rule(msgspec.Struct, frozen=True):
    allow: bool
    line: str


class _Pattern(msgspec.Struct, frozen=True):
    """A rule with a `*` in it, or a `$` at its end."""

    rule: _Rule
    length: int
    head: str
    middle: tuple[str, ...]  #: between two `*`
    tail: str | None  #: behind the last `*`; None if there is none
    ends: bool  #: with a `$`

    def matches(self, target: str) -> bool:
        tail = self.tail
        if not target.startswith(self.head) or (self.ends and tail is not None and not target.endswith(tail)):
            return False
        at = len(self.head)
        if tail is None:
            return at == len(target)
        for part in self.middle:
            at = target.find(part, at)
            if at < 0:
                return False
            at += len(part)
        return len(target) - len(tail) >= at if self.ends else target.find(tail, at) >= 0


class Rules(msgspec.Struct, frozen=True):
    """What a robots.txt asks of one agent."""

    crawl_delay_s: float | None = None  #: the longest that is asked for
    sitemaps: tuple[str, ...] = ()
    group: str = ""  #: whose rules they are: our own token, `*`, or nobody's
    _plain: Mapping[str, _Rule] = msgspec.field(default_factory=dict)  #: by what a path begins with
    _lengths: tuple[int, ...] = ()  #: of those, the longest first
    _patterns: tuple[_Pattern, ...] = ()  #: the longest first, and Allow first of equals

    def allows(self, url: str) -> Verdict:
        """Whether this very URL, in its requested form, may be asked for: by the longest rule, and by Allow of equals."""
        target = _spelled(url[url.index("/", 8) :])
        if target.partition("?")[0] == "/robots.txt":
            return _ALLOWED
        length, found = self._longest_plain(target)
        for each in self._patterns:
            if each.length < length or (each.length == length and found is not None and found.allow):
                break
            if each.matches(target) and (each.length > length or each.rule.allow):
                found = each.rule
                break
        return _ALLOWED if found is None else Verdict(found.allow, found.line)

    def admits(self, url: str) -> Verdict:
        """Whether both the URL and its identity are allowed. `/x.cgi?utm_source=a` passes `/*.cgi$`, and means what doesn't."""
        verdict = self.allows(url)
        if not verdict.allowed or (same := identity(url)) == url:
            return verdict
        other = self.allows(same)
        return verdict if other.allowed else other

    def _longest_plain(self, target: str) -> tuple[int, _Rule | None]:
        for length in self._lengths:
            rule = self._plain.get(target[:length])
            if rule is not None:
                return length, rule
        return -1, None


_ALLOWED: Final = Verdict(True)
ALLOW_ALL: Final = Rules()


def denial(rules: Rules, url: str, *, max_crawl_delay_s: float) -> str | None:
    """Why this URL is `robots_denied`; None if it may be asked for. A host is never asked faster than it wants."""
    if rules.crawl_delay_s is not None and rules.crawl_delay_s > max_crawl_delay_s:
        return f"robots.txt asks for a delay of {rules.crawl_delay_s:g} s, and {max_crawl_delay_s:g} s are accepted"
    verdict = rules.admits(url)
    return None if verdict.allowed else f"robots.txt, {verdict.line}"


def read_rules(text: str, agent: str = AGENT) -> Rules:
    """The rules for our product token, in lower case; those for `*` if it has none for us. What can't be read is no rule."""
    groups: dict[str, list[_Line]] = {}
    sitemaps: list[str] = []
    agents: set[str] = set()
    rules_began = False
    for line in _lines(text):
        if line.name == _SITEMAP:
            sitemaps.append(line.value)
        elif line.name == _USER_AGENT:
            if rules_began:
                agents, rules_began = set(), False
            token = _TOKEN(line.value)
            if token is not None and (known := token[0].lower()) in (agent, "*"):
                agents.add(known)
                groups.setdefault(known, [])
        else:
            rules_began = True
            for each in agents:
                groups[each].append(line)
    ours = next((each for each in (agent, "*") if each in groups), "")
    return _compiled(ours, groups.get(ours, []), tuple(sitemaps))


class _Line(NamedTuple):
    """A line that means something."""

    number: int
    name: str
    value: str

    def __str__(self) -> str:
        return f"line {self.number}: {self.name}: {self.value[:200]}"


def _lines(text: str) -> Iterator[_Line]:
    for number, line in enumerate(text.split("\n"), 1):
        name, colon, value = line.partition("#")[0].partition(":")
        known = _NAMES.get(name.strip().lower())
        if colon and known is not None and len(line) <= LINE_LENGTH_MAX:
            yield _Line(number, known, value.strip())


def _compiled(group: str, lines: Iterable[_Line], sitemaps: tuple[str, ...]) -> Rules:
    delays_s: list[float] = []
    plain: dict[str, _Rule] = {}
    patterns: list[_Pattern] = []
    for line in lines:
        value = line.value
        if line.name == _CRAWL_DELAY:
            if _DELAY(value):
                delays_s.append(float(value))
        elif value[:1] in ("/", "*"):  # else it is empty, or no path, and matches nothing
            rule = _Rule(line.name == _ALLOW, str(line))
            ends = value[-1] == "$"
            head, *rest = map(_spelled, value.removesuffix("$").split("*"))
            if rest or ends:
                length = len(head) + sum(len(part) + 1 for part in rest) + ends
                middle, tail = tuple(filter(None, rest[:-1])), rest[-1] if rest else None
                patterns.append(_Pattern(rule, length, head, middle, tail, ends))
            elif head not in plain or rule.allow:
                plain[head] = rule
    if len(patterns) > PATTERNS_MAX:
        plain, patterns = {"/": _Rule(False, f"{len(patterns)} rules with * or $, more than are read")}, []
    return Rules(
        crawl_delay_s=max(delays_s, default=None),
        sitemaps=sitemaps,
        group=group,
        _plain=plain,
        _lengths=tuple(sorted({len(each) for each in plain}, reverse=True)),
        _patterns=tuple(sorted(patterns, key=lambda each: (-each.length, not each.rule.allow))),
    )


_USER_AGENT: Final = "User-agent"
_ALLOW: Final = "Allow"
_DISALLOW: Final = "Disallow"
_CRAWL_DELAY: Final = "Crawl-delay"
_SITEMAP: Final = "Sitemap"

#: With the slips of the pen that are common: who forbids something means it.
_NAMES: Final = {
    "allow": _ALLOW,
    "crawl delay": _CRAWL_DELAY,
    "crawl-delay": _CRAWL_DELAY,
    "disallow": _DISALLOW,
    "disalow": _DISALLOW,
    "dissallow": _DISALLOW,
    "dissalow": _DISALLOW,
    "sitemap": _SITEMAP,
    "user agent": _USER_AGENT,
    "user-agent": _USER_AGENT,
    "useragent": _USER_AGENT,
}
_TOKEN: Final = re.compile(r"[^\s/;,()]+").match
_DELAY: Final = re.compile(r"[0-9]{1,99}(?:\.[0-9]{0,99})?|\.[0-9]{1,99}").fullmatch


def _spelled(path: str) -> str:
    """One spelling of what can be written in two (RFC 9309, section 2.2.2): escaped if it must be, as it is if it need not be."""
    return path if _PLAIN(path) else _SPELLING(_respelled, path)


def _respelled(found: re.Match[str]) -> str:
    text = found[0]
    if len(text) == 3 and text[0] == "%":
        char = chr(int(text[1:], 16))
        return char if char in _NEED_NO_ESCAPE else text.upper()
    return "".join(f"%{byte:02X}" for byte in text.encode("utf-8", "replace"))


_NEED_NO_ESCAPE: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!$'()*,:;@")
_PLAIN: Final = re.compile(r"[A-Za-z0-9\-._~!$'()*,:;@/?&=+]*+").fullmatch
_SPELLING: Final = re.compile(r"%[0-9A-Fa-f]{2}|[^A-Za-z0-9\-._~!$'()*,:;@/?&=+#\[\]]").sub


# --- What a page asks for itself ---


class PageRules(NamedTuple):
    noindex: bool  #: it is neither stored nor handed to modules
    nofollow: bool  #: its links are left alone


def page_rules(headers: Iterable[tuple[str, str]], meta: Set[str], agent: str = AGENT) -> PageRules:
    """From its `X-Robots-Tag` headers and its `<meta name=robots>`, as far as they are for us or for all; the strictest wins."""
    asked = set(meta)
    for name, value in headers:
        if len(name) == 12 and name.lower() == "x-robots-tag":
            asked.update(_tagged(value.lower(), agent))
    return PageRules(not asked.isdisjoint(_NOINDEX), not asked.isdisjoint(_NOFOLLOW))


def _tagged(value: str, agent: str) -> Iterator[str]:
    """`noindex, otherbot: nofollow, nosnippet, gossamer: none`: a name is for all that follows it, up to the next."""
    ours = True
    for part in value.split(","):
        name, colon, rest = part.partition(":")
        if colon and name.strip() not in _HAVE_VALUES:
            ours = name.strip() in (agent, "*")
            part = rest
        if ours:
            yield part.strip()


_NOINDEX: Final = frozenset({"noindex", "none"})
_NOFOLLOW: Final = frozenset({"nofollow", "none"})
_HAVE_VALUES: Final = frozenset({"unavailable_after", "max-snippet", "max-image-preview", "max-video-preview"})
