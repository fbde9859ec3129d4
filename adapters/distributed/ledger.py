"""The ledger on Redis: the distributed engine's. Redis 7.0 and later, and Valkey.

Each verb is one Lua script (lua/), and those called at about the same time share a round trip (ledger_calls.py); the server runs
them one after another, in the order of the calls, so each is atomic. Time is the server's own. The semantics are those of the
SQLite ledger, which lua/shared/ follows function by function.

**The keys.** All of a crawl's keys begin with `gossamer:{<crawl>}:`; the braces put them into one slot of a cluster. Their number
is fixed, however many URLs and domains there are (lua/shared/keeping.lua names them all):

| key | what |
|---|---|
| `crawl` | hash: the rules, the settings, and the books: status and sums |
| `url:<0-15>` | hashes: id → a packed row (lua/shared/rows.lua), some 150 bytes for a URL of 80 |
| `domain:<0-15>` | hashes: name → a packed row |
| `site:<0-15>`, `host:<0-15>`, `family:<0-15>` | hashes: what budgets count, lua/shared/budgets.lua |
| `workers` | hash: id → a packed row |
| `waiting`, `arrived`, `parked`, `parked:<0-15>`, `held`, `suspects`, `due`, `out` | lua/shared/indexes.lua |
| `offered` | sorted set: ids by when `waiting` last handed them out, of the last lease |
| `exact:<0-15>`, `content:<0-15>`, `band:<0-15>` | lua/shared/content.lua |
| `scope` | set: hosts of seeds, and those that seeds redirect to |
| `outcomes`, `refused`, `budgets` | hashes: counts |
| `refusals`, `poisoned` | sorted set by time, list: bounded samples |
| `pages` | list: the ids of the stored pages, in the order in which they were closed |
| `outlinks` | list: of each stored page its id and its links' ids |
| `robots:<0-15>`, `robots_until` | hashes: origin → its robots.txt; sorted set: origins by age, so that the oldest make room |
| `ranks:<0-15>` | hashes: domain → the priority that somebody outside gave it, and until when; no more of them than domains |
| `notes` | hash: name → text |
| `lease:<name>` | string: holder and until; ends by itself |

**Their end.** All end at one moment, `ttl_s` after the last `keep`: a key that comes into being gets that same moment in the same
step, and `keep` moves it for all. So a crawl is there whole or not at all.

**A server without memory** refuses a script's first write, and lets the rest through once one was let through: so a verb decides
first and then writes, the crawl's record before everything else (lua/shared/desk.lua).
"""

import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final, assert_never
from urllib.parse import urlsplit

import msgspec
from redis import exceptions as errors
from redis.asyncio import Redis
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff

from adapters.distributed import ledger_rows as rows
from adapters.distributed.ledger_calls import Calls
from adapters.distributed.ledger_scripts import UNKNOWN_RANK, Family, Gate, Judged, Route, script
from adapters.distributed.ledger_server import examine
from gossamer.answers import Dropped, Fresh, GateAnswer, Go, Judgement, RouteAnswer, Routing, Twin, Unrouted, Wait, Why
from gossamer.clock import Clock
from gossamer.errors import Fenced, LedgerUnavailable, NoCrawl, SettingsError
from gossamer.ids import CrawlId, Epoch, UrlId, WorkerId
from gossamer.messages import Link, Url
from gossamer.outcomes import CrawlOutcome
from gossamer.records import (
    NO_SITES,
    Closing,
    Content,
    Counts,
    CrawlRecord,
    Deferral,
    DomainRecord,
    Leaving,
    PassedUp,
    Robots,
    Rules,
    Seat,
    SiteRecord,
    UrlRecord,
    Visit,
    WorkerRecord,
)
from gossamer.urls import FAMILY_BYTES

CONNECT_TIMEOUT_S: Final = 5.0
READ_TIMEOUT_S: Final = 10.0
#: A named lease is kept no longer than this after it was last prolonged.
LEASE_KEPT_S: Final = 3600.0
#: When to ask again if what is waited for has no time of its own: another page's end.
ASK_AGAIN_S: Final = 0.1

