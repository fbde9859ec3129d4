"""The comparison: what a crawl that was disturbed left behind, beside what the undisturbed one did.

`left_by_embedded(folder, web)` and `left_by_external(stack, folder, web)` read what a crawl left, once it has ended, from where it
lies and not from what the crawl says of itself: every URL from the ledger's own rows, the module's file, each blob, the keys in
Redis, the queues, and what the synthetic web saw. The crawl was started in `folder`, with `--state state` and `--module
jsonl:path=pages.jsonl` (or `csv:path=pages.csv,columns=sha256 links`); the web was reset before it.

`differences(expected, seen, delay_s=…, may_repeat=…)` names everything in which the two differ and should not. Both must be crawls
of one running web (its port is in the URLs), with the same seeds and settings. Compared are outcomes, not the order of things:
depths, parents and priorities may differ, and so may which of several pages with the same content is the stored one.
With `max_pages` the one that is seen had that budget, and `expected` none: it is held to exactly so many pages, each as expected.

- `may_repeat`: how many requests may have been made again: those of pages that were in hand when a worker died.
- `jitter_s`: how much closer than the delay two requests may seem to the web: a busy machine hands them over late.
"""

import asyncio
import csv
import json
import sqlite3
import urllib.request
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, TypeVar, cast
from urllib.parse import urlsplit

from redis.asyncio import Redis

from adapters import wiring
from adapters.embedded.ledger import SqliteLedger
from gossamer.clock import SystemClock
from gossamer.ids import CrawlId, UrlId
from gossamer.outcomes import CrawlOutcome, Outcome
from gossamer.parts import parts_folder
from gossamer.ports.blobs import Blobs
from gossamer.ports.ledger import Ledger
from gossamer.records import UrlRecord
from gossamer.settings import Storage
from gossamer.states import HELD
from gossamer.testing.invariants import broken_invariants
from gossamer.urls import identity, url_id
from tests.system.stack import Stack, crawl_in
from tests.system.web import PATIENCE_S, Web

OUTPUT: Final = "pages.jsonl"
JITTER_S: Final = 0.15
#: Records and blobs are read so many at once.
AT_ONCE: Final = 200

_T = TypeVar("_T")


class Kind(StrEnum):
    LOST = "lost"  #: a URL is not known, or nowhere stored
    DOUBLED = "doubled"  #: a page, or its content, is stored twice
    OTHER_OUTCOME = "other_outcome"
    LINK_LOST = "link_lost"  #: a link of a stored page is not known
    BUDGET = "budget"
    IMPOLITE = "impolite"  #: too soon, two at a time, or what robots.txt forbids
    REPEATED = "repeated"  #: more was fetched again than deaths explain
    OUTSTANDING = "outstanding"  #: something is still open, held or queued
    NO_TTL = "no_ttl"
    MISSING_BLOB = "missing_blob"
    LINE = "line"  #: of the module's file: lost, halved, doubled or another one
    BROKEN = "broken"  #: an invariant of docs/protocol.md


@dataclass(frozen=True, slots=True)
class Difference:
    kind: Kind
    words: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.words}"


# --- What is left behind ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class UrlLeft:
    url: str
    outcome: Outcome | None  #: None: it is open
    stored: bool = False
    twin: UrlId | None = None


@dataclass(frozen=True, slots=True)
class Line:
    id: UrlId
    sha256: str
    links: frozenset[UrlId]


@dataclass(frozen=True, slots=True, kw_only=True)
class WebSaw:
    """Requests by the identity of their URLs, robots.txt included; and by host how it was treated."""

    asked: Mapping[str, int]
    least_gap_s: Mapping[str, float]
    most_in_flight: Mapping[str, int]
    missed: frozenset[str] = frozenset()  #: some of the pages that nobody asked for
    forbidden: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    outcome: CrawlOutcome | None
    urls: Mapping[UrlId, UrlLeft]
    pages: Sequence[UrlId]  #: those that the ledger lists as stored
    stored: int  #: how many it has counted
    lines: Sequence[Line]
    web: WebSaw
    halved: Sequence[str] = ()  #: what is no whole line of the module's file
    missing_blobs: Sequence[str] = ()
    outstanding: Sequence[str] = ()
    without_ttl: Sequence[str] = ()
    broken: Sequence[str] = ()  #: invariants


