"""Wiring: settings → the ports of one crawl. The only place that chooses between adapters; services know ports alone.

What is opened here is patient: a ledger or a blob store that is away is waited for, so that no service has to think of it. Whoever
wants to know whether a server is there at all, at a start or for a health check, asks `check`.
"""

import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

import msgspec
from msgspec import field

from adapters.patience import patient
from gossamer.clock import Clock
from gossamer.errors import SettingsError
from gossamer.ids import CrawlId
from gossamer.pauses import Pauses
from gossamer.ports.blobs import Blobs
from gossamer.ports.broker import Broker
from gossamer.ports.ledger import Ledger
from gossamer.settings import BY_KEY, Settings, Storage, secret_of

if TYPE_CHECKING:
    from adapters.distributed.blobs import S3Blobs

LEDGER_FILE: Final = "ledger.sqlite"
#: The settings that name the distributed engine's servers.
SERVER_KEYS: Final = ("rabbitmq_url", "redis_url", "s3_url")


async def _nothing_to_sweep() -> Sequence[CrawlId]:
    return ()


class Ports(msgspec.Struct, frozen=True):
    """What one crawl stands on."""

    broker: Broker
    ledger: Ledger
    blobs: Blobs
    pauses: Pauses  #: of this process, whatever they wait for
    #: By server: returns if it is there, with what its operator should know; raises `EngineUnavailable` in one line if not.
    checks: Mapping[str, Callable[[], Awaitable[Sequence[str] | None]]] = field(default_factory=dict)
    #: Deletes what crawls that are gone left in a store that others share; names them. One does it at a time.
    sweep: Callable[[], Awaitable[Sequence[CrawlId]]] = _nothing_to_sweep
    besides: Sequence[Callable[[], Awaitable[None]]] = ()  #: what else is to be closed

    async def close(self) -> None:
        for close in self.besides:
            await close()
        await self.broker.close()
        await self.ledger.close()
        await self.blobs.close()


# --- Embedded ---------------------------------------------------------------------------------------------------------


#: How the reason begins when the ledger is away.
LEDGER_AWAY: Final = "the ledger"


async def open_embedded(folder: Path, crawl: CrawlId, clock: Clock) -> Ports:
    """Of the crawl whose folder this is: for its owner, who holds the folder's lock."""
    from adapters.embedded.blobs import DirectoryBlobs
    from adapters.embedded.broker import MemoryBroker

    blobs = DirectoryBlobs(_blobs_root(folder, crawl), crawl, clock)
    await blobs.remove_leftovers()
    pauses, full = Pauses(clock), f"no space left on {folder}"
    ledger = patient(open_file(folder, clock), pauses, "ledger", full)
    return Ports(MemoryBroker(), ledger, patient(blobs, pauses, "blob store", full, ("put",)), pauses)


def open_file(folder: Path, clock: Clock) -> Ledger:
    """For reading, and for `stop`: beside the process that crawls, or after it. Not patient."""
    from adapters.embedded.ledger import SqliteLedger

    return SqliteLedger(folder / LEDGER_FILE, clock)


def open_directory(folder: Path, crawl: CrawlId, clock: Clock) -> Blobs:
    """For reading, likewise."""
    from adapters.embedded.blobs import DirectoryBlobs

    return DirectoryBlobs(_blobs_root(folder, crawl), crawl, clock)


def _blobs_root(folder: Path, crawl: CrawlId) -> Path:
    return folder.parent if folder.name == crawl else folder  # a folder of the operator's own choice has any name


# --- Distributed ------------------------------------------------------------------------------------------------------


class Servers(msgspec.Struct, frozen=True):
    """Where the servers are, with what opens them. Never shown."""

    rabbitmq_url: str
    redis_url: str
    s3_url: str
    access_key: str | None  #: None: wherever boto3 looks for one
    secret_key: str | None


def servers(storage: Storage, environ: Mapping[str, str]) -> Servers:
    """Raises `SettingsError` if one is not named."""
    urls = {key: getattr(storage, key) for key in SERVER_KEYS}
    if missing := [BY_KEY[key].variable for key, url in urls.items() if url is None]:
        raise SettingsError(f"--engine external needs its servers: set {', '.join(missing)} (or a file with it in …_FILE)")
    keys = [secret_of(environ, name) for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY")]
    return Servers(**urls, access_key=keys[0], secret_key=keys[1])


def open_redis(at: Servers, crawl: CrawlId) -> Ledger:
    """Not patient."""
    from adapters.distributed.ledger import RedisLedger

    return RedisLedger(at.redis_url, crawl)


class Announcements(Protocol):
    """Which crawl the roles of a stack are to serve. Raises `LedgerUnavailable`."""

    async def announce(self, crawl: CrawlId) -> None: ...

    async def current(self) -> CrawlId | None: ...

    async def close(self) -> None: ...


def open_announcements(at: Servers) -> Announcements:
    from adapters.distributed.announcements import RedisAnnouncements

    return RedisAnnouncements(at.redis_url)


def open_rabbitmq(at: Servers, crawl: CrawlId) -> Broker:
    """For reading what is there."""
    from adapters.distributed.broker import RabbitBroker

    storage = Storage()
    return RabbitBroker(at.rabbitmq_url, crawl, queue_type=storage.queue_type, expires_s=storage.ttl_s)


def open_s3(at: Servers, crawl: CrawlId, storage: Storage, clock: Clock) -> "S3Blobs":
    """Not patient."""
    from adapters.distributed.blobs import S3Blobs

    return S3Blobs(
        at.s3_url,
        crawl,
        clock=clock,
        access_key=at.access_key,
        secret_key=at.secret_key,
        style=storage.s3_style,
        ttl_s=storage.ttl_s,
    )


def open_external(at: Servers, crawl: CrawlId, settings: Settings, clock: Clock) -> Ports:
    """Of a crawl on servers. Nothing is asked of them yet."""
    from adapters.distributed.broker import RabbitBroker
    from adapters.distributed.ledger import RedisLedger
    from adapters.distributed.sweeping import Sweeper

    storage = settings.storage
    broker = RabbitBroker(at.rabbitmq_url, crawl, queue_type=storage.queue_type, expires_s=storage.ttl_s)
    ledger = RedisLedger(at.redis_url, crawl)
    blobs = open_s3(at, crawl, storage, clock)
    pauses = Pauses(clock)
    sweeper = Sweeper(at.redis_url, blobs, holder=secrets.token_hex(8))
    return Ports(
        broker,
        patient(ledger, pauses, "ledger (Redis)", "Redis is out of memory"),
        patient(blobs, pauses, "blob store (S3)", "S3 has no room", ("put",)),
        pauses,
        checks={"rabbitmq": broker.check, "redis": ledger.check, "s3": blobs.check},
        sweep=sweeper,
        besides=(sweeper.close,),
    )
