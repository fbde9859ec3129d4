"""The ledger's rows as Redis keeps them, read back into records. lua/shared/rows.lua writes the same bytes."""

import struct
import zlib
from typing import Final

import msgspec

from gossamer.ids import Epoch, UrlId, WorkerId
from gossamer.messages import Url
from gossamer.outcomes import CrawlOutcome, Outcome
from gossamer.records import (
    Counts,
    CrawlRecord,
    CrawlStatus,
    DomainRecord,
    Facts,
    Robots,
    Rules,
    SiteRecord,
    UrlRecord,
    WorkerRecord,
)
from gossamer.states import State

_URL: Final = struct.Struct(">5xBHBBBx7sHBddH")
_PRIORITY_AT: Final = 8
_DEPTH_AT: Final = 19
_DEPTH_AND_HOP: Final = struct.Struct(">HB")
_DOMAIN: Final = struct.Struct(">4xHdIIddddIIII")
_SITE: Final = struct.Struct(">IIB")
_WORKER: Final = struct.Struct(">7sdIIII")
_SHORT: Final = struct.Struct(">H")
_LONG: Final = struct.Struct(">I")
_NOBODY: Final = 65_535
_NEVER: Final = -1.0
_NO_EPOCH: Final = bytes(7)

_STATES = tuple(State)
_decode_facts = msgspec.msgpack.Decoder(Facts).decode
_encode_facts = msgspec.msgpack.Encoder().encode
_NO_FACTS: Final = Facts()


class Books(msgspec.Struct, kw_only=True):
    """The crawl's sums, as the scripts pack them."""

    status: CrawlStatus
    created_at: float
    kept_until: float
    states: list[int]
    stored: int
    requests: int
    used_bytes: int
    charged_bytes: int
    reserved_bytes: int
    domains: int
    outcome: CrawlOutcome | None = None


_decode_books = msgspec.msgpack.Decoder(Books).decode
_decode_rules = msgspec.msgpack.Decoder(Rules).decode
_encode_rules = msgspec.msgpack.Encoder().encode


def pack_rules(rules: Rules) -> tuple[bytes, bytes]:
    """What the scripts decide by, which they read with each call; and the settings, which they only keep."""
    return _encode_rules(msgspec.structs.replace(rules, settings="")), rules.settings.encode()


def crawl_record(books: bytes, rules: bytes, settings: bytes, scope: list[bytes]) -> CrawlRecord:
    read = _decode_books(books)
    return CrawlRecord(
        status=read.status,
        outcome=read.outcome,
        rules=msgspec.structs.replace(_decode_rules(rules), settings=settings.decode()),
        scope=frozenset(host.decode() for host in scope),
        created_at=read.created_at,
        kept_until=read.kept_until,
    )


def counts(books: bytes, outcomes: list[bytes], refused: list[bytes], budgets: list[bytes]) -> Counts:
    read = _decode_books(books)
    return Counts(
        states={state: read.states[state] for state in State},
        outcomes={Outcome(name.decode()): int(count) for name, count in pairs(outcomes)},
        stored=read.stored,
        requests=read.requests,
        used_bytes=read.used_bytes,
        charged_bytes=read.charged_bytes,
        reserved_bytes=read.reserved_bytes,
        domains=read.domains,
        refused={reason.decode(): int(count) for reason, count in pairs(refused)},
        budgets={reason.decode(): int(count) for reason, count in pairs(budgets)},
    )


def pairs(flat: list[bytes]) -> list[tuple[bytes, bytes]]:
    """One, other, one, other … as a server says them."""
    return list(zip(flat[::2], flat[1::2], strict=True))


def pack_facts(facts: Facts) -> bytes:
    return b"" if facts == _NO_FACTS else _encode_facts(facts)


def url(id: bytes, row: bytes) -> Url:
    """What its finder said of it."""
    depth, hop = _DEPTH_AND_HOP.unpack_from(row, _DEPTH_AT)
    return _url(UrlId(id), row, depth, hop)


def priority(row: bytes) -> int:
    return row[_PRIORITY_AT]