def left_by_embedded(folder: Path, web: Web, output: str = OUTPUT) -> Left:
    state, crawl = folder / "state", crawl_in(folder)
    file = state / wiring.LEDGER_FILE

    async def read() -> Left:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True, timeout=PATIENCE_S)) as rows:
            ids = [UrlId(id) for (id,) in rows.execute("SELECT id FROM url")]
        ledger, blobs = SqliteLedger(file, SystemClock()), wiring.open_directory(state, crawl, SystemClock())
        try:
            return await _left(ledger, blobs, ids, folder / output, web)
        finally:
            await ledger.close()
            await blobs.close()

    return asyncio.run(read())


def left_by_external(stack: Stack, folder: Path, web: Web, output: str = OUTPUT) -> Left:
    crawl, keys = crawl_in(folder), stack.s3.credentials
    at = wiring.Servers(stack.rabbitmq.url, stack.redis.url, stack.s3.url, keys.access_key, keys.secret_key)

    async def read() -> Left:
        ledger, blobs, broker = (
            wiring.open_redis(at, crawl),
            wiring.open_s3(at, crawl, Storage(), SystemClock()),
            wiring.open_rabbitmq(at, crawl),
        )
        try:
            async with Redis.from_url(stack.redis.url) as client:
                ids, without_ttl = await _in_redis(client, crawl)
            queues = [f"queue {name} with {depth} messages" for name, depth in (await broker.depths()).items()]
            return await _left(ledger, blobs, ids, folder / output, web, queues, without_ttl)
        finally:
            await ledger.close()
            await blobs.close()
            await broker.close()

    return asyncio.run(read())


async def _in_redis(client: Redis, crawl: CrawlId) -> tuple[list[UrlId], list[str]]:
    """Every URL's id, and the keys of the crawl that would stay for ever."""
    names = [name async for name in client.scan_iter(match=f"*{crawl}*", count=1000)]
    for_ever = [name.decode() for name in names if await client.pttl(name) == -1]
    shards = [name for name in names if name.startswith(f"gossamer:{{{crawl}}}:url:".encode())]
    ids = [cast(bytes, id) for shard in shards for id in await client.hkeys(shard)]
    return [UrlId(id) for id in ids], for_ever


async def _left(
    ledger: Ledger,
    blobs: Blobs,
    ids: Sequence[UrlId],
    output: Path,
    web: Web,
    queues: Sequence[str] = (),
    without_ttl: Sequence[str] = (),
) -> Left:
    records = [each for some in _portions(ids) for each in await ledger.records(some) if each is not None]
    counts = await ledger.counts()
    lines, halved = read_output(output)
    return Left(
        outcome=(await ledger.crawl()).outcome,
        urls={each.url.id: _url_left(each) for each in records},
        pages=[record.url.id for _, record in await ledger.pages(0, len(ids) + 1)],
        stored=counts.stored,
        lines=lines,
        halved=halved,
        missing_blobs=await _missing_blobs(blobs, records),
        outstanding=[*await _outstanding(ledger, records), *queues, *([str(parts_folder(output))] * parts_folder(output).exists())],
        without_ttl=without_ttl,
        broken=await broken_invariants(ledger, ids),
        web=_web_saw(web),
    )


def _url_left(record: UrlRecord) -> UrlLeft:
    facts = record.facts
    return UrlLeft(record.url.url, record.outcome, facts is not None and facts.blob is not None, facts.twin if facts else None)


async def _missing_blobs(blobs: Blobs, records: Sequence[UrlRecord]) -> list[str]:
    """Pages whose reference leads nowhere, or to something else than that page."""
    stored = [(each.url.url, each.facts.blob) for each in records if each.facts is not None and each.facts.blob is not None]
    missing = []
    for some in _portions(stored):
        copies = await blobs.copies([ref for _, ref in some])
        missing += [url for (url, _), copy in zip(some, copies, strict=True) if copy is None or copy.capture.url != url]
    return missing


async def _outstanding(ledger: Ledger, records: Sequence[UrlRecord]) -> list[str]:
    """What somebody would still have to do something about, though the crawl has ended."""
    reserved = (await ledger.counts()).reserved_bytes
    busy = [name for name in {each.url.domain for each in records} if (at := await ledger.domain(name)) and (at.busy or at.out)]
    return [
        *(f"{each.url.url} is {each.state.name}" for each in records if each.state in HELD),
        *(f"{name} is busy, or has something out" for name in busy),
        *(f"worker {each.id} holds {each.load} URLs" for each in await ledger.workers() if each.load),
        *([f"{reserved} bytes are reserved"] * bool(reserved)),
    ]


