"""robots.txt as RFC 9309 reads it, and what a page says of itself. Pure: texts in, verdicts out.

Matching is protego's (groups merged, longest rule, Allow on ties, `*` and `$`). Here is what stands around it: bytes that are
hardly text, agents with a version behind them, delays that are none, and the rule that both the URL that would be requested and its
identity must be allowed, since either could be the one that the site means.
"""

import math
import re
from dataclasses import dataclass
from typing import Final

from protego import Protego

from services.worker.types import NO_LABEL, Headers, refusal_by_bytes

AGENT: Final = "gossamer"

_VERSION: Final = re.compile(r"^([ \t]*user-agent[ \t]*:[ \t]*[a-z_-]++)/\S*", re.IGNORECASE | re.MULTILINE)
_DELAY: Final = re.compile(r"\d{1,9}(?:\.\d{1,9})?")
#: Directives of meta robots and X-Robots-Tag that mean something here.
_NOINDEX: Final = frozenset({"noindex", "none"})
_NOFOLLOW: Final = frozenset({"nofollow", "none"})


@dataclass(frozen=True, slots=True)
class RobotsRules:
    """What an origin asks of us."""

    crawl_delay_s: float | None
    _rules: Protego | None  # None: everything is allowed

    def allow(self, url: str, identity: str) -> bool:
        if self._rules is None:
            return True
        allowed = bool(self._rules.can_fetch(url, AGENT))
        return allowed and (identity == url or bool(self._rules.can_fetch(identity, AGENT)))


EVERYTHING: Final = RobotsRules(None, None)


def text_of(body: bytes, *, cut: bool) -> str:
    """A robots.txt as text, whatever it is written in; empty if it is no text at all. A cut one ends with its last whole line."""
    if cut:
        body = body[: max(body.rfind(b"\n"), body.rfind(b"\r")) + 1]
    if body.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = body.decode("utf-16", "replace")
    elif body.lstrip()[:1] == b"<" or (body and refusal_by_bytes(body, NO_LABEL) is not None):
        return ""  # a page that says "not found" with a 200, or an image
    else:
        text = body.decode("utf-8-sig", "replace")
    return text.replace("\0", "").replace("\r\n", "\n").replace("\r", "\n")


def read_rules(text: str) -> RobotsRules:
    """Never raises: what can't be read is no rule."""
    rules = Protego.parse(_VERSION.sub(r"\1", text))
    return RobotsRules(_crawl_delay_s(text), rules)


def _crawl_delay_s(text: str) -> float | None:
    """The largest that is asked of us. Read here, since protego takes what comes (`-5`, `inf`) for a number."""
    ours: list[float] = []
    others: list[float] = []
    agents: list[str] = []
    in_rules = True
    named = False
    for line in text.splitlines():
        key, colon, value = line.partition("#")[0].partition(":")
        key, value = key.strip().lower(), value.strip()
        if not colon:
            continue
        if key == "user-agent":
            agents = [*([] if in_rules else agents), value.lower().partition("/")[0]]
            in_rules = False
            named = named or agents[-1] == AGENT
            continue
        in_rules = in_rules or key in ("allow", "disallow", "crawl-delay")
        if key == "crawl-delay" and _DELAY.fullmatch(value) and math.isfinite(float(value)):
            if AGENT in agents:
                ours.append(float(value))
            elif "*" in agents:
                others.append(float(value))
    return max(ours if named else others, default=None)


def page_rules(headers: Headers, meta: frozenset[str]) -> tuple[bool, bool]:
    """Whether a page asks not to be kept, and not to have its links followed. The strictest word counts, for us or for all."""
    words = set(meta)
    for name, value in headers:
        if name.lower() == "x-robots-tag":
            agent, colon, rest = value.partition(":")
            named = bool(colon) and "," not in agent and agent.strip().lower() not in ("unavailable_after", "max-snippet")
            if not named or agent.strip().lower() == AGENT:
                words |= {word.strip().lower() for word in (rest if named else value).split(",")}
    return not words.isdisjoint(_NOINDEX), not words.isdisjoint(_NOFOLLOW)