def _url(id: UrlId, row: bytes, depth: int, hop: int) -> Url:
    start = _URL.size + 2
    end = start + _SHORT.unpack_from(row, _URL.size)[0]
    domain = row[start:end]
    start = end + 2
    end = start + _SHORT.unpack_from(row, end)[0]
    parent = row[end + 1 : end + 1 + row[end]]
    return Url(id, row[start:end].decode(), domain.decode(), depth, hop, UrlId(parent) if parent else None)


def url_record(id: bytes, row: bytes) -> UrlRecord:
    state, worker, rank, deaths, deferrals, suspect, depth, hop, added_at, changed_at, size = _URL.unpack_from(row)
    outcome, reason, facts = _ending(row[_URL.size + size :])
    return UrlRecord(
        url=_url(UrlId(id), row, depth, hop),
        state=_STATES[state],
        worker=None if worker == _NOBODY else WorkerId(worker),
        priority=rank,
        suspect=suspect != _NO_EPOCH,
        deaths=deaths,
        deferrals=deferrals,
        added_at=added_at,
        changed_at=changed_at,
        outcome=Outcome(outcome) if outcome else None,
        reason=reason,
        facts=(_decode_facts(facts) if facts else _NO_FACTS) if outcome else None,
    )


def _ending(ending: bytes) -> tuple[str, str, bytes]:
    """Outcome, reason and facts; nothing while there is nothing to say."""
    if not ending:
        return "", "", b""
    reason_at = 1 + ending[0] + _LONG.size
    facts_at = reason_at + _LONG.unpack_from(ending, 1 + ending[0])[0]
    return ending[1 : 1 + ending[0]].decode(), ending[reason_at:facts_at].decode(), ending[facts_at:]


def domain_record(name: str, row: bytes) -> DomainRecord:
    owner, owner_until, out, parked, next_at, delay_s, not_before, due_at, failures, rests, stored, begun = _DOMAIN.unpack_from(row)
    busy, closed_at = _short_text(row, _DOMAIN.size)
    closed, site_at = _short_text(row, closed_at)
    site, _ = _short_text(row, site_at)
    return DomainRecord(
        name=name,
        site=site.decode(),
        owner=None if owner == _NOBODY else WorkerId(owner),
        owner_until=owner_until,
        out=out,
        parked=parked,
        busy=UrlId(busy) if busy else None,
        next_at=next_at,
        delay_s=delay_s,
        not_before=not_before,
        due_at=None if due_at == _NEVER else due_at,
        failures=failures,
        rests=rests,
        stored=stored,
        begun=begun,
        closed=Outcome(closed.decode()) if closed else None,
    )


def _short_text(row: bytes, at: int) -> tuple[bytes, int]:
    """A text behind its length in a byte, and where the next begins."""
    end = at + 1 + row[at]
    return row[at + 1 : end], end


def site_record(name: str, row: bytes) -> SiteRecord:
    hosts, begun, own = _SITE.unpack(row)
    return SiteRecord(name=name, hosts=hosts, begun=begun, own=bool(own))


def worker_record(id: int, row: bytes) -> WorkerRecord:
    epoch, lease_until, load, _fetching, _knocking, _alone = _WORKER.unpack_from(row)
    return WorkerRecord(
        id=WorkerId(id),
        epoch=Epoch(int.from_bytes(epoch)),
        process=row[_WORKER.size :].decode(),
        lease_until=lease_until,
        load=load,
    )


def refusal(row: bytes) -> tuple[str, str]:
    """Why, and which URL."""
    url_at = _LONG.size + _LONG.unpack_from(row)[0]
    return row[_LONG.size : url_at].decode(), row[url_at:].decode()


#: robots.txt is text that repeats itself, and there is one for each origin.
_COMPRESSED_FROM_BYTES: Final = 256


def pack_robots(robots: Robots) -> bytes:
    packed = _encode_robots(robots)
    return b"z" + zlib.compress(packed, 1) if len(packed) >= _COMPRESSED_FROM_BYTES else b"p" + packed


def robots(packed: bytes) -> Robots:
    return _decode_robots(zlib.decompress(packed[1:]) if packed[:1] == b"z" else packed[1:])


_encode_robots = msgspec.msgpack.Encoder().encode
_decode_robots = msgspec.msgpack.Decoder(Robots).decode