_GATE: Final = struct.Struct(">Bd")
_JUDGED: Final = struct.Struct(">Bd16s")
_PLACE: Final = struct.Struct(">I")
_NEW_LINK: Final = struct.Struct(">IIHB")
_NO_FAMILY: Final = bytes([Family.NONE]) + bytes(FAMILY_BYTES)
_TARGET: Final = 0xFFFF_FFFF  #: the target's place among a closing's links

_encode = msgspec.msgpack.Encoder().encode


class RedisLedger:
    """`Ledger` of one crawl, on a server that many may share."""

    def __init__(self, server: str | Redis, crawl: CrawlId, clock: Clock | None = None) -> None:
        """`server`: a URL, or a client, which its owner closes. `clock`: for tests, its time travels with each call."""
        self._owns_client = isinstance(server, str)
        self._client = connect(server) if isinstance(server, str) else server
        self._prefix = f"gossamer:{{{crawl}}}:"
        self._record = f"{self._prefix}crawl"
        self._clock = clock
        self._calls = Calls(self._client)
        self._closed = False

    # --- The front: a verb is one script ---

    async def _run(self, verb: str, *arguments: bytes | str | float, key: str | None = None) -> Any:
        if self._closed:
            raise LedgerUnavailable("the ledger was closed")
        now = "" if self._clock is None else repr(self._clock.now())
        try:
            return await self._calls(script(verb), key or self._record, now, *arguments)
        except (errors.RedisError, OSError) as error:
            raise _as_ours(error) from error

    async def check(self) -> list[str]:
        """Whether the server is fit to hold a ledger: warnings, a line each. Raises `SettingsError` if it is not."""
        return await examine(self._client)

    async def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        await self._calls.close()
        if self._owns_client:
            await self._client.aclose()

    # --- The crawl ---

    async def create(self, rules: Rules) -> None:
        await self._run("create", *rows.pack_rules(rules))

    async def resume(self, rules: Rules, *, nobody_lives: bool = False) -> None:
        await self._run("resume", *rows.pack_rules(rules), int(nobody_lives))

    async def add(
        self, urls: Sequence[Url], scope: Sequence[str] = (), sites: Mapping[str, str] = NO_SITES, seat: Seat | None = None
    ) -> list[Url]:
        packed = [(_raw(u.id), u.url, u.domain, u.depth, u.hop, None if u.parent is None else _raw(u.parent)) for u in urls]
        worker, epoch = ("", "") if seat is None else (seat.worker, seat.epoch)
        new = await self._run("add", worker, epoch, _encode(packed), _encode(scope), _encode(dict(sites)))
        return [urls[place] for (place,) in _PLACE.iter_unpack(new)]

    async def stop(self, outcome: CrawlOutcome) -> None:
        await self._run("stop", outcome.value)

    async def end(self) -> CrawlRecord:
        return rows.crawl_record(*await self._run("end"))

    async def keep(self) -> None:
        await self._run("keep")

    # --- Leases ---

    async def register(self, process: str, formerly: Seat | None = None) -> Seat:
        worker, epoch = await self._run("register", process, "" if formerly is None else formerly.epoch)
        return Seat(WorkerId(worker), Epoch(epoch))

    async def renew(self, seat: Seat) -> CrawlRecord:
        return rows.crawl_record(*await self._run("renew", seat.worker, seat.epoch))

    async def release(self, seat: Seat) -> list[UrlId]:
        held: list[UrlId] = await self._run("release", seat.worker, seat.epoch)
        return held

    async def reap(self) -> list[UrlId]:
        reaped: list[UrlId] = await self._run("reap")
        return reaped

    # --- The frontier ---

    async def route(self, urls: Sequence[tuple[UrlId, int]]) -> list[RouteAnswer]:
        answers = await self._run("route", b"".join([id for id, _ in urls]), bytes([priority for _, priority in urls]))
        return [_UNROUTED[answer] if answer < 0 else WorkerId(answer) for answer in answers]

    async def promote(self, most: int) -> list[Routing]:
        routed = await self._run("promote", most)
        told = zip(routed[::3], routed[1::3], routed[2::3], strict=True)
        return [Routing(WorkerId(worker), rows.url(id, row), rows.priority(row)) for worker, id, row in told]

    async def waiting(self, most: int, *, idle: bool) -> list[tuple[Url, int]]:
        found = await self._run("waiting", most, int(idle))
        return [(rows.url(id, row), rows.priority(row)) for id, row in rows.pairs(found)]

    async def rank(self, urls: Sequence[tuple[UrlId, int]]) -> None:
        await self._run("rank", b"".join([id for id, _ in urls]), bytes([priority for _, priority in urls]))

    async def shed(self, open_max: int, most: int) -> int:
        shed: int = await self._run("shed", open_max, most)
        return shed

    async def outlinks(self, after: int, most: int) -> list[tuple[int, UrlId, bytes]]:
        found = await self._run("outlinks", after, most)
        return [(place, UrlId(one[:16]), one[16:]) for place, one in enumerate(found, after + 1)]

    # --- The worker ---

    async def held(self, seat: Seat) -> list[Url]:
        return [rows.url(id, row) for id, row in rows.pairs(await self._run("held", seat.worker, seat.epoch))]

    async def begin(self, seat: Seat, ids: Sequence[UrlId]) -> list[GateAnswer]:
        return _gate_answers(await self._run("begin", seat.worker, seat.epoch, b"".join(ids)))

    async def knock(self, seat: Seat, id: UrlId) -> GateAnswer:
        (answer,) = _gate_answers(await self._run("knock", seat.worker, seat.epoch, id))
        return answer

    async def leave(self, seat: Seat, leavings: Sequence[Leaving]) -> None:
        packed = [(_raw(one.id), one.until_s, _visit(one.visit)) for one in leavings]
        await self._run("leave", seat.worker, seat.epoch, _encode(packed))

    async def judge(self, seat: Seat, contents: Sequence[Content]) -> list[Judgement]:
        packed = [(_raw(one.id), _raw(one.exact), _raw(one.signature), [_raw(band) for band in one.bands]) for one in contents]
        judged = await self._run("judge", seat.worker, seat.epoch, _encode(packed))
        return [_judgement(Judged(code), similarity, id) for code, similarity, id in _JUDGED.iter_unpack(judged)]

    async def finish(self, seat: Seat, closings: Sequence[Closing]) -> list[Url]:
        new = await self._run("finish", seat.worker, seat.epoch, _encode([_closing(closing) for closing in closings]))
        return [_new_url(closings[at], link, depth, hop) for at, link, depth, hop in _NEW_LINK.iter_unpack(new)]

    async def defer(self, seat: Seat, deferrals: Sequence[Deferral]) -> None:
        packed = [(_raw(one.id), one.until_s, one.reason, _visit(one.visit)) for one in deferrals]
        await self._run("defer", seat.worker, seat.epoch, _encode(packed))

    async def pass_up(self, seat: Seat, passed: Sequence[PassedUp]) -> None:
        packed = [(_raw(one.id), one.outcome, one.reason) for one in passed]
        await self._run("pass_up", seat.worker, seat.epoch, _encode(packed))

    # --- Shared knowledge ---

    async def robots(self, origin: str) -> Robots | None:
        packed = await self._run("robots", origin)
        return None if packed is None else rows.robots(packed)

    async def know_robots(self, origin: str, robots: Robots, for_s: float) -> None:
        await self._run("know_robots", origin, rows.pack_robots(robots), repr(for_s))

    async def known_ranks(self, domains: Sequence[str]) -> dict[str, int]:
        told = await self._run("known_ranks", _encode(domains))
        return {domain: priority for domain, priority in zip(domains, told, strict=True) if priority != UNKNOWN_RANK}

    async def know_ranks(self, ranks: Mapping[str, int], for_s: float) -> None:
        await self._run("know_ranks", _encode(list(ranks)), bytes(ranks.values()), repr(for_s))

    async def lease(self, name: str, holder: str, for_s: float) -> bool:
        taken = await self._run("lease", holder, repr(for_s), LEASE_KEPT_S, key=f"{self._prefix}lease:{name}")
        return bool(taken)

    async def note(self, name: str, text: str) -> None:
        await self._run("note", name, text)

    async def notes(self) -> dict[str, str]:
        return {name.decode(): text.decode() for name, text in rows.pairs(await self._run("notes"))}

    # --- Reading ---

    async def crawl(self) -> CrawlRecord:
        return rows.crawl_record(*await self._run("crawl"))

    async def counts(self) -> Counts:
        return rows.counts(*await self._run("counts"))

    async def workers(self) -> list[WorkerRecord]:
        told = await self._run("workers")
        return sorted((rows.worker_record(int(id), row) for id, row in rows.pairs(told)), key=lambda worker: worker.id)

    async def records(self, ids: Sequence[UrlId]) -> list[UrlRecord | None]:
        told = await self._run("records", b"".join(ids))
        return [None if row is None else rows.url_record(id, row) for id, row in rows.pairs(told)]

    async def pages(self, after: int, most: int) -> list[tuple[int, UrlRecord]]:
        told = rows.pairs(await self._run("pages", after, most))
        return [(place, rows.url_record(id, row)) for place, (id, row) in enumerate(told, after + 1)]

    async def domain(self, name: str) -> DomainRecord | None:
        row = await self._run("domain", name)
        return None if row is None else rows.domain_record(name, row)

    async def domains(self, most: int) -> list[DomainRecord]:
        return [rows.domain_record(name.decode(), row) for name, row in rows.pairs(await self._run("domains", most))]

    async def site(self, name: str) -> SiteRecord | None:
        row = await self._run("site", name)
        return None if row is None else rows.site_record(name, row)

    async def unfinished(self, most: int) -> list[UrlRecord]:
        return [rows.url_record(id, row) for id, row in rows.pairs(await self._run("unfinished", most))]

    async def poisoned(self, most: int) -> list[UrlRecord]:
        return [rows.url_record(id, row) for id, row in rows.pairs(await self._run("poisoned", most))]

    async def refused(self) -> list[tuple[str, str]]:
        return [rows.refusal(one) for one in await self._run("refused")]