def _web_saw(web: Web) -> WebSaw:
    score = web.score()
    with urllib.request.urlopen(f"{web.control}/-/log", timeout=PATIENCE_S) as answer:
        log = json.load(answer)
    port = urlsplit(web.seeds[0]).port
    hosts = [site["host"] for site in score["sites"]]
    gaps = {site["host"]: site["least_gap_with_robots_s"] for site in score["sites"]}
    return WebSaw(
        asked=Counter(identity(f"http://{hosts[site]}:{port}{target}") for _, _, _, site, target, *_ in log if site >= 0),
        least_gap_s={host: gap for host, gap in gaps.items() if gap is not None},
        most_in_flight={site["host"]: site["most_in_flight"] for site in score["sites"]},
        missed=frozenset(score["missed_urls"]),
        forbidden=score["forbidden"],
    )


def read_output(path: Path) -> tuple[list[Line], list[str]]:
    """The module's file, JSON lines or CSV by its name: the lines, and what is none."""
    if not path.exists():
        return [], []
    found = list(_csv_rows(path) if path.suffix == ".csv" else _json_rows(path))
    return [each for each in found if isinstance(each, Line)], [each for each in found if isinstance(each, str)]


def _json_rows(path: Path) -> Iterator[Line | str]:
    for line in path.read_text(errors="replace").splitlines(keepends=True):
        try:
            row = json.loads(line)
            yield _line(row["id"], row["sha256"], row["links"]) if line.endswith("\n") else line
        except (ValueError, KeyError, TypeError):
            yield line


def _csv_rows(path: Path) -> Iterator[Line | str]:
    csv.field_size_limit(2**24)
    with path.open(newline="", errors="replace") as file:
        try:
            for row in csv.DictReader(file, strict=True):
                whole = None not in row and None not in row.values()
                yield _line(row["id"], row["sha256"], row["links"].split()) if whole else str(row)
        except (csv.Error, ValueError) as error:
            yield f"{path}: {error}"


def _line(id: str, sha256: str, links: Sequence[str]) -> Line:
    return Line(UrlId(bytes.fromhex(id)), sha256, frozenset(url_id(identity(link)) for link in links))


# --- What differs -----------------------------------------------------------------------------------------------------


def differences(
    expected: Left, seen: Left, *, delay_s: float, may_repeat: int, max_pages: int | None = None, jitter_s: float = JITTER_S
) -> list[Difference]:
    """Nothing if nothing was lost. See above for what is compared."""
    whole = max_pages is None
    found = [
        *_of_the_end(expected, seen, max_pages),
        *_of_urls(expected, seen, whole=whole),
        *_of_content(expected, seen, whole=whole),
        *_of_links(expected, seen),
        *_of_lines(expected, seen),
        *_of_manners(expected.web, seen.web, least_gap_s=delay_s - jitter_s, may_repeat=may_repeat, whole=whole),
        *((Kind.OUTSTANDING, words) for words in seen.outstanding),
        *((Kind.NO_TTL, words) for words in seen.without_ttl),
        *((Kind.MISSING_BLOB, words) for words in seen.missing_blobs),
        *((Kind.BROKEN, words) for words in seen.broken),
    ]
    return [Difference(kind, words) for kind, words in found]


def requests_again(expected: Left, seen: Left) -> int:
    """How many more were made than the undisturbed crawl needed."""
    return (Counter(seen.web.asked) - Counter(expected.web.asked)).total()


_Found = Iterator[tuple[Kind, str]]


def _of_the_end(expected: Left, seen: Left, max_pages: int | None) -> _Found:
    outcome = expected.outcome if max_pages is None else CrawlOutcome.PAGE_BUDGET
    pages = len(expected.pages) if max_pages is None else max_pages
    if seen.outcome != outcome:
        yield Kind.OTHER_OUTCOME, f"the crawl ended as {seen.outcome}, not as {outcome}"
    if not len(seen.pages) == seen.stored == pages:
        yield Kind.BUDGET, f"{len(seen.pages)} pages are stored, {seen.stored} are counted, of {pages}"


