"""What a hint costs in RabbitMQ, in CPU time of the crawler and of the server: classic queues against quorum queues.

As a crawl does it: several tasks publish one hint at a time, of 50 URLs or about 5 kB, each waiting for its confirm; another
connection consumes with a prefetch of 64, takes up to 8 and acknowledges them. CPU is user + system. The server's is read from
/proc, with 10 ms to the tick, when its process is named; its idling is measured first and taken off. Medians of several rounds,
the kinds by turns, since these machines are noisy.

    python -m bench.broker amqp://user:password@host:5672 [--pid 1234] [--messages 5000] [--tasks 8] [--rounds 5]
"""

import argparse
import asyncio
import hashlib
import os
import resource
import secrets
import statistics
import time
from dataclasses import dataclass
from pathlib import Path

from adapters.distributed.broker import RabbitBroker
from gossamer.ids import CrawlId, UrlId
from gossamer.messages import Found, Url, encode
from gossamer.ports.broker import URLS
from gossamer.settings import QueueType

URLS_PER_HINT = 50
PREFETCH = 64
TAKE = 8


@dataclass(frozen=True, slots=True)
class Cost:
    """Of one message, in microseconds."""

    client_us: float
    server_us: float
    elapsed_us: float
    publish_ms: float  #: how long one publisher waits for its confirm


def hint(number: int) -> bytes:
    urls = [f"https://site{number % 97}.example/section/{number}/article-{part}" for part in range(URLS_PER_HINT)]
    ids = [UrlId(hashlib.blake2b(url.encode(), digest_size=16).digest()) for url in urls]
    return encode(Found(tuple(Url(id, url, f"site{number % 97}.example", 1) for id, url in zip(ids, urls, strict=True))))


def server_s(pid: int | None) -> float:
    if pid is None:
        return 0.0
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def client_s() -> float:
    usage = resource.getrusage(resource.RUSAGE_SELF)
    return usage.ru_utime + usage.ru_stime


async def consume(broker: RabbitBroker, count: int) -> None:
    subscription = await broker.subscribe([URLS], PREFETCH)
    while count > 0:
        await subscription.wait(1.0)
        taken = subscription.take(URLS, TAKE)
        await subscription.ack(taken)
        count -= len(taken)
    await subscription.close()


async def publish(broker: RabbitBroker, bodies: list[bytes], waits_s: list[float]) -> None:
    for body in bodies:
        started_at = time.perf_counter()
        while not await broker.publish(URLS, [body]):  # noqa: ASYNC110  # full: the consumer makes room
            await asyncio.sleep(0.001)
        waits_s.append(time.perf_counter() - started_at)


async def measure(arguments: argparse.Namespace, queue_type: QueueType, bodies: list[bytes], idle: float) -> Cost:
    crawl = CrawlId(f"bench-{secrets.token_hex(4)}")
    publisher, consumer = (RabbitBroker(arguments.url, crawl, queue_type=queue_type, expires_s=300) for _ in range(2))
    await publisher.declare({URLS: 10_000})
    await publisher.publish(URLS, bodies[:1])
    await consume(consumer, 1)  # both are connected before the clock starts
    waits_s: list[float] = []
    before = client_s(), server_s(arguments.pid), time.perf_counter()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(consume(consumer, len(bodies)))
        for task in range(arguments.tasks):
            tasks.create_task(publish(publisher, bodies[task :: arguments.tasks], waits_s))
    client, server, elapsed = (
        after - at for after, at in zip((client_s(), server_s(arguments.pid), time.perf_counter()), before, strict=True)
    )
    await publisher.remove()
    await publisher.close()
    await consumer.close()
    each = 1e6 / len(bodies)
    return Cost(client * each, (server - idle * elapsed) * each, elapsed * each, statistics.median(waits_s) * 1e3)


async def idling(pid: int | None) -> float:
    """The share of a core that the server takes with nothing to do."""
    before = server_s(pid)
    await asyncio.sleep(3.0)
    return (server_s(pid) - before) / 3.0


async def run(arguments: argparse.Namespace) -> None:
    bodies = [hint(number) for number in range(arguments.messages)]
    idle = await idling(arguments.pid)
    print(f"{len(bodies)} hints of {len(bodies[0])} bytes, {arguments.tasks} tasks; the server idles at {idle:.1%} of a core")
    costs: dict[QueueType, list[Cost]] = {queue_type: [] for queue_type in QueueType}
    for _ in range(arguments.rounds):
        for queue_type, measured in costs.items():
            measured.append(await measure(arguments, queue_type, bodies, idle))
    print(f"{'':10}{'client µs':>12}{'server µs':>12}{'elapsed µs':>12}{'confirm ms':>12}   (each message, published and consumed)")
    for queue_type, measured in costs.items():
        figures = [statistics.median(getattr(cost, name) for cost in measured) for name in Cost.__slots__]
        print(f"{queue_type:10}" + "".join(f"{figure:12.1f}" for figure in figures))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("url", help="of a RabbitMQ that nobody else uses meanwhile")
    parser.add_argument("--pid", type=int, help="of the server (beam.smp), for its CPU time")
    parser.add_argument("--messages", type=int, default=5_000)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=5)
    asyncio.run(run(parser.parse_args()))


if __name__ == "__main__":
    main()
