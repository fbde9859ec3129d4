"""The pages of a synthetic web in the order in which a crawl comes by them: what single steps are measured on.

One page of each site after another, as politeness has it, each found by a link of an earlier one, by our own steps: so a page is
here with all that the steps before it made of it. Redirects are followed, and a server that fails is asked again; what is no page
is left out. Needs nothing but the web: no ledger, no queues.
"""

import asyncio
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from ipaddress import ip_network
from typing import Final

from gossamer.clock import SystemClock
from gossamer.messages import Link, Url
from gossamer.outcomes import Flag
from gossamer.settings import Settings
from gossamer.urls import Finder, origin_of
from services.role.registrable import registrable
from services.worker.addresses import url_refusal
from services.worker.decode import Decoded, Undecodable, decode
from services.worker.download import Answer, Downloader, Request
from services.worker.links import Followable, LinkReader, rules_of
from services.worker.meaning import IsPage, IsRedirect, meaning
from services.worker.read import Reader, Reading
from services.worker.requests import ROBOTS_BYTES
from services.worker.resolve import Record, Resolver
from services.worker.robotstxt import denial, read_rules, text_of
from services.worker.sketch import Sketch, Sketcher

SETTINGS: Final = Settings()
LOOPBACK: Final = (ip_network("127.0.0.0/8"),)
PAGE_BYTES: Final = SETTINGS.budgets.max_page_bytes
#: No module is loaded, so that nobody wants the whole text.
READER: Final = Reader(PAGE_BYTES, SETTINGS.links.max_links, text=False, sketch=Sketcher(SETTINGS.fetching.similarity or 1.0))
TRIES: Final = 2
DEADLINE_S: Final = 30.0


@dataclass(frozen=True, slots=True)
class Visited:
    """A page, and what the steps of its walk have made of it."""

    url: Url
    answer: Answer
    decoded: Decoded
    reading: Reading
    followed: Followable
    sketch: Sketch


@dataclass(frozen=True, slots=True)
class Walked:
    pages: Sequence[Visited]
    robots: dict[str, str]  #: by origin: the text of its robots.txt


def sketcher() -> Sketcher:
    assert SETTINGS.fetching.similarity is not None
    return Sketcher(SETTINGS.fetching.similarity)


def link_reader() -> LinkReader:
    """One that knows no links yet."""
    return LinkReader(
        rules_of(SETTINGS.links), url_refusal=partial(url_refusal, allowed=LOOPBACK), registrable=registrable, tells_all=False
    )


def followable(reader: LinkReader, url: Url, page: Reading) -> Followable:
    nofollow = Flag.NOFOLLOW in page.flags
    return reader.followable(page.parsed, url=url.url, id=url.id, depth=url.depth, charset=page.charset, nofollow=nofollow)


def downloader() -> Downloader:
    async def no_names(name: str) -> Sequence[Record]:
        raise AssertionError(f"{name} is no address")

    clock = SystemClock()
    return Downloader(Resolver(no_names, clock, LOOPBACK), clock, user_agent="Gossamer/bench")


def page_request(url: str) -> Request:
    return Request(url, 2 * PAGE_BYTES, PAGE_BYTES, DEADLINE_S, types=True)


async def walk(seed: str, most: int) -> Walked:
    """The first `most` pages, from this seed."""
    client, reader, sketch = downloader(), link_reader(), sketcher()
    texts: dict[str, str] = {}
    waiting: dict[str, deque[Url]] = {}  # by domain
    known: set[bytes] = set()

    def enter(link: Link, depth: int) -> None:
        if link.id not in known:
            known.add(link.id)
            waiting.setdefault(link.domain, deque()).append(link.found(depth))

    async def allowed(url: Url) -> bool:
        origin = origin_of(url.url)
        if origin not in texts:
            asked = Request(f"{origin}/robots.txt", 2 * ROBOTS_BYTES, ROBOTS_BYTES, DEADLINE_S, types=False)
            answer = await client.fetch(asked)
            read = _decoded(answer) if isinstance(answer, Answer) and answer.status == 200 else None
            texts[origin] = text_of(read.raw) if isinstance(read, Decoded) else ""
        return denial(read_rules(texts[origin]), url.url, max_crawl_delay_s=SETTINGS.manners.max_crawl_delay_s) is None

    async def visit(url: Url) -> Visited | None:
        if not await allowed(url):
            return None
        for _ in range(TRIES):
            answer = await client.fetch(page_request(url.url))
            if not isinstance(answer, Answer):
                return None
            match meaning(answer.status, answer.headers):
                case IsPage():
                    return made(url, answer)
                case IsRedirect(location=location):
                    target = reader.redirect_target(url.url, location)
                    if not isinstance(target, str):
                        enter(target, url.depth)
                    return None
        return None

    def made(url: Url, answer: Answer) -> Visited | None:
        (page,) = READER([answer])
        decoded = _decoded(answer)
        if not isinstance(page, Reading) or not isinstance(decoded, Decoded):
            return None
        followed = followable(reader, url, page)
        for link in followed.links:
            enter(link, url.depth + 1)
        return Visited(url, answer, decoded, page, followed, sketch(page.parsed.main))

    pages: list[Visited] = []
    enter(Finder().resolve(seed, seed), 0)
    try:
        while len(pages) < most and any(waiting.values()):
            turn = [urls.popleft() for urls in waiting.values() if urls]
            pages += [page for page in await asyncio.gather(*map(visit, turn)) if page is not None]
    finally:
        await client.close()
    return Walked(pages[:most], texts)


def _decoded(answer: Answer) -> Decoded | Undecodable:
    return decode(answer.headers, answer.body, PAGE_BYTES)