def _of_urls(expected: Left, seen: Left, *, whole: bool) -> _Found:
    kin = _kin(expected)
    for id in expected.urls.keys() - seen.urls.keys() if whole else ():
        yield Kind.LOST, expected.urls[id].url
    for id in seen.urls.keys() - expected.urls.keys():
        yield Kind.OTHER_OUTCOME, f"{seen.urls[id].url} is not known to the undisturbed crawl"
    for id in seen.urls.keys() & expected.urls.keys():
        was, now = expected.urls[id], seen.urls[id]
        if now.outcome is None:
            if whole:
                yield Kind.OUTSTANDING, f"{now.url} is open"
        elif (now.outcome, now.stored) != (was.outcome, was.stored) and not (id in kin and now.outcome in _SAME):
            yield Kind.OTHER_OUTCOME, f"{now.url} is {_shown(now)}, not {_shown(was)}"


#: Which of several equal pages comes first is up to the order of the crawl.
_SAME: Final = (Outcome.DONE, Outcome.DUPLICATE)


def _shown(url: UrlLeft) -> str:
    return f"{url.outcome}{', stored' if url.stored else ''}"


def _of_content(expected: Left, seen: Left, *, whole: bool) -> _Found:
    for id, times in Counter(seen.pages).items():
        if times > 1:
            yield Kind.DOUBLED, f"{seen.urls[id].url} is stored {times} times"
    families: dict[UrlId, list[UrlId]] = {}
    for id, original in _kin(expected).items():
        families.setdefault(original, []).append(id)
    for original, ids in families.items():
        stored = [id for id in ids if id in seen.urls and seen.urls[id].stored]
        if len(stored) > 1:
            yield Kind.DOUBLED, f"the content of {expected.urls[original].url} is stored {len(stored)} times"
        elif whole and not stored:
            yield Kind.LOST, f"the content of {expected.urls[original].url} is not stored"


def _kin(left: Left) -> dict[UrlId, UrlId]:
    """Those that share their content with others: the id of the one that is stored."""
    twins = {id: url.twin for id, url in left.urls.items() if url.twin is not None}
    return twins | {original: original for original in twins.values()}


def _of_links(expected: Left, seen: Left) -> _Found:
    for line in seen.lines:
        for link in (line.links & expected.urls.keys()) - seen.urls.keys():
            yield (
                Kind.LINK_LOST,
                f"{expected.urls[link].url}, found on {seen.urls[line.id].url if line.id in seen.urls else line.id.hex()}",
            )


def _of_lines(expected: Left, seen: Left) -> _Found:
    for text in seen.halved:
        yield Kind.LINE, f"is no whole one: {text[:100]!r}"
    lines, stored = Counter(line.id for line in seen.lines), {id for id, url in seen.urls.items() if url.stored}
    for id, times in lines.items():
        if times > 1:
            yield Kind.LINE, f"{id.hex()} is there {times} times"
    for id in lines.keys() - stored:
        yield Kind.LINE, f"{id.hex()} is there, but its page is not stored"
    for id in stored - lines.keys():
        yield Kind.LINE, f"{seen.urls[id].url} is stored, but has none"
    contents = {line.sha256: line.links for line in expected.lines}
    for line in seen.lines:
        if contents.get(line.sha256) != line.links:
            yield Kind.LINE, f"{line.id.hex()} has another content than any page of the undisturbed crawl"


def _of_manners(expected: WebSaw, seen: WebSaw, *, least_gap_s: float, may_repeat: int, whole: bool) -> _Found:
    for host, gap_s in seen.least_gap_s.items():
        if gap_s < least_gap_s:
            yield Kind.IMPOLITE, f"{host} was asked again after {gap_s:.3f} s"
    for host, most in seen.most_in_flight.items():
        if most > 1:
            yield Kind.IMPOLITE, f"{host} had {most} requests at a time"
    if seen.forbidden > expected.forbidden:
        yield Kind.IMPOLITE, f"{seen.forbidden} requests were forbidden by robots.txt"
    again = {url: times - expected.asked.get(url, 0) for url, times in seen.asked.items() if times > expected.asked.get(url, 0)}
    if sum(again.values()) > may_repeat:
        yield (
            Kind.REPEATED,
            f"{sum(again.values())} requests were made again, of at most {may_repeat}: {', '.join(sorted(again)[:5])}",
        )
    for url in seen.missed - expected.missed if whole else ():
        yield Kind.LOST, f"{url} was never asked for"


def _portions(items: Sequence[_T]) -> Iterator[Sequence[_T]]:
    return (items[start : start + AT_ONCE] for start in range(0, len(items), AT_ONCE))
