#!/usr/bin/env python3
"""A synthetic web on loopback that knows the truth about itself.

One file, standard library only (Python >= 3.11). It serves N sites, each its
own host, logs every request in memory, and scores a crawl against what a
correct crawler would have fetched.

    synthweb.py --sites 20 --pages 1000 --seed 1 --ready-file ready.json
    synthweb.py --score http://127.0.0.1:CONTROL      # score of what was seen
    synthweb.py --self-test

Hosts.  Site k is 127.0.1.k (k <= 250), then 127.0.2.1 ..., all on one port.
With --names it is siteK.synth.test, told apart by the Host header; then
--bind says where to listen (containers: --bind 0.0.0.0 and DNS aliases).

Control port (GET, JSON):  /-/score  /-/stats  /-/truth[?urls=1]  /-/log
and POST /-/reset.  --score-file gets the score on SIGTERM or SIGINT.

The truth.  Seeds are the home pages; each home links to the next site's home,
so that any one seed reaches everything.  The truth set is every HTML page
that answers 200 and is reachable over allowed links: exactly the number asked
for by --pages or --sizes.  Everything else (redirects, dead links, forbidden
pages, PDFs, images, traps) exists besides those pages.

  pages      truth pages fetched (GET answered 200, or 304)
  missed     truth pages never fetched
  forbidden  requests that robots.txt of the site disallows (robots group:
             '*', or --robots-agent); redirect targets are included
  wrong      requests for URLs which no correct reading of a link on an
             allowed page gives: bad resolution, links in comments, scripts,
             form actions, data-* attributes; pages linked from forbidden
             pages only; and, under --nofollow skip, pages that only
             rel=nofollow links lead to
  repeats    GETs answered 200 for a page already answered 200 under the same
             URL, or under one equal to it by RFC 3986 section 6.2.2 (escapes
             of unreserved characters, case of escapes).  robots.txt apart.
  repeats_tracking   the same page again, under a spelling that differs only
             in utm_* parameters.  A crawler that strips utm_* has none; the
             server answers with or without them, and neither is wrong.
  repeats_order      the same page again, only the order of parameters differs
  in_vain    complete GETs of PDFs, images and CSS.  A HEAD, or a GET that is
             closed before the end, is counted under `aborted`, and is fine.

rel=nofollow: followed by default (--nofollow follow); a few pages per site are
reachable through rel=nofollow links only.  --nofollow skip takes them out of
the truth.  <link rel=canonical> always names a URL that is in the truth set.
A page with a 500 answers 200 from its second GET on and is in the truth set.

In-flight numbers mean little without --latency-ms, since the answer is
written as soon as the request is read.
"""

from __future__ import annotations

import argparse
import asyncio
import collections
import email.utils
import html
import html.parser
import http.client
import itertools
import json
import math
import mmap
import multiprocessing
import multiprocessing.connection
import os
import random
import re
import resource
import signal
import socket
import sys
import tempfile
import time
import urllib.parse
import urllib.request
import zlib
from array import array
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, NamedTuple

FAN_OUT = 8  # page i links to pages FAN_OUT*i+1 ... FAN_OUT*i+FAN_OUT: reachability
EPOCH = 1_700_000_000  # Last-Modified of the first page
SENTENCES = 1 << 16  # size of the pool of sentences (indexed by two bytes)
RESOURCE_PAUSE = 0.03  # between the first bytes of a PDF or image and the rest
WELL_KNOWN = ("/favicon.ico", "/sitemap.xml", "/sitemap_index.xml", "/.well-known/")


# --------------------------------------------------------------------------
# robots.txt (RFC 9309), for the truth and for the reference crawler
# --------------------------------------------------------------------------


class Robots:
    """Rules of a robots.txt, with longest match, `*`, `$` and Allow on ties."""

    def __init__(self, text: str) -> None:
        self.groups: dict[str, list[tuple[int, bool, re.Pattern[str]]]] = {}
        agents: list[str] = []
        in_rules = False
        for raw in text.lstrip("\ufeff").splitlines():
            name, colon, value = raw.partition("#")[0].partition(":")
            name, value = name.strip().lower(), value.strip()
            if not colon:
                continue
            if name == "user-agent":
                if in_rules:
                    agents, in_rules = [], False
                agents.append(value.lower())
                self.groups.setdefault(value.lower(), [])
            elif name in ("allow", "disallow"):
                in_rules = True
                if value:
                    rule = (len(value), name == "allow", self._compile(value))
                    for agent in agents:
                        self.groups[agent].append(rule)

    @staticmethod
    def _compile(pattern: str) -> re.Pattern[str]:
        end = "$" if pattern.endswith("$") else ""
        parts = pattern.removesuffix("$").split("*")
        return re.compile(".*".join(map(re.escape, parts)) + end, re.DOTALL)

    def allowed(self, target: str, agent: str = "*") -> bool:
        """Whether `agent` (a product token) may fetch path-and-query `target`."""
        rules = self.groups.get(agent.lower())
        if rules is None:
            rules = self.groups.get("*", [])
        best, verdict = -1, True
        for length, allow, pattern in rules:
            if (length > best or (length == best and allow)) and pattern.match(target):
                best, verdict = length, allow
        return verdict


# --------------------------------------------------------------------------
# URL spelling
# --------------------------------------------------------------------------

_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
# Decoded when the server compares: unreserved characters (RFC 3986), and the
# sub-delims that clients are known to escape without need.
_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~!'()*,;:@$")


def normal_escapes(target: str) -> str:
    """`target` with needless escapes decoded and the others in upper case."""
    if "%" not in target:
        return target

    def one(match: re.Match[str]) -> str:
        char = chr(int(match[1], 16))
        return char if char in _PLAIN else match[0].upper()

    return _ESCAPE.sub(one, target)


def without_tracking(target: str) -> str:
    """`target` without its utm_* parameters."""
    if "utm_" not in target:
        return target
    path, _, query = target.partition("?")
    kept = [p for p in query.split("&") if not p.startswith("utm_")]
    return f"{path}?{'&'.join(kept)}" if kept else path


def sorted_query(target: str) -> str:
    path, mark, query = target.partition("?")
    return f"{path}?{'&'.join(sorted(query.split('&')))}" if mark else path


def relative(base: str, target: str) -> str:
    """A reference that leads from path `base` to path-and-query `target`."""
    path, mark, query = target.partition("?")
    if mark and path == base:
        return "?" + query
    folder = base[: base.rfind("/") + 1]
    if path.startswith(folder):
        rest = path[len(folder) :]
    else:
        here, there = folder.split("/")[1:-1], path.split("/")[1:]
        same = 0
        while same < len(here) and same < len(there) - 1 and here[same] == there[same]:
            same += 1
        rest = "../" * (len(here) - same) + "/".join(there[same:])
    if not rest or ":" in rest.partition("/")[0]:
        rest = "./" + rest  # empty means "this very page", a colon would be a scheme
    return rest + mark + query


# --------------------------------------------------------------------------
# The world: sites, pages, links
# --------------------------------------------------------------------------


class Extra(NamedTuple):
    """A URL that is linked somewhere and is not a page of the truth set."""

    kind: str  # redirect, missing, gone, forbidden, hidden, resource, trap
    path: str
    status: int = 200
    location: str = ""
    number: int = 0
    media: str = ""


ROBOT_STYLES = ("disallow", "allow", "wildcard", "groups", "tie", "none")


@dataclass(slots=True)
class Site:
    number: int  # from 1
    size: int
    host: str  # without port
    origin: str  # http://host[:port]
    style: str
    robots_text: str | None = None
    robots: Robots = field(default_factory=lambda: Robots(""))
    paths: list[str] = field(default_factory=list)  # of the pages
    linked: list[str] = field(default_factory=list)  # how links name the pages
    routes: dict[str, int] = field(default_factory=dict)  # >= 0 page, < 0 extra
    extras: list[Extra] = field(default_factory=list)
    by_kind: dict[str, list[str]] = field(default_factory=dict)
    nofollow: set[int] = field(default_factory=set)
    flaky: dict[int, int] = field(default_factory=dict)  # page -> slot in the shared table
    copies: dict[int, tuple[int, bool]] = field(default_factory=dict)  # page -> (of, exact)
    plain: set[int] = field(default_factory=set)  # pages that use no relative links
    oversize: set[int] = field(default_factory=set)
    noise: list[tuple[bytes, bytes]] = field(default_factory=list)  # (raw, deflated)

    def add(self, extra: Extra) -> None:
        self.extras.append(extra)
        self.routes[extra.path] = -len(self.extras)
        self.by_kind.setdefault(extra.kind, []).append(extra.path)


def parse_sizes(text: str) -> list[int]:
    """`5000,40*10` -> one site of 5,000 pages and ten of 40."""
    sizes: list[int] = []
    for part in text.split(","):
        size, _, times = part.strip().partition("*")
        sizes += [int(size)] * int(times or 1)
    return sizes


def host_address(number: int) -> str:
    block, last = divmod(number - 1, 250)
    return f"127.0.{block + 1}.{last + 1}"


