"""The steps of a page that a distributed crawl takes on its servers, beside their floors: the client's CPU time, and the servers'.

Knows: Redis, RabbitMQ and S3 as the engine uses them. What is measured, and how, is `bench/steps.py`'s.
"""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Final
from uuid import uuid4

import msgspec
from botocore.exceptions import ClientError

from adapters.distributed.blobs import S3Blobs
from adapters.distributed.broker import RabbitBroker
from adapters.distributed.ledger import RedisLedger, connect
from adapters.embedded.broker import MemoryBroker
from adapters.embedded.ledger import SqliteLedger
from bench import floors
from bench.measuring import Run, Step, Watch
from bench.replay import SEGMENT_PAGES, Lives, Passing, captures, portions
from bench.walked import Visited
from gossamer.clock import SystemClock
from gossamer.ids import CrawlId
from gossamer.settings import QueueType
from tests.servers import s3_client
from tests.system.stack import Stack

#: Verbs to a pipeline of the floor's.
PIPELINE: Final = 8


def server_steps(pages: Sequence[Visited], stack: Stack, folder: Path) -> list[Step]:
    numbers = count()

    def path() -> Path:
        return folder / f"recorded-{next(numbers)}"

    return [
        Step(
            lambda: redis_lives(pages, stack),
            lambda: redis_floor(pages, stack),
            {"ledger": "redis-py, 8 a pipeline", "judge": "redis-py, MGET and MSET", "rank": "-"},
        ),
        Step(lambda: rabbit_passing(pages, stack), lambda: rabbit_floor(pages, stack, path()), {"frontier": "pika on asyncio"}),
        Step(lambda: s3_store(pages, stack), lambda: s3_floor(pages, stack), {"store": "boto3, the same segments"}),
    ]


def servers(stack: Stack) -> Mapping[str, int]:
    """Their processes."""
    return {"Redis": stack.redis.pid, "RabbitMQ": stack.rabbitmq.pid, "S3": stack.s3.pid}


def crawl() -> CrawlId:
    return CrawlId(f"bench-{uuid4().hex}")


@asynccontextmanager
async def redis_lives(pages: Sequence[Visited], stack: Stack) -> AsyncIterator[Run]:
    ledger = RedisLedger(stack.redis.url, crawl())
    lives = await Lives.begun(ledger, pages)
    yield lives.run
    await ledger.close()


@asynccontextmanager
async def redis_floor(pages: Sequence[Visited], stack: Stack) -> AsyncIterator[Run]:
    client, prefix = connect(stack.redis.url), uuid4().hex
    sha, keys = await client.script_load(floors.VERB), [f"{prefix}:{name}" for name in ("known", "waiting", "done")]
    facts = msgspec.json.encode(("done", 200, "segment", 123_456, 7_890))
    told = [(page.url.id, b"".join(link.id for link in page.followed.links), facts) for page in pages]
    sketched = [(page.url.id, page.sketch.bands) for page in pages]

    async def run(watch: Watch) -> None:
        with watch("judge"):
            await floors.redis_twins(client, prefix, sketched, PIPELINE)
        with watch("ledger"):
            await floors.redis_verbs(client, sha, keys, told, PIPELINE)

    yield run
    await client.aclose()


@asynccontextmanager
async def rabbit_passing(pages: Sequence[Visited], stack: Stack) -> AsyncIterator[Run]:
    name = crawl()
    ledger = RedisLedger(stack.redis.url, name)
    broker = RabbitBroker(stack.rabbitmq.url, name, queue_type=QueueType.CLASSIC, expires_s=300)
    passing = await Passing.begun(ledger, broker, pages)
    yield passing.run
    await passing.close()
    await broker.remove()
    await broker.close()
    await ledger.close()


class _Recording(MemoryBroker):
    def __init__(self) -> None:
        super().__init__()
        self.bodies: list[bytes] = []

    async def publish(self, queue: str, bodies: Sequence[bytes]) -> int:
        self.bodies += bodies
        return await super().publish(queue, bodies)


@asynccontextmanager
async def rabbit_floor(pages: Sequence[Visited], stack: Stack, path: Path) -> AsyncIterator[Run]:
    """The very messages that our frontier sends and gets."""
    ledger, broker = SqliteLedger(path, SystemClock()), _Recording()
    passing = await Passing.begun(ledger, broker, pages)
    await passing.run(Watch())
    await passing.close()
    await ledger.close()
    rabbit = floors.Rabbit(stack.rabbitmq.url, uuid4().hex)
    await rabbit.open()

    async def run(watch: Watch) -> None:
        with watch("frontier"):
            await rabbit.pass_on(broker.bodies)

    yield run
    rabbit.close()


@asynccontextmanager
async def s3_store(pages: Sequence[Visited], stack: Stack) -> AsyncIterator[Run]:
    keys = stack.s3.credentials
    blobs = S3Blobs(stack.s3.url, crawl(), clock=SystemClock(), ttl_s=3600, access_key=keys.access_key, secret_key=keys.secret_key)
    await blobs.put(captures(pages[:1]))  # it is connected before the clock starts

    async def run(watch: Watch) -> None:
        with watch("store"):
            for some in portions(pages, SEGMENT_PAGES):
                await blobs.put(captures(some))

    yield run
    await blobs.close()


@asynccontextmanager
async def s3_floor(pages: Sequence[Visited], stack: Stack) -> AsyncIterator[Run]:
    endpoint, _, bucket = stack.s3.url.rpartition("/")
    client, prefix = s3_client(endpoint, stack.s3.credentials), uuid4().hex
    with suppress(ClientError):  # it is there already
        client.create_bucket(Bucket=bucket)
    client.put_object(Bucket=bucket, Key=f"{prefix}/first", Body=b"x")

    async def run(watch: Watch) -> None:
        with watch("store"):
            for number, some in enumerate(portions(pages, SEGMENT_PAGES)):
                segment = floors.pack((page.url.url, page.answer.headers, page.answer.body) for page in some)
                client.put_object(Bucket=bucket, Key=f"{prefix}/{number}", Body=segment)

    yield run