def connect(url: str) -> Redis:
    """A client that fails when the server is away, in bounded time: whoever calls decides whether to try again.

    Raises `SettingsError` for a URL that says more than where the server is: redis-py would take parts of it for its own options.
    """
    parts = urlsplit(url)
    if parts.query or parts.fragment or not re.fullmatch(r"/?[0-9]{0,4}", parts.path):
        raise SettingsError("redis_url must be like redis://user:password@host:6379/0, and have nothing behind that")
    return Redis.from_url(
        url,
        protocol=2,
        socket_connect_timeout=CONNECT_TIMEOUT_S,
        socket_timeout=READ_TIMEOUT_S,
        socket_keepalive=True,
        retry=Retry(NoBackoff(), 0),
    )


#: Errors of a server that is there but can't do it now, by redis-py's class or by the word that the server begins with.
_NOT_NOW: Final = (
    OSError,
    errors.ConnectionError,
    errors.TimeoutError,
    errors.OutOfMemoryError,
    errors.ReadOnlyError,
    errors.TryAgainError,
    errors.ClusterDownError,
)
_NOT_NOW_WORDS: Final = frozenset({"BUSY", "MISCONF", "NOREPLICAS"})


def _as_ours(error: Exception) -> Exception:
    """A server that is away, full, loading or busy is an outage, to be tried again; what it refuses for good is our own bug."""
    word, _, said = str(error).partition(" ")
    said, _, _ = said.partition(" script: ")  # where in our script it was raised
    if isinstance(error, _NOT_NOW) or word in _NOT_NOW_WORDS:
        full = isinstance(error, errors.OutOfMemoryError)
        return LedgerUnavailable(f"Redis can't be used now: {word} {said}".rstrip(), full=full)
    if isinstance(error, errors.NoPermissionError):
        return SettingsError(f"redis_url: the server's user lacks a permission: {error}")
    return {"FENCED": Fenced(said), "NOCRAWL": NoCrawl(said)}.get(word, error)