class World:
    """Everything that is decided by the options; bodies are made on demand."""

    def __init__(self, options: argparse.Namespace, port: int) -> None:
        self.options = options
        self.port = port
        self.seed: int = options.seed
        self.agent: str = options.robots_agent or "*"
        sizes = options.sizes or [
            options.pages * (k + 1) // options.sites - options.pages * k // options.sites for k in range(options.sites)
        ]
        if not sizes or min(sizes) < 1:
            raise SystemExit("every site needs at least one page")
        self._make_language()
        suffix = "" if port == 80 else f":{port}"
        self.sites: list[Site] = []
        for number, size in enumerate(sizes, 1):
            host = f"site{number}.synth.test" if options.names else host_address(number)
            style = "none" if options.robots_none else ROBOT_STYLES[(number - 1) % 6]
            self.sites.append(Site(number, size, host, f"http://{host}{suffix}", style))
        self.hosts = {site.host: site for site in self.sites}
        slots = itertools.count()
        for site in self.sites:
            self._make_robots(site)
            self._make_pages(site)
            self._make_extras(site, slots)
        self._make_oversize()
        self.flaky_seen = mmap.mmap(-1, max(1, next(slots)))  # shared by the processes
        self._rng = random.Random()

    # -- building ----------------------------------------------------------

    def _make_language(self) -> None:
        """A vocabulary, and a pool of sentences drawn from it Zipf-like."""
        rng = random.Random(f"language {self.seed}")
        onsets = "b c d f g h j l m n p r s t v w br cl dr fl gr pl st tr sh th".split()
        vowels = "a e i o u a e i o ai ea ou é ü ö à".split()
        codas = ["", "", "", "n", "r", "s", "l", "t", "nd", "rk", "m"]
        words: dict[str, None] = {}
        while len(words) < 12_000:
            syllables = rng.choices((1, 2, 3, 4), (15, 45, 30, 10))[0]
            words["".join(rng.choice(onsets) + rng.choice(vowels) + rng.choice(codas) for _ in range(syllables))] = None
        self.words = sorted(words, key=lambda w: (len(w) + rng.random() * 6, w))
        self.slugs = [w for w in self.words if w.isascii() and len(w) > 3]
        weights = list(itertools.accumulate(1 / (rank + 2.7) for rank in range(len(self.words))))
        lengths = rng.choices(range(5, 19), k=SENTENCES)
        stream = iter(rng.choices(self.words, cum_weights=weights, k=sum(lengths)))
        self.sentences: list[str] = []
        for length in lengths:
            self.sentences.append(" ".join(itertools.islice(stream, length)).capitalize() + ". ")
        self.filler = "".join(self.sentences[:14_000])  # about 1 MB, for huge pages

    def _make_robots(self, site: Site) -> None:
        options, lines, end = self.options, [], "\n"
        delay = [f"Crawl-delay: {options.crawl_delay:g}"] if options.crawl_delay else []
        match site.style:
            case "disallow":
                lines = ["User-agent: *", *delay, "Disallow: /private/"]
            case "allow":
                lines = ["User-agent: *", "Allow: /private/open/", "Disallow: /private/", *delay]
            case "wildcard":
                lines = ["User-agent: *", *delay, "Disallow: /*.cgi$", "Disallow: /*?*sort="]
            case "groups":
                lines = ["User-agent: OtherBot", "Disallow: /", "", "User-agent: *", "Disallow: /private/", *delay]
                if options.robots_agent:
                    lines += ["", f"User-agent: {options.robots_agent}", *delay, "Disallow: /private/", "Disallow: /members/"]
            case "tie":
                lines = [
                    "# all robots",
                    "USER-AGENT: *",
                    *delay,
                    "Disallow: /tie/ # see below",
                    "Allow: /tie/",
                    "disallow: /private",
                ]
                end = "\r\n"
            case _:
                lines = ["User-agent: *", *delay, "Disallow:"] if delay else []
        site.robots_text = end.join(lines) + end if lines else None
        if self.unavailable(site):
            site.robots = Robots("User-agent: *\nDisallow: /")
        else:
            site.robots = Robots(site.robots_text or "")

    def unavailable(self, site: Site) -> bool:
        """Sites whose robots.txt answers 503: all of it is then forbidden."""
        return site.number > len(self.sites) - int(self.options.robots_unavailable)

    def _make_pages(self, site: Site) -> None:
        """The path of each page, in the shapes that real paths have."""
        rng = random.Random(f"pages {self.seed} {site.number}")

        def word() -> str:
            return self.slugs[int(len(self.slugs) * float(rng.random()) ** 2)]

        sections, subs = [word() for _ in range(6)], [word() for _ in range(5)]
        decoys = {
            "allow": "/private/open/{}.html",
            "wildcard": "/tools/{}.cgi/info.html",
            "tie": "/tie/{}.html",
            "groups": "/otherbot/{}.html",
        }
        decoy = decoys.get(site.style, "/a/b/c/d/{}.htm")
        users = [word() for _ in range(4)]
        site.paths.append("/")
        listed = 0
        tag = word()
        for i in range(1, site.size):
            u, section, sub = rng.random(), rng.choice(sections), rng.choice(subs)
            slug = f"{word()}-{word()}-{i}"
            if u < 0.45:
                path = f"/{section}/{slug}.html"
            elif u < 0.58:
                path = f"/{section}/{sub}/{slug}/"
            elif u < 0.70:
                path = f"/{section}/{sub}/{slug}"
            elif u < 0.78:
                group, nth = divmod(listed, 6)
                tag = word() if nth == 0 else tag
                path = f"/{sections[group % 6]}/list-{group}?page={nth + 1}&tag={tag}"
                listed += 1
            elif u < 0.82:
                path = f"/~{rng.choice(users)}/{slug}.html"
            elif u < 0.86:
                path = f"/gr%C3%B6%C3%9Fe/{word()}-stra%C3%9Fe-{i}.html"
            elif u < 0.89:
                path = f"/{section}/{word()}%20{word()}%20{i}.html"
            elif u < 0.92:
                path = f"/w/Talk:{word().capitalize()}_({i})"
            elif u < 0.945:
                path = f"/find?q=caf%E9{i}"
            elif u < 0.97:
                path = f"/shop/item.php?id={i}&lang=en&view=full"
            else:
                path = decoy.format(slug)
            site.paths.append(path)
        site.routes = {path: i for i, path in enumerate(site.paths)}
        site.linked = list(site.paths)

    def _make_extras(self, site: Site, slots: Iterable[int]) -> None:
        """Redirects, dead links, forbidden pages and so on; leaves get roles."""
        rng = random.Random(f"extras {self.seed} {site.number}")
        n = site.size
        first_leaf = max(1, (n - 2) // FAN_OUT + 1)
        leaves = list(range(first_leaf, n))
        rng.shuffle(leaves)
        spare = len(leaves) // 3  # the most leaves that roles may use

        def take(count: int) -> list[int]:
            nonlocal spare
            count = max(0, min(count, spare))
            spare -= count
            return [leaves.pop() for _ in range(count)]

        for page in take(max(1, n // 250)):
            site.flaky[page] = next(iter(slots))
        for k, page in enumerate(take(max(2, n // 50))):
            # The page is reachable through the redirect only.
            final = site.paths[page]
            if k == 0 and site.number % 3 == 1:  # a chain of three
                hops = [f"/go/chain-{hop}/{page}" for hop in (1, 2, 3)] + [final]
                for (here, there), status in zip(itertools.pairwise(hops), (301, 302, 308), strict=True):
                    site.add(Extra("redirect", here, status, there))
                site.linked[page] = hops[0]
                continue
            status = (301, 302, 307, 308)[(k + site.number) % 4]
            here = f"/go/{status}/{page}"
            manner = (k + site.number) % 3
            if manner == 0:
                there = site.origin + final
            else:
                there = final if manner == 1 else relative(here, final)
            site.add(Extra("redirect", here, status, there))
            site.linked[page] = here
        site.nofollow = set(take(max(1, n // 100)))
        following = self.sites[site.number % len(self.sites)]
        site.add(Extra("redirect", "/go/next-site", 302, following.origin + "/"))
        if site.number % 4 == 2:
            site.add(Extra("redirect", "/go/round", 302, "/go/and-round"))
            site.add(Extra("redirect", "/go/and-round", 302, "/go/round"))
        for k in range(max(2, n // 50)):
            site.add(Extra("missing", f"/old/{rng.choice(self.slugs)}-{k}.html", 404))
        for k in range(max(1, n // 200)):
            site.add(Extra("gone", f"/old/gone-{k}.html", 410))
        if site.robots_text is not None and site.style != "none":
            for k in range(min(300, max(3, n // 30))):
                slug = f"{rng.choice(self.slugs)}-{k}"
                if site.style == "wildcard":
                    path = f"/tools/{slug}.cgi" if k % 2 else f"/tools/{slug}.html?by=1&sort=up"
                elif site.style == "groups" and self.options.robots_agent and k % 2:
                    path = f"/members/{slug}.html"
                elif site.style == "tie" and k % 2:
                    path = f"/private-{slug}.html"
                else:
                    path = f"/private/{slug}.html"
                site.add(Extra("forbidden", path, number=k))
                site.add(Extra("hidden", f"/hidden/{slug}.html", number=k))
            secret = site.by_kind["forbidden"][0]
            site.add(Extra("redirect", "/go/secret", 302, secret))
        for k in range(12):
            site.add(Extra("resource", f"/img/photo-{k}.jpg", media="image/jpeg", number=40_000))
        for k in range(3):
            site.add(Extra("resource", f"/files/paper-{k}.pdf", media="application/pdf", number=300_000))
        site.add(Extra("resource", "/static/site.css", media="text/css", number=9_000))
        for reason in ("comment", "script", "form", "data-attribute", "text"):
            site.add(Extra("trap", f"/trap/{reason}.html", 404))
        # Duplicates are leaves that serve the body of another leaf.
        wanted = round(self.options.duplicates * n)
        pool = [i for i in leaves if site.linked[i] == site.paths[i]]
        for k in range(min(wanted, len(pool) // 2)):
            copy, original = pool[2 * k], pool[2 * k + 1]
            site.copies[copy] = (original, k % 2 == 0)
            site.plain |= {copy, original}

    def _make_oversize(self) -> None:
        left = self.options.oversize
        for depth in range(1, max(site.size for site in self.sites)):
            for site in self.sites:
                page = site.size - depth
                if left and page > 0 and page not in site.plain:
                    site.oversize.add(page)
                    left -= 1
            if not left:
                break

    # -- links ---------------------------------------------------------------

    def _mix(self, site: Site, page: int) -> int:
        """A well-mixed number for a page: seed of its body, source of its traits."""
        x = (self.seed * 0x9E3779B1 + site.number * 0x85EBCA6B + page * 0xC2B2AE35) & 0xFFFFFFFF
        x = ((x ^ (x >> 15)) * 0x2C1B3C6D) & 0xFFFFFFFF
        x = ((x ^ (x >> 12)) * 0x297A2D39) & 0xFFFFFFFF
        return x ^ (x >> 15)

    def _href(
        self,
        rng: random.Random,
        here: Site,
        base: str,
        latin: bool,
        plain: bool,
        there: Site,
        target: str,
    ) -> str:
        """An attribute value (HTML-escaped) that a correct reader takes for `target`."""
        pick = rng.random
        url = target
        if "?" in url:
            if pick() < 0.3 and url.count("&"):
                path, _, query = url.partition("?")
                url = f"{path}?{'&'.join(reversed(query.split('&')))}"
        if pick() < 0.004:
            mark = "&" if "?" in url else "?"
            url += f"{mark}utm_source=feed&utm_medium={('rss', 'mail')[pick() < 0.5]}"
        form = pick()
        if there is not here:
            form = 0.8 if plain or form < 0.85 else 0.9 + (form - 0.85) / 2
        elif plain:
            form = 0.0
        if form < 0.45:
            pass
        elif form < 0.75:
            url = relative(base, url)
            if pick() < 0.1 and url[0] not in "./?":
                url = "./" + url
        elif form < 0.90:
            url = there.origin + url
        elif form < 0.94:
            url = there.origin[5:] + url
        elif form < 0.955:
            host = there.origin[7:]
            url = ("HTTP://", "Http://")[pick() < 0.5] + host.title() + url
        elif form < 0.97:
            detour = ("/./", "/x/../", "/a/b/../../")[int(pick() * 3)]
            url = detour + url[1:]
            if there is not here or pick() < 0.3:
                url = there.origin + url
        elif form < 0.985:
            path, mark, query = url.partition("?")
            at = path.rfind("/") + 1
            if at < len(path) and path[at] in _PLAIN and path[at].isalpha():
                path = f"{path[:at]}%{ord(path[at]):{'02X' if pick() < 0.5 else '02x'}}{path[at + 1 :]}"
            path = path.replace("~", "%7E")
            url = there.origin + path + mark + query
        else:
            port = ":80" if self.port == 80 else ""
            url = f"{there.origin}{port}{url}"
        if "%" in url and pick() < 0.5:
            if "%E9" in url:
                if latin:
                    url = url.replace("%E9", "é")  # the page's charset encodes the query
            elif "?" not in url:
                url = urllib.parse.unquote(url)  # paths are UTF-8 whatever the page is
        if pick() < 0.08:
            url += ("#top", "#section-2", "#", "#a/b?c")[int(pick() * 4)]
        if "&" in url:
            url = url.replace("&", ("&amp;", "&amp;", "&amp;", "&#38;", "&")[int(pick() * 5)])
        extra = pick()
        if extra < 0.02:
            url = (" ", "\n  ", "\t")[int(pick() * 3)] + url + ("  ", "\n", " \t")[int(pick() * 3)]
        elif extra < 0.025 and len(url) > 8 and "&" not in url:
            url = url[:5] + ("\n", "\t")[pick() < 0.5] + url[5:]  # dropped by URL parsers
        elif extra < 0.04:
            at = url.rfind("/")
            if at >= 0:
                url = url[:at] + ("&#47;", "&#x2F;")[pick() < 0.5] + url[at + 1 :]
        return url

    def _anchor(self, rng: random.Random, href: str, text: str, nofollow: bool) -> str:
        rel = (' rel="nofollow"', ' rel="noopener nofollow ugc"')[len(text) & 1] if nofollow else ""
        form = rng.random()
        if form < 0.80:
            return f'<a href="{href}"{rel}>{text}</a> '
        if form < 0.86:
            return f"<A HREF='{href}'{rel}>{text}</A>\n"
        if form < 0.90 and not re.search(r"[\s&=#]", href):
            return f"<a class=x href={href}{rel} >{text}</a>"
        if form < 0.93:
            return f'<map name="m"><area shape="rect" coords="0,0,9,9" href="{href}"{rel} alt="{text}"></map>'
        return f'<a class="more link" title="{text} &raquo;"\n   href = "{href}"{rel}><b>{text}</b></a> '

    # -- bodies --------------------------------------------------------------

    def _static(self, site: Site) -> list[tuple[bytes, bytes]]:
        """The site's own noise: style and script, then navigation, then footer."""
        if site.noise:
            return site.noise
        rng = random.Random(f"noise {self.seed} {site.number}")

        def word() -> str:
            return rng.choice(self.slugs)

        style = "".join(
            f".{word()} .{word()}{{margin:{rng.randrange(40)}px {rng.randrange(40)}px;color:#{rng.randrange(1 << 24):06x}}}\n"
            for _ in range(122)
        )
        script = "".join(
            f"function {word()}_{k}(a,b){{if(a<b&&b>{rng.randrange(99)}){{return a['{word()}']}}"
            f'var t="{word()} {word()}";return t.length*{rng.random():.4f}}}\n'
            for k in range(76)
        )
        head = (
            '<link rel="stylesheet" href="/static/site.css">\n<link rel="icon" href="/img/photo-0.jpg">\n'
            f"<style>\n{style}</style>\n<script>\n{script}"
            "document.write('<a href=\"/trap/script.html\">x</a>');\n</script>\n</head>\n"
        )
        following = self.sites[site.number % len(self.sites)]
        menu = [
            (site.linked[i], self.slugs[(site.number * 31 + i) % 999]) for i in range(min(7, site.size)) if i not in site.nofollow
        ]
        menu += [(path, "members") for path in site.by_kind.get("forbidden", [])[:2]]
        items = "".join(
            f'<li class="item item-{k}"><a href="{html.escape(path)}">{label}</a></li>\n' for k, (path, label) in enumerate(menu)
        )
        prose = "".join(rng.choices(self.sentences, k=11))
        nav = (
            f'<body class="site-{site.number}">\n<!-- <a href="/trap/comment.html">old menu</a> -->\n'
            f'<header><a href="/"><img src="/img/photo-1.jpg" alt="logo"></a>\n<nav><ul>\n{items}</ul></nav>\n'
            '<form action="/trap/form.html" method="get"><input name="q"><button>Go</button></form>\n'
            f'</header>\n<aside data-href="/trap/data-attribute.html"><p>{prose}</p></aside>\n'
        )
        footer = (
            f"<footer><p>{''.join(rng.choices(self.sentences, k=10))}</p>\n"
            f'<a href="{following.origin}/">partner</a> <a href="/go/next-site">next</a>\n'
            f'<a href="mailto:info@{site.host}">mail</a> <a href="tel:+49-30-1234">call</a>\n'
            '<a href="javascript:void(0)">menu</a> <a href="data:text/html,hi">data</a>\n'
            '<a href="#top">up</a> <a name="end">end</a> <a>plain</a> <a href="/files/paper-0.pdf">PDF</a>\n'
            "<p>See /trap/text.html for more.</p></footer>\n</body>\n</html>\n"
        )
        for text in (head, nav + "<main>\n", "</main>\n" + footer):
            raw = text.encode("ascii", "xmlcharrefreplace")
            site.noise.append((raw, _flushed(zlib.compressobj(6, zlib.DEFLATED, -15), raw)))
        return site.noise

    def charset(self, site: Site, page: int) -> tuple[str, bool]:
        """(encoding, byte order mark) of a page."""
        return (
            ("iso-8859-1", False),
            ("windows-1252", False),
            ("utf-8", True),
            ("utf-8", False),
            ("utf-8", False),
            ("utf-8", False),
            ("utf-8", False),
            ("utf-8", False),
        )[self._mix(site, page) >> 8 & 7]

    def page_parts(self, site: Site, page: int) -> tuple[list[tuple[bytes, bytes | None]], str]:
        """The body of a page in pieces, each with its deflated form if known; its type."""
        source, near = page, False
        if page in site.copies:
            source, exact = site.copies[page]
            near = not exact
        traits = self._mix(site, source)
        rng = self._rng
        rng.seed(traits)
        pick = rng.random
        n, path = site.size, site.paths[source]
        encoding, bom = self.charset(site, source)
        latin = encoding != "utf-8"
        plain = source in site.plain
        base = path.partition("?")[0]
        base_tag = ""
        if traits % 19 == 7 and not plain:
            # Another page, one above the leaves: "#top" then means that page, which is in the truth set.
            other = site.paths[int(max(1, (n - 2) // FAN_OUT + 1) * pick())]
            base = other.partition("?")[0]
            base_tag = f'<base href="{html.escape(other if pick() < 0.5 else site.origin + other)}">\n'
        words = len(self.words)
        title = " ".join(self.words[int(words * pick() ** 2)] for _ in range(3 + traits % 4)).title()
        label = "text/html"
        meta = ""
        if traits & 3 or bom:  # three of four say it in the header, the others in a <meta>
            label += ("; charset=", ";charset=")[traits >> 4 & 1] + encoding
        else:
            meta = (
                f'<meta charset="{encoding}">\n'
                if traits & 16
                else f'<meta http-equiv="Content-Type" content="text/html; charset={encoding}">\n'
            )
        canonical = site.origin + html.escape(path)
        sentences = self.sentences
        first = sentences[traits & 0xFFFF]
        head = (
            f'<!DOCTYPE html>\n<html lang="en">\n<head>\n{meta}{base_tag}<title>{title} | {site.host}</title>\n'
            f'<meta name="description" content="{first}">\n'
            f'<meta name="viewport" content="width=device-width">\n<link rel="canonical" href="{canonical}">\n'
        )
        # Links: to the children in the tree, to the next of a list, then at random.
        count = max(4, min(60, int(25 * math.exp(rng.gauss(0.0, 0.5)))))
        anchors: list[str] = []
        add = anchors.append
        slugs, sites = self.slugs, self.sites
        slug_count, site_count = len(slugs), len(sites)

        def link(there: Site, target: str, nofollow: bool = False) -> None:
            href = self._href(rng, site, base, latin, plain, there, target)
            add(self._anchor(rng, href, slugs[int(slug_count * pick())], nofollow))

        for child in range(FAN_OUT * source + 1, min(n, FAN_OUT * source + FAN_OUT + 1)):
            link(site, site.linked[child], child in site.nofollow)
        if "/list-" in path and "page=" in path:
            stem, _, rest = path.partition("page=")
            step = f"{stem}page={int(rest[0]) % 6 + 1}{rest[1:]}"
            if step in site.routes and site.linked[site.routes[step]] == step and site.routes[step] not in site.nofollow:
                link(site, step)
        kinds = site.by_kind
        while len(anchors) < count:
            u = pick()
            if u < 0.15 and site_count > 1:
                there = sites[int(site_count * pick())]
            elif u < 0.235:
                there = site
                if u < 0.17:
                    link(site, rng.choice(kinds["missing"] if pick() < 0.8 else kinds["gone"]))
                elif u < 0.19:  # a third of them on other sites, whose robots.txt may not be known yet
                    there = sites[int(site_count * pick())] if pick() < 0.33 else site
                    if "forbidden" in there.by_kind:
                        link(there, rng.choice(there.by_kind["forbidden"]))
                elif u < 0.195:
                    link(
                        site,
                        (
                            "/go/next-site",
                            "/go/secret" if "forbidden" in kinds else "/go/next-site",
                            "/go/round" if site.number % 4 == 2 else "/go/next-site",
                        )[int(pick() * 3)],
                    )
                elif u < 0.205:
                    link(site, rng.choice(kinds["resource"][:15]))
                else:
                    add(f'<img src="/img/photo-{int(pick() * 12)}.jpg" alt="{slugs[int(slug_count * pick())]}">')
                continue
            else:
                there = site
            target = int(there.size * pick() ** 2.5)
            link(there, there.linked[target], target in there.nofollow)
        # The article: sentences, links in between, a heading now and then.
        total = min(6000, max(60, int(600 * math.exp(rng.gauss(0.0, 0.8))))) // 11
        if near:
            total += 1
        numbers = array("H")
        numbers.frombytes(rng.randbytes(2 * total))
        text = [sentences[k] for k in numbers]
        body = [f'<article>\n<h1 id="top">{title}</h1>\n<p class="lead">{first}</p>\n<p>']
        between = max(1, len(text) // (len(anchors) + 1))
        at = 0
        for k, anchor in enumerate(anchors):
            body += text[at : at + between]
            body.append(anchor)
            at += between
            if k % 5 == 4:
                body.append(f'</p>\n<h2 id="section-{k // 5 + 1}">{slugs[int(slug_count * pick())]}</h2>\n<p>')
        body += text[at:]
        body.append("</p>\n</article>\n")
        if traits % 40 == 11:  # heavy pages: 60 to 170 kB of embedded data
            size = 60_000 + int(pick() * 110_000)
            at = int(pick() * 800_000)
            body.append(f'<script type="application/json">{{"data":"{self.filler[at : at + size]}"}}</script>\n')
        if page in site.oversize:
            size = 520_000 + int(pick() * 300_000)
            body.append(f"<p>{self.filler[:size]}</p>\n")
        head_raw = head.encode(encoding, "xmlcharrefreplace")
        if bom:
            head_raw = b"\xef\xbb\xbf" + head_raw
        noise = self._static(site)
        parts: list[tuple[bytes, bytes | None]] = [
            (head_raw, None),
            noise[0],
            noise[1],
            ("".join(body).encode(encoding, "xmlcharrefreplace"), None),
            noise[2],
        ]
        return parts, label

    def extra_body(self, site: Site, extra: Extra) -> bytes:
        """Small pages besides the truth set; a forbidden one links to a hidden one."""
        more = ""
        if extra.kind == "forbidden":
            more = f'<a href="/hidden/{site.by_kind["hidden"][extra.number].rpartition("/")[2]}">hidden</a>'
        return (
            f"<!DOCTYPE html><html><head><title>{extra.kind}</title></head>"
            f"<body><h1>{extra.kind}</h1><p>{self.sentences[7]}</p>{more}</body></html>"
        ).encode("ascii", "xmlcharrefreplace")

    # -- truth ---------------------------------------------------------------

    def truth_pages(self, site: Site) -> Iterable[int]:
        """Numbers of the pages that a correct crawler fetches."""
        skip = site.nofollow if self.options.nofollow == "skip" else ()
        if self.unavailable(site):
            return []
        return [i for i in range(site.size) if i not in skip]

    def truth(self, urls: bool) -> dict[str, Any]:
        report: dict[str, Any] = {
            "seeds": [site.origin + "/" for site in self.sites],
            "pages": sum(len(list(self.truth_pages(site))) for site in self.sites),
            "sites": [
                {
                    "host": s.host,
                    "pages": len(list(self.truth_pages(s))),
                    "robots": s.style,
                    "forbidden": len(s.by_kind.get("forbidden", [])),
                    "redirects": len(s.by_kind["redirect"]),
                    "flaky": len(s.flaky),
                }
                for s in self.sites
            ],
            "duplicates": [
                {"url": s.origin + s.paths[i], "of": s.origin + s.paths[j], "exact": exact}
                for s in self.sites
                for i, (j, exact) in s.copies.items()
            ],
            "oversize": [s.origin + s.paths[i] for s in self.sites for i in sorted(s.oversize)],
            "flaky": [s.origin + s.paths[i] for s in self.sites for i in sorted(s.flaky)],
        }
        if urls:
            report["urls"] = [s.origin + s.paths[i] for s in self.sites for i in self.truth_pages(s)]
        return report


def _flushed(packer: Any, raw: bytes) -> bytes:
    """Raw deflate of `raw` that ends on a byte and refers to nothing before it."""
    return b"".join((packer.compress(raw), packer.flush(zlib.Z_FULL_FLUSH)))


def pack(parts: list[tuple[bytes, bytes | None]], how: str) -> bytes:
    """gzip or zlib form of the parts; the known deflated forms are reused."""
    packer = zlib.compressobj(1, zlib.DEFLATED, -15)
    out = [b"\x1f\x8b\x08\0\0\0\0\0\0\xff" if how == "gzip" else b"\x78\x9c"]
    check = 0 if how == "gzip" else 1
    size = 0
    sum_of = zlib.crc32 if how == "gzip" else zlib.adler32
    for raw, deflated in parts:
        out.append(deflated if deflated is not None else _flushed(packer, raw))
        check = sum_of(raw, check)
        size += len(raw)
    out.append(b"\x03\x00")
    if how == "gzip":
        out.append(check.to_bytes(4, "little") + (size & 0xFFFFFFFF).to_bytes(4, "little"))
    else:
        out.append(check.to_bytes(4, "big"))
    return b"".join(out)


# --------------------------------------------------------------------------
# The log and the score
# --------------------------------------------------------------------------


class Entry(NamedTuple):
    start: float
    end: float
    method: str
    site: int  # index into World.sites, -1 for an unknown host
    target: str
    status: int
    size: int
    agent: str
    complete: bool


class Log:
    """Requests in parallel arrays: about 60 bytes each and each string once."""

    def __init__(self) -> None:
        self.times = array("d")  # start, end, start, end, ...
        self.numbers = array("q")  # see add()
        self.strings: dict[str, int] = {}

    def _string(self, text: str) -> int:
        return self.strings.setdefault(text, len(self.strings))

    def add(
        self,
        method: str,
        site: int,
        target: str,
        status: int,
        start: float,
        end: float,
        size: int,
        agent: str,
        complete: bool = True,
    ) -> int:
        self.times.append(start)
        self.times.append(end)
        self.numbers.extend(
            (
                self._string(method),
                site,
                self._string(target),
                status,
                size,
                self._string(agent),
                complete,
            )
        )
        return len(self.times) // 2 - 1

    def abort(self, index: int, end: float) -> None:
        if 2 * index < len(self.times):  # else the log was reset meanwhile
            self.times[2 * index + 1] = end
            self.numbers[7 * index + 6] = 0

    def entries(self) -> list[Entry]:
        strings, numbers, times = list(self.strings), self.numbers, self.times
        return [
            Entry(
                times[2 * i],
                times[2 * i + 1],
                strings[numbers[7 * i]],
                numbers[7 * i + 1],
                strings[numbers[7 * i + 2]],
                numbers[7 * i + 3],
                numbers[7 * i + 4],
                strings[numbers[7 * i + 5]],
                bool(numbers[7 * i + 6]),
            )
            for i in range(len(times) // 2)
        ]

    def clear(self) -> None:
        self.__init__()  # type: ignore[misc]


def wrong_reason(target: str) -> str:
    """A guess at what went wrong, for the reader of the score."""
    if target.startswith("/trap/"):
        return target[6:].partition(".")[0]
    if "#" in target:
        return "fragment sent"
    if "amp;" in target or "&#" in target or "%26%23" in target or "&%23" in target:
        return "entity not decoded"
    if target.startswith("/find?") and "%C3%A9" in target.upper():
        return "query not in the page's charset"
    if not target.isascii() or re.search(r"%F6|%DF", target, re.IGNORECASE):
        return "path not UTF-8 escaped"
    if "/../" in target or "/./" in target:
        return "dot segments sent"
    if re.search(r"%0[9AD]|^/?(%20)+|(%20)+$", target, re.IGNORECASE):
        return "white space kept"
    return "resolution"


def score(world: World, entries: list[Entry], examples: int = 20) -> dict[str, Any]:
    """Compare what was asked for with the truth; see the head of this file."""
    entries = sorted(entries)
    sites = world.sites
    origin_time = entries[0].start if entries else 0.0
    truth = [set(world.truth_pages(site)) for site in sites]
    fetched: list[dict[int, float]] = [{} for _ in sites]
    seen: dict[tuple[int, int], list[set[str]]] = {}
    count: collections.Counter[str] = collections.Counter()
    statuses: collections.Counter[str] = collections.Counter()
    agents: collections.Counter[str] = collections.Counter()
    wrong_by: collections.Counter[str] = collections.Counter()
    wrong_urls: list[list[str]] = []
    forbidden_urls: list[str] = []
    repeated_urls: list[str] = []
    robots_requests = [0] * len(sites)
    starts: list[list[float]] = [[] for _ in sites]
    all_starts: list[list[float]] = [[] for _ in sites]
    flights: list[list[tuple[float, int]]] = [[] for _ in sites]
    order: list[tuple[float, int]] = []  # first fetches of truth pages

    def wrong(url: str, reason: str) -> None:
        count["wrong"] += 1
        wrong_by[reason] += 1
        if len(wrong_urls) < examples:
            wrong_urls.append([url, reason])

    for entry in entries:
        statuses[str(entry.status)] += 1
        agents[entry.agent] += 1
        count["bytes"] += entry.size
        count["heads"] += entry.method == "HEAD"
        if entry.site < 0:
            wrong(entry.target, "unknown host")
            continue
        s, site = entry.site, sites[entry.site]
        all_starts[s].append(entry.start)
        flights[s] += [(entry.start, 1), (entry.end, -1)]
        if entry.target == "/robots.txt":
            robots_requests[s] += 1
            continue
        starts[s].append(entry.start)
        normal = normal_escapes(entry.target)
        stripped = without_tracking(normal)
        key = sorted_query(stripped)
        code = site.routes.get(key)
        url = site.origin + entry.target
        if not site.robots.allowed(normal, world.agent):
            count["forbidden"] += 1
            if len(forbidden_urls) < examples:
                forbidden_urls.append(url)
            continue
        if code is None:
            if key.startswith(WELL_KNOWN):
                count["well_known"] += 1
            else:
                wrong(url, wrong_reason(entry.target))
            continue
        if code < 0:
            extra = site.extras[-code - 1]
            count[extra.kind] += 1
            if extra.kind == "hidden":
                wrong(url, "linked from forbidden pages only")
            elif extra.kind == "trap":
                wrong(url, wrong_reason(entry.target))
            elif extra.kind == "resource" and entry.method == "GET":
                count["in_vain" if entry.complete else "aborted"] += 1
            continue
        if code not in truth[s]:
            wrong(url, "nofollow")
            continue
        if entry.method != "GET" or entry.status not in (200, 304):
            continue
        if code not in fetched[s]:
            fetched[s][code] = entry.end - origin_time
            order.append((entry.end, s))
        if entry.status == 304:
            count["not_modified"] += 1
            continue
        spellings = (entry.target, normal, stripped)
        known = seen.get((s, code))
        if known is None:
            seen[s, code] = [{spelling} for spelling in spellings]
            continue
        if entry.target in known[0]:
            count["repeats"] += 1
            count["repeats_identical"] += 1
        elif normal in known[1]:
            count["repeats"] += 1
            count["repeats_escapes"] += 1
        elif stripped in known[2]:
            count["repeats_tracking"] += 1
        else:
            count["repeats_order"] += 1
        if len(repeated_urls) < examples:
            repeated_urls.append(url)
        for group, spelling in zip(known, spellings, strict=True):
            group.add(spelling)

    missed_urls = [sites[s].origin + sites[s].paths[i] for s in range(len(sites)) for i in sorted(truth[s] - set(fetched[s]))]
    order.sort()
    rank_of_last: dict[int, int] = {}
    done = [0] * len(sites)
    for rank, (_, s) in enumerate(order):
        done[s] += 1
        rank_of_last[s] = rank + 1 - done[s]  # pages of the other sites fetched by then
    per_site: list[dict[str, Any]] = []
    for s, site in enumerate(sites):
        flying = most = 0
        for _, change in sorted(flights[s]):
            flying += change
            most = max(most, flying)
        per_site.append(
            {
                "host": site.host,
                "truth": len(truth[s]),
                "pages": len(fetched[s]),
                "requests": len(all_starts[s]),
                "robots_requests": robots_requests[s],
                "least_gap_s": _least_gap(starts[s]),
                "least_gap_with_robots_s": _least_gap(all_starts[s]),
                "most_in_flight": most,
                "last_page_s": round(max(fetched[s].values()), 4) if fetched[s] else None,
                "others_then": rank_of_last.get(s, 0),
            }
        )
    gaps = [row["least_gap_s"] for row in per_site if row["least_gap_s"] is not None]
    return {
        "truth": sum(map(len, truth)),
        "pages": len(order),
        "missed": len(missed_urls),
        "forbidden": count["forbidden"],
        "wrong": count["wrong"],
        "repeats": count["repeats"],
        "repeats_by": {"identical": count["repeats_identical"], "escapes": count["repeats_escapes"]},
        "repeats_tracking": count["repeats_tracking"],
        "repeats_order": count["repeats_order"],
        "in_vain": count["in_vain"],
        "aborted": count["aborted"],
        "requests": len(entries),
        "heads": count["heads"],
        "not_modified": count["not_modified"],
        "redirects": count["redirect"],
        "dead_links": count["missing"] + count["gone"],
        "well_known": count["well_known"],
        "robots": {
            "sites": sum(map(bool, robots_requests)),
            "requests": sum(robots_requests),
            "repeats": sum(max(0, n - 1) for n in robots_requests),
        },
        "bytes": count["bytes"],
        "status": dict(sorted(statuses.items())),
        "agents": dict(agents.most_common(5)),
        "wall_s": round(max(e.end for e in entries) - origin_time, 4) if entries else 0.0,
        "progress_s": {
            str(tenth * 10): round(order[len(order) * tenth // 10 - 1][0] - origin_time, 4)
            for tenth in range(1, 11)
            if len(order) >= 10
        },
        "least_gap_s": min(gaps, default=None),
        "most_in_flight": max((row["most_in_flight"] for row in per_site), default=0),
        "wrong_by": dict(wrong_by.most_common()),
        "wrong_urls": wrong_urls,
        "forbidden_urls": forbidden_urls,
        "repeated_urls": repeated_urls,
        "missed_urls": missed_urls[:examples],
        "sites": per_site,
    }


def _least_gap(starts: list[float]) -> float | None:
    gaps = [b - a for a, b in itertools.pairwise(sorted(starts))]
    return round(min(gaps), 6) if gaps else None


# --------------------------------------------------------------------------
# The server
# --------------------------------------------------------------------------

REASONS = {
    200: b"OK",
    301: b"Moved Permanently",
    302: b"Found",
    304: b"Not Modified",
    307: b"Temporary Redirect",
    308: b"Permanent Redirect",
    400: b"Bad Request",
    404: b"Not Found",
    405: b"Method Not Allowed",
    410: b"Gone",
    421: b"Misdirected Request",
    500: b"Internal Server Error",
    503: b"Service Unavailable",
}
Headers = dict[bytes, bytes]


class Connection(asyncio.Protocol):
    """HTTP/1.1 as far as needed: one request at a time, keep-alive, no bodies."""

    transport: asyncio.Transport

    def __init__(self) -> None:
        self.buffer = b""
        self.busy = False
        self.open = True

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.open = False

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if not self.busy:
            self.next_request()

    def next_request(self) -> None:
        while self.open and not self.busy:
            head, mark, rest = self.buffer.partition(b"\r\n\r\n")
            if not mark:
                return
            self.buffer = rest
            line, *fields = head.split(b"\r\n")
            try:
                method, target, version = line.split(b" ")
            except ValueError:  # e.g. a raw space in the target
                method, target, version = b"BAD", line, b"HTTP/1.0"
            headers: Headers = {}
            for item in fields:
                name, _, value = item.partition(b":")
                headers[name.lower()] = value.strip()
            if b"content-length" in headers:  # bodies are of no interest here
                self.buffer = self.buffer[int(headers[b"content-length"] or 0) :]
            keep = version == b"HTTP/1.1" and headers.get(b"connection", b"").lower() != b"close"
            self.handle(method.decode("latin-1"), target.decode("latin-1"), headers, keep)

    def handle(self, method: str, target: str, headers: Headers, keep: bool) -> None:
        raise NotImplementedError

    def send(self, status: int, fields: bytes, body: bytes, keep: bool, head_only: bool = False) -> int:
        """Write a response with a Content-Length; the number of bytes written."""
        if status != 304:
            fields += b"Content-Length: %d\r\n" % len(body)
        out = b"HTTP/1.1 %d %s\r\nServer: synthweb\r\n%sConnection: %s\r\n\r\n%s" % (
            status,
            REASONS[status],
            fields,
            b"keep-alive" if keep else b"close",
            b"" if head_only else body,
        )
        self.transport.write(out)
        if not keep:
            self.transport.close()
            self.open = False
        return len(out)


class WebConnection(Connection):
    """Serves the pages of the world and logs the requests."""

    def __init__(self, world: World, log: Log, loop: asyncio.AbstractEventLoop) -> None:
        super().__init__()
        self.world, self.log, self.loop = world, log, loop
        self.pending: tuple[int, asyncio.TimerHandle] | None = None  # log index, rest of a resource

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if self.pending:
            index, timer = self.pending
            timer.cancel()
            self.log.abort(index, time.monotonic())

    def handle(self, method: str, target: str, headers: Headers, keep: bool) -> None:
        start = time.monotonic()
        latency = self.world.options.latency_ms / 1000
        if latency:
            self.busy = True
            self.loop.call_later(latency, self.later, method, target, headers, keep, start)
        else:
            self.answer(method, target, headers, keep, start)

    def later(self, method: str, target: str, headers: Headers, keep: bool, start: float) -> None:
        self.busy = False
        self.answer(method, target, headers, keep, start)
        self.next_request()

    def answer(self, method: str, target: str, headers: Headers, keep: bool, start: float) -> None:
        world = self.world
        host = headers.get(b"host", b"").decode("latin-1").lower().partition(":")[0]
        site = world.hosts.get(host)
        agent = headers.get(b"user-agent", b"").decode("latin-1")
        number = site.number - 1 if site else -1
        head_only = method == "HEAD"
        if site is None or method not in ("GET", "HEAD"):
            status = 421 if site is None else 400 if method == "BAD" else 405
            shown = target if site else f"//{host}{target}"
            self.log.add(method, number, shown, status, start, start, self.send(status, b"", b"", keep), agent)
            return
        if not self.open:  # the client left during the latency
            self.log.add(method, number, target, 0, start, time.monotonic(), 0, agent, False)
            return
        code = site.routes.get(target)
        if code is None:
            code = site.routes.get(sorted_query(without_tracking(normal_escapes(target))))
        fields, body, status = b"Content-Type: text/html; charset=utf-8\r\n", b"", 200
        if code is not None and code >= 0:
            slot = site.flaky.get(code)
            if slot is None or world.flaky_seen[slot]:
                status, size, keep = self.page(site, code, headers, keep, head_only)
                self.log.add(method, number, target, status, start, time.monotonic(), size, agent)
                return
            if not head_only:
                world.flaky_seen[slot] = 1
            status, body = 500, b"<html><body>try again</body></html>"
        elif code is not None:
            extra = site.extras[-code - 1]
            status = extra.status
            if extra.kind == "redirect":
                fields += b"Location: " + extra.location.encode("ascii") + b"\r\n"
            elif extra.kind == "resource":
                self.resource(extra, method, number, target, start, agent, keep)
                return
            body = world.extra_body(site, extra)
        elif target == "/robots.txt":
            fields = b"Content-Type: text/plain; charset=utf-8\r\n"
            if world.unavailable(site):
                status = 503
            elif site.robots_text is None:
                status = 404
            else:
                body = site.robots_text.encode()
        else:
            status, body = 404, b"<html><body>not here</body></html>"
        size = self.send(status, fields, body, keep, head_only)
        self.log.add(method, number, target, status, start, time.monotonic(), size, agent)

    def page(self, site: Site, page: int, headers: Headers, keep: bool, head_only: bool) -> tuple[int, int, bool]:
        """Answer with a page; (status, bytes, whether the connection stays)."""
        world = self.world
        tag = b'"%d-%d-%d"' % (world.seed, site.number, page)
        stamp = EPOCH + 3600 * page
        fields = b"ETag: %s\r\nLast-Modified: %s\r\n" % (tag, email.utils.formatdate(stamp, usegmt=True).encode())
        if b"if-none-match" in headers:
            fresh = tag in headers[b"if-none-match"]
        elif b"if-modified-since" in headers:
            try:
                since = email.utils.parsedate_to_datetime(headers[b"if-modified-since"].decode("latin-1"))
                fresh = stamp <= since.timestamp()
            except ValueError:
                fresh = False
        else:
            fresh = False
        if fresh:
            return 304, self.send(304, fields, b"", keep), keep
        parts, label = world.page_parts(site, page)
        fields += b"Content-Type: %s\r\nVary: Accept-Encoding\r\n" % label.encode()
        how = ("", "gzip", "gzip", "gzip", "deflate")[site.number % 5]
        if how and how.encode() in headers.get(b"accept-encoding", b""):
            body = pack(parts, how)
            fields += b"Content-Encoding: %s\r\n" % how.encode()
        else:
            body = b"".join([raw for raw, _ in parts])
        manner = world._mix(site, page) >> 12
        if manner % 41 == 1:  # the end of the connection is the end of the body
            out = b"HTTP/1.1 200 OK\r\nServer: synthweb\r\n%sConnection: close\r\n\r\n%s" % (fields, b"" if head_only else body)
            self.transport.write(out)
            self.transport.close()
            self.open = False
            return 200, len(out), False
        if manner % 5 == 0 and keep:  # chunked
            half = len(body) // 2
            out = b"HTTP/1.1 200 OK\r\nServer: synthweb\r\n%sTransfer-Encoding: chunked\r\n\r\n" % fields
            if not head_only:
                out += b"%x\r\n%s\r\n%X;ext=1\r\n%s\r\n0\r\n\r\n" % (half, body[:half], len(body) - half, body[half:])
            self.transport.write(out)
            return 200, len(out), True
        return 200, self.send(200, fields, body, keep, head_only), keep

    def resource(self, extra: Extra, method: str, number: int, target: str, start: float, agent: str, keep: bool) -> None:
        """A PDF, image or CSS: the first bytes at once, the rest after a pause."""
        fields = b"Content-Type: %s\r\n" % extra.media.encode()
        body = (b"%PDF-1.4\n" if extra.media.endswith("pdf") else b"\xff\xd8\xff\xe0").ljust(extra.number, b"\0")
        if method == "HEAD":
            size = self.send(200, fields, body, keep, True)
            self.log.add(method, number, target, 200, start, time.monotonic(), size, agent)
            return
        self.transport.write(
            b"HTTP/1.1 200 OK\r\n%sContent-Length: %d\r\nConnection: %s\r\n\r\n%s"
            % (fields, len(body), b"keep-alive" if keep else b"close", body[:4096])
        )
        index = self.log.add(method, number, target, 200, start, start + RESOURCE_PAUSE, len(body), agent)
        self.busy = True

        def finish() -> None:
            self.pending = None
            self.transport.write(body[4096:])
            self.busy = False
            if keep:
                self.next_request()
            else:
                self.transport.close()

        self.pending = index, self.loop.call_later(RESOURCE_PAUSE, finish)


def process_stats(log: Log, cpu_before: float) -> dict[str, float]:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "requests": len(log.times) // 2,
        "cpu_s": usage.ru_utime + usage.ru_stime - cpu_before,
        "max_rss_mb": usage.ru_maxrss / 1024,
    }


def cpu_seconds() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


class Worker:
    """One event loop that serves; the parent may be the only one."""

    def __init__(self, world: World) -> None:
        self.world, self.log = world, Log()
        self.cpu_before = cpu_seconds()

    def listen(self, loop: asyncio.AbstractEventLoop, sockets: list[socket.socket]) -> None:
        for sock in sockets:
            loop.run_until_complete(loop.create_server(lambda: WebConnection(self.world, self.log, loop), sock=sock, backlog=512))

    def command(self, name: str) -> Any:
        if name == "log":
            return self.log
        if name == "stats":
            return process_stats(self.log, self.cpu_before)
        if name == "reset":
            self.log.clear()
            self.world.flaky_seen[:] = bytes(len(self.world.flaky_seen))
            self.cpu_before = cpu_seconds()
        return None


def worker_process(world: World, sockets: list[socket.socket], pipe: multiprocessing.connection.Connection) -> None:
    """Body of a further serving process (--processes)."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    loop = asyncio.new_event_loop()
    worker = Worker(world)
    worker.listen(loop, sockets)

    def on_command() -> None:
        try:
            pipe.send(worker.command(pipe.recv()))
        except EOFError:  # the parent is gone
            loop.stop()

    loop.add_reader(pipe.fileno(), on_command)
    loop.run_forever()


class Control(Connection):
    """The control port."""

    def __init__(self, service: Service) -> None:
        super().__init__()
        self.service = service

    def handle(self, method: str, target: str, headers: Headers, keep: bool) -> None:
        path, _, query = target.partition("?")
        service = self.service
        answer: Any = None
        if path == "/-/reset" and method == "POST":
            service.ask("reset")
            answer = {"reset": True}
        elif path == "/-/score":
            answer = service.score()
        elif path == "/-/stats":
            answer = service.stats()
        elif path == "/-/truth":
            answer = service.world.truth("urls=1" in query)
        elif path == "/-/log":
            answer = [list(entry) for entry in service.entries()]
        body = json.dumps(answer, indent=1 if path != "/-/log" else None).encode() + b"\n"
        self.send(200 if answer is not None else 404, b"Content-Type: application/json\r\n", body, keep)


class Service:
    """All processes of one synthetic web, as seen from the parent."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.loop = asyncio.new_event_loop()
        count = len(options.sizes) if options.sizes else options.sites
        addresses = [options.bind] if options.names else [host_address(k + 1) for k in range(count)]
        self.port = self._free_port(addresses, options.port)
        self.world = World(options, self.port)
        control = socket.create_server((options.bind, options.control_port))
        self.control_port: int = control.getsockname()[1]
        self.pipes: list[multiprocessing.connection.Connection] = []
        self.children: list[Any] = []
        fork = multiprocessing.get_context("fork")
        for _ in range(options.processes if options.processes > 1 else 0):
            ours, theirs = fork.Pipe()
            sockets = [self._bind(address, self.port) for address in addresses]
            child = fork.Process(target=worker_process, args=(self.world, sockets, theirs), daemon=True)
            child.start()
            for sock in sockets:
                sock.close()
            self.pipes.append(ours)
            self.children.append(child)
        self.worker = Worker(self.world)
        if not self.children:
            self.worker.listen(self.loop, [self._bind(address, self.port) for address in addresses])
        for sock in self._held:
            sock.close()
        self.loop.run_until_complete(self.loop.create_server(lambda: Control(self), sock=control))

    @staticmethod
    def _bind(address: str, port: int) -> socket.socket:
        sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        sock.bind((address, port))
        sock.setblocking(False)
        return sock

    def _free_port(self, addresses: list[str], wanted: int) -> int:
        """A port that is free on all addresses; held until the servers listen."""
        for _ in range(50):
            self._held = [self._bind(addresses[0], wanted)]
            port: int = self._held[0].getsockname()[1]
            try:
                self._held += [self._bind(address, port) for address in addresses[1:]]
                return port
            except OSError:
                for sock in self._held:
                    sock.close()
                if wanted:
                    raise
        raise SystemExit("no free port")

    def ask(self, name: str) -> list[Any]:
        if not self.pipes:
            return [self.worker.command(name)]
        for pipe in self.pipes:
            pipe.send(name)
        return [pipe.recv() for pipe in self.pipes]

    def entries(self) -> list[Entry]:
        return [entry for log in self.ask("log") for entry in log.entries()]

    def score(self) -> dict[str, Any]:
        return score(self.world, self.entries())

    def stats(self) -> dict[str, Any]:
        rows = self.ask("stats")
        requests, cpu = sum(row["requests"] for row in rows), sum(row["cpu_s"] for row in rows)
        return {
            "requests": requests,
            "cpu_s": round(cpu, 4),
            "cpu_us_per_request": round(1e6 * cpu / requests, 1) if requests else None,
            "max_rss_mb": round(max(row["max_rss_mb"] for row in rows), 1),
            "processes": len(rows),
        }

    def ready(self) -> dict[str, Any]:
        return {
            "pid": os.getpid(),
            "port": self.port,
            "control": f"http://127.0.0.1:{self.control_port}",
            "pages": sum(len(list(self.world.truth_pages(s))) for s in self.world.sites),
            "seeds": [site.origin + "/" for site in self.world.sites],
        }

    def close(self) -> None:
        for child in self.children:
            child.terminate()
            child.join()


def write_atomically(path: str, text: str) -> None:
    with open(path + ".part", "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(path + ".part", path)


def serve(options: argparse.Namespace) -> None:
    service = Service(options)
    ready = json.dumps(service.ready())
    if options.ready_file:
        write_atomically(options.ready_file, ready + "\n")
    print(ready, flush=True)
    for number in (signal.SIGTERM, signal.SIGINT):
        service.loop.add_signal_handler(number, service.loop.stop)
    service.loop.run_forever()
    if options.score_file:
        write_atomically(options.score_file, json.dumps(service.score() | {"server": service.stats()}, indent=1) + "\n")
    service.close()


# --------------------------------------------------------------------------
# Self-test: a reference crawler, and broken ones that must be caught
# --------------------------------------------------------------------------


def remove_dot_segments(path: str) -> str:
    out: list[str] = []
    parts = path.split("/")
    for k, part in enumerate(parts):
        if part == "..":
            if len(out) > 1:
                out.pop()
        elif part != ".":
            out.append(part)
        if part in (".", "..") and k == len(parts) - 1:
            out.append("")
    return "/".join(out) or "/"


class LinkParser(html.parser.HTMLParser):
    """href of <a> and <area>, and the first <base>."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.links: list[str] = []
        self.base: str | None = None

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        href = dict(attrs).get("href")
        if href is None:
            return
        if tag in ("a", "area"):
            self.links.append(href)
        elif tag == "base" and self.base is None:
            self.base = href


class ReferenceCrawler:
    """Slow and correct; each flag breaks it in one way."""

    def __init__(self, seeds: list[str], broken: str = "") -> None:
        self.broken = broken
        self.robots: dict[str, Robots] = {}
        self.seen: set[str] = set()
        self.queue: collections.deque[str] = collections.deque()
        self.pool: dict[str, http.client.HTTPConnection] = {}
        for seed in seeds:
            self.offer(seed)

    def resolve(self, base: str, href: str, charset: str) -> str | None:
        href = re.sub(r"[\t\n\r]", "", href).strip(" \0")
        url = urllib.parse.urlsplit(urllib.parse.urljoin(base, href))
        if url.scheme.lower() != "http":
            return None
        path = urllib.parse.quote(remove_dot_segments(url.path or "/"), safe="/%:@!$&'()*+,;=~")
        if self.broken == "charset":
            charset = "utf-8"
        query = urllib.parse.quote(url.query, safe="/%:@!$&'()*+,;=~?", encoding=charset)
        target = sorted_query(without_tracking(normal_escapes(path + ("?" + query if query else ""))))
        return f"http://{url.netloc.lower().removesuffix(':80')}{target}"

    def offer(self, url: str | None) -> None:
        if url is not None and url not in self.seen:
            self.seen.add(url)
            self.queue.append(url)
            if self.broken == "twice" and len(self.seen) % 10 == 0:
                self.queue.append(url)

    def get(self, url: str) -> tuple[int, http.client.HTTPMessage, bytes]:
        parts = urllib.parse.urlsplit(url)
        target = parts.path + (f"?{parts.query}" if parts.query else "")
        for attempt in (1, 2):
            connection = self.pool.pop(parts.netloc, None) or http.client.HTTPConnection(parts.netloc, timeout=10)
            try:
                connection.request("GET", target, headers={"Accept-Encoding": "gzip, deflate"})
                answer = connection.getresponse()
            except (http.client.HTTPException, ConnectionError):
                connection.close()
                if attempt == 2:
                    raise
                continue
            break
        if (
            answer.status == 200
            and not answer.headers.get_content_type().startswith("text/html")
            and not target.endswith("/robots.txt")
        ):
            connection.close()
            return answer.status, answer.headers, b""
        body = answer.read()
        if answer.will_close:
            connection.close()
        else:
            self.pool[parts.netloc] = connection
        coding = answer.headers.get("Content-Encoding", "")
        if coding:
            body = zlib.decompress(body, 31 if coding == "gzip" else 15)
        return answer.status, answer.headers, body

    def allowed(self, url: str) -> bool:
        if self.broken == "robots":
            return True
        parts = urllib.parse.urlsplit(url)
        if parts.netloc not in self.robots:
            status, _, body = self.get(f"http://{parts.netloc}/robots.txt")
            text = body.decode() if status == 200 else "" if status < 500 else "User-agent: *\nDisallow: /"
            self.robots[parts.netloc] = Robots(text)
        return self.robots[parts.netloc].allowed(url[len(f"http://{parts.netloc}") :])

    def crawl(self) -> None:
        while self.queue:
            url = self.queue.popleft()
            if not self.allowed(url):
                continue
            status, headers, body = self.get(url)
            if status == 500 and self.broken != "no-retry":
                status, headers, body = self.get(url)
            if status in (301, 302, 307, 308):
                self.offer(self.resolve(url, headers["Location"], "utf-8"))
            elif status == 200 and headers.get_content_type() == "text/html":
                self.page(url, headers, body)
        for connection in self.pool.values():
            connection.close()

    def page(self, url: str, headers: http.client.HTTPMessage, body: bytes) -> None:
        declared = headers.get_content_charset()
        if declared is None:
            found = re.search(rb"charset=[\"']?([\w-]+)", body[:1024])
            declared = found[1].decode() if found else "windows-1252"
        if body.startswith(b"\xef\xbb\xbf"):
            declared = "utf-8-sig"
        parser = LinkParser()
        parser.feed(body.decode(declared, "replace"))
        parser.close()
        base = url
        if parser.base is not None and self.broken != "base":
            base = urllib.parse.urljoin(url, parser.base)
        if self.broken == "comments":
            parser.links += re.findall(r'<!-- <a href="([^"]+)', body.decode(declared, "replace"))
        for href in parser.links:
            self.offer(self.resolve(base, href, declared.replace("-sig", "")))


def self_test() -> int:
    """Crawl with the reference crawler and with broken ones; 0 if all is as it should be."""
    rules = Robots(
        "User-agent: x\nDisallow: /\n\nUser-agent: *\nDisallow: /p/\nAllow: /p/q\nDisallow: /*.cgi$\nDisallow: /t/\nAllow: /t/\n"
    )
    table = {"/": True, "/p/a": False, "/p/q/a": True, "/a.cgi": False, "/a.cgi?b": True, "/t/a": True}
    failures = [f"robots: {path}" for path, want in table.items() if rules.allowed(path) != want]
    failures += ["robots: group"] * rules.allowed("/", "X")
    joins = [
        ("/a/b/c", "/a/b/d", "d"),
        ("/a/b/c", "/a/x", "../x"),
        ("/a/", "/a/", "./"),
        ("/l", "/l?p=1", "?p=1"),
        ("/w/x", "/w/T:y", "./T:y"),
        ("/a/b/", "/c/d/", "../../c/d/"),
    ]
    failures += [f"relative: {base} {want}" for base, target, want in joins if relative(base, target) != want]
    expected: list[tuple[str, list[str], Callable[[dict[str, Any]], bool]]] = [
        (
            "",
            [],
            lambda s: (
                not any(s[k] for k in ("missed", "forbidden", "wrong", "repeats", "repeats_tracking", "repeats_order", "in_vain"))
            ),
        ),
        (
            "",
            ["--duplicates", "0.1", "--oversize", "2", "--latency-ms", "1", "--processes", "2"],
            lambda s: not any(s[k] for k in ("missed", "forbidden", "wrong", "repeats")),
        ),
        (
            "",
            ["--robots-unavailable", "1", "--crawl-delay", "2"],
            lambda s: not any(s[k] for k in ("missed", "forbidden", "wrong", "repeats")),
        ),
        ("robots", [], lambda s: s["forbidden"] > 0 and s["wrong_by"].get("linked from forbidden pages only", 0) > 0),
        ("base", [], lambda s: s["wrong"] > 0),
        ("twice", [], lambda s: s["repeats"] > 0 and not s["wrong"]),
        ("charset", [], lambda s: s["wrong_by"].get("query not in the page's charset", 0) > 0),
        ("comments", [], lambda s: s["wrong_by"].get("comment", 0) > 0),
        ("no-retry", [], lambda s: s["missed"] > 0),
        ("", ["--nofollow", "skip"], lambda s: s["wrong_by"].get("nofollow", 0) > 0),
    ]
    for broken, arguments, good in expected:
        with tempfile.TemporaryDirectory() as folder:
            ready = os.path.join(folder, "ready")
            options = argument_parser().parse_args(["--sites", "7", "--pages", "420", "--ready-file", ready, *arguments])
            child = multiprocessing.get_context("spawn").Process(target=serve_quietly, args=(options,))
            child.start()
            while not os.path.exists(ready):
                time.sleep(0.02)
            with open(ready, encoding="utf-8") as file:
                web = json.load(file)
            began = time.monotonic()
            ReferenceCrawler(web["seeds"], broken).crawl()
            result = fetch_json(web["control"] + "/-/score")
            stats = fetch_json(web["control"] + "/-/stats")
            os.kill(web["pid"], signal.SIGTERM)
            child.join()
        verdict = "as expected" if good(result) else "NOT AS EXPECTED"
        name = f"broken: {broken}" if broken else "reference crawler"
        numbers = " ".join(
            f"{k}={result[k]}"
            for k in ("pages", "missed", "forbidden", "wrong", "repeats", "repeats_tracking", "repeats_order", "in_vain")
        )
        print(
            f"{name} {' '.join(arguments)}: {numbers}; server {stats['cpu_us_per_request']} us/request; "
            f"{time.monotonic() - began:.1f} s: {verdict}",
            flush=True,
        )
        if not good(result):
            failures.append(name)
            print(
                json.dumps(
                    {k: result[k] for k in ("wrong_by", "wrong_urls", "missed_urls", "repeated_urls", "forbidden_urls")}, indent=1
                )
            )
    print("FAILED: " + ", ".join(failures) if failures else "self-test passed")
    return bool(failures)


def serve_quietly(options: argparse.Namespace) -> None:
    with open(os.devnull, "w", encoding="utf-8") as sys.stdout:
        serve(options)


def fetch_json(url: str) -> dict[str, Any]:
    with urllib.request.urlopen(url, timeout=60) as answer:
        return json.load(answer)  # type: ignore[no-any-return]


# --------------------------------------------------------------------------
# Command line
# --------------------------------------------------------------------------


def argument_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description="A synthetic web on loopback that knows the truth about itself.")
    add = parser.add_argument
    add("--sites", type=int, default=20, help="number of sites")
    add("--pages", type=int, default=1000, help="number of pages of all sites together")
    add("--sizes", type=parse_sizes, help="pages per site, e.g. 5000,40*10; instead of --sites and --pages")
    add("--seed", type=int, default=1)
    add("--port", type=int, default=0, help="0: any free port; 80 adds links that name the default port")
    add("--control-port", type=int, default=0)
    add("--bind", default="127.0.0.1", help="address of the control port, and of the sites under --names")
    add("--names", action="store_true", help="hosts siteK.synth.test, told apart by the Host header")
    add("--processes", type=int, default=1, help="serving processes")
    add("--ready-file", help="written (JSON: port, control, seeds, pages, pid) when the web is up")
    add("--score-file", help="the score is written here at the end")
    add("--latency-ms", type=float, default=0.0, help="wait before each answer")
    add("--crawl-delay", type=float, default=0.0, help="Crawl-delay in each robots.txt")
    add("--robots-none", action="store_true", help="no site has a robots.txt")
    add(
        "--robots-unavailable",
        type=int,
        default=0,
        metavar="N",
        help="the last N sites answer robots.txt with 503, so that all of them is forbidden",
    )
    add("--robots-agent", help="product token of the crawler: some sites have a group for it")
    add("--nofollow", choices=("follow", "skip"), default="follow", help="what the truth does with rel=nofollow")
    add("--duplicates", type=float, default=0.0, help="share of pages that copy another, half of them nearly")
    add("--oversize", type=int, default=0, metavar="N", help="N pages of more than 500 kB")
    add("--score", metavar="URL", help="print the score of the web with this control URL, and end")
    add("--self-test", action="store_true")
    return parser


def main() -> int:
    options = argument_parser().parse_args()
    if options.self_test:
        return self_test()
    if options.score:
        print(json.dumps(fetch_json(options.score.rstrip("/").removesuffix("/-/score") + "/-/score"), indent=1))
        return 0
    serve(options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