# --- Arguments and answers ---


def _raw(text: bytes) -> msgspec.Raw:
    """Bytes as a msgpack *string*: the servers' unpacker is older than msgpack's binary type, and takes strings as bytes."""
    size = len(text)
    if size < 32:
        return msgspec.Raw(bytes([0xA0 | size]) + text)
    if size < 0x1_0000:
        return msgspec.Raw(b"\xda" + size.to_bytes(2) + text)
    return msgspec.Raw(b"\xdb" + size.to_bytes(4) + text)


def _visit(visit: Visit) -> tuple[int, float, float | None, str | None, bool]:
    return visit.received_bytes, visit.since_start_s, visit.delay_s, visit.failed, visit.answered


def _closing(closing: Closing) -> tuple[Any, ...]:  # as finish.lua names them
    links, target = closing.links, closing.target
    return (
        _raw(closing.id),
        closing.outcome,
        closing.reason,
        _raw(rows.pack_facts(closing.facts)),
        closing.facts.blob is not None,
        _visit(closing.visit),
        _raw(b"".join([link.id for link in links])),
        _raw(_encode([link.url for link in links]) + _encode([link.domain for link in links])),
        _raw(_families(links)),
        None if target is None else (_raw(target.id), target.url, target.domain, _raw(_families([target]))),
        closing.scope_host,
        dict(closing.sites),
        [(one.reason, one.count, one.example) for one in closing.refused],
    )


def _families(links: Sequence[Link]) -> bytes:
    """Nine bytes a link; nothing if none has one, as on most pages."""
    return b"".join([_family(link) for link in links]) if any(link.family for link in links) else b""


def _family(link: Link) -> bytes:
    if not link.family:
        return _NO_FAMILY
    return bytes([Family.COMBINES if link.combines else Family.ALONE]) + link.family


def _new_url(closing: Closing, at: int, depth: int, hop: int) -> Url:
    link = closing.target if at == _TARGET else closing.links[at]
    assert link is not None
    return link.found(depth, hop, closing.id)


def _gate_answers(told: tuple[bytes, int, int]) -> list[GateAnswer]:
    codes, allowance_bytes, scope_hosts = told
    go = Go(allowance_bytes, scope_hosts)
    return [go if code == Gate.GO else _gate_answer(Gate(code), seconds) for code, seconds in _GATE.iter_unpack(codes)]


def _gate_answer(code: Gate, seconds: float) -> GateAnswer:
    match code:
        case Gate.CLOSED:
            return Dropped.CLOSED
        case Gate.BUDGET_SPENT:
            return Dropped.BUDGET
        case _:
            return Wait(seconds, _WHY[code])


def _judgement(code: Judged, similarity: float, twin: bytes) -> Judgement:
    match code:
        case Judged.FRESH:
            return Fresh()
        case Judged.TWIN:
            return Twin(UrlId(twin), similarity)
        case Judged.LIKE:
            return Wait(ASK_AGAIN_S, Why.TWIN)
        case Judged.CLOSED:
            return Dropped.CLOSED
        case _:
            assert_never(code)


_UNROUTED: Final = {
    Route.PARKED.value: Unrouted.PARKED,
    Route.CLOSED.value: Unrouted.CLOSED,
    Route.NO_ROOM.value: Unrouted.NO_ROOM,
}
_WHY: Final = {
    Gate.BUSY: Why.BUSY,
    Gate.DELAY: Why.DELAY,
    Gate.NOT_BEFORE: Why.NOT_BEFORE,
    Gate.ALONE: Why.ALONE,
    Gate.BUDGET: Why.BUDGET,
}
