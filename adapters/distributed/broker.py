"""The broker over RabbitMQ: the queues of one crawl, at a server that any number of processes share.

A queue is durable and bounded, and refuses when it is full; it vanishes by itself when nobody has used it for the crawl's time to
live. Consuming and publishing have a connection each, since the server stops reading from those that publish when it is short of
memory or disk. Whatever fails leaves nothing behind that the next call would trip over.
Must not know: what is in a message.
"""

import asyncio
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from pika.spec import Basic

from adapters.distributed.amqp_link import NOT_FOUND, PRECONDITION_FAILED, Channel, Link, Refused
from adapters.distributed.amqp_publisher import Publisher
from adapters.distributed.amqp_server import Server
from adapters.distributed.amqp_subscription import RabbitSubscription
from gossamer.errors import BrokerUnavailable
from gossamer.ids import CrawlId, WorkerId
from gossamer.ports.broker import URLS, DeadLetter, band_queue, worker_queue
from gossamer.settings import QueueType

#: Messages that are offered and not yet confirmed. Quorum queues may exceed their limits by as many.
WINDOW: Final = 64
PUBLISH_S: Final = 5.0
#: Dead letters that are kept; the oldest make room.
DEAD_MAX: Final = 1_000
DEAD: Final = "dead"
#: How often queues that others have declared are looked for. RabbitMQ logs an error for each that is not there.
SURVEY_S: Final = 30.0
#: Of one message, in quorum queues: never reached. Left to itself, RabbitMQ 4 sets aside what was given back 20 times, as by a
#: worker that crashes in a loop. Its word for no limit, -1, is taken by RabbitMQ 3 as well, which then allows not even one return.
DELIVERIES_MAX: Final = 1_000_000
#: The most that `x-expires` takes; and the least that leaves time to come back to a queue after a lost connection.
EXPIRES_MS_MAX: Final = 2**32 - 1
EXPIRES_MS_MIN: Final = 60_000


class RabbitBroker:
    """The port `Broker`."""

    def __init__(
        self,
        url: str,
        crawl: CrawlId,
        *,
        queue_type: QueueType,
        expires_s: float,
        window: int = WINDOW,
        publish_timeout_s: float = PUBLISH_S,
    ) -> None:
        """Connects to nothing yet. A queue that nobody has used for `expires_s`, or a minute, vanishes. Raises `SettingsError`."""
        self._prefix = f"gossamer.{crawl}."
        self._queue_type = queue_type
        self._expires_ms = max(EXPIRES_MS_MIN, min(int(expires_s * 1000), EXPIRES_MS_MAX))
        server = Server(url, f"gossamer {crawl}")
        self._consuming, self._publishing = Link(server, "consumer"), Link(server, "publisher")
        self._publisher = Publisher(self._publishing, window=window, timeout_s=publish_timeout_s)
        #: Name → limit of the queues that were declared here: those to bring back when the server has lost them.
        self._declared: dict[str, int] = {}
        #: Queues of this crawl that others have declared, as of the last survey.
        self._found: set[str] = set()
        self._survey_at = 0.0
        self._closed = False

    async def check(self) -> None:
        """Raises `BrokerUnavailable`, with one line that says why, unless the server answers."""
        self._check_open()
        async with self._consuming.passing_channel():
            pass

    async def declare(self, limits: Mapping[str, int]) -> None:
        self._check_open()
        assert DEAD not in limits
        for name, limit in limits.items():
            assert limit > 0
            self._declared.setdefault(name, limit)
        await self._declare(limits)

    async def publish(self, queue: str, bodies: Sequence[bytes]) -> int:
        self._check_open()
        return await self._publisher.publish(self._prefix + queue, bodies)

    async def subscribe(self, queues: Sequence[str], prefetch: int) -> RabbitSubscription:
        self._check_open()
        names = {queue: self._prefix + queue for queue in queues}
        try:
            return await RabbitSubscription.open(self._consuming, names, prefetch)
        except Refused as refusal:
            if refusal.code != NOT_FOUND or self._declared.keys().isdisjoint(queues):
                raise
        # The server has lost what was declared here: its disk is gone, or nobody has used the queues for too long.
        await self._declare(self._declared)
        return await RabbitSubscription.open(self._consuming, names, prefetch)

    async def depths(self) -> dict[str, int]:
        self._check_open()
        if asyncio.get_running_loop().time() >= self._survey_at:
            await self._survey()
        return await self._look_at([*self._declared, *sorted(self._found)])

    async def dead_letters(self, most: int) -> list[DeadLetter]:
        self._check_open()
        letters: list[DeadLetter] = []
        try:
            # Read and not acknowledged: they go back to their places when the channel is closed.
            async with self._consuming.passing_channel() as channel:
                while len(letters) < most and (letter := await _get(channel, self._prefix + DEAD)) is not None:
                    properties, body = letter
                    letters.append(DeadLetter(_origin(properties).removeprefix(self._prefix), body))
        except Refused as refusal:
            if refusal.code != NOT_FOUND:
                raise
        return letters

    async def remove(self) -> None:
        self._check_open()
        await self._survey()
        async with self._consuming.passing_channel() as channel:
            for name in [*self._declared, *self._found]:
                await channel.call(channel.raw.queue_delete, self._prefix + name)
        self._declared.clear()
        self._found.clear()
        await self._remove_dead()

    async def close(self) -> None:
        self._closed = True
        async with asyncio.TaskGroup() as closing:
            closing.create_task(self._publishing.close())
            closing.create_task(self._consuming.close())

    def _check_open(self) -> None:
        if self._closed:
            raise BrokerUnavailable("the connection was closed")

    # --- queues at the server

    async def _declare(self, limits: Mapping[str, int]) -> None:
        arguments = {self._prefix + name: self._arguments(limit) for name, limit in limits.items()}
        await self._declare_each({self._prefix + DEAD: self._dead_arguments(), **arguments})

    async def _declare_each(self, arguments: Mapping[str, Mapping[str, object]]) -> None:
        left = dict(arguments)
        while left:
            async with self._consuming.passing_channel() as channel:
                try:
                    for name in list(left):
                        await channel.call(channel.raw.queue_declare, name, durable=True, arguments=left[name])
                        del left[name]
                except Refused as refusal:
                    # It exists with another limit, or of another type, and stays so.
                    if refusal.code != PRECONDITION_FAILED or "inequivalent" not in refusal.text:
                        raise
                    del left[next(iter(left))]

    def _arguments(self, limit: int) -> dict[str, object]:
        arguments: dict[str, object] = {
            "x-queue-type": self._queue_type.value,
            "x-max-length": limit,
            "x-overflow": "reject-publish",
            "x-expires": self._expires_ms,
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": self._prefix + DEAD,
        }
        if self._queue_type is QueueType.QUORUM:
            arguments["x-delivery-limit"] = DELIVERIES_MAX
        return arguments

    def _dead_arguments(self) -> dict[str, object]:
        """Classic always: dead letters are few, looked at by people, and may be forgotten."""
        return {
            "x-queue-type": QueueType.CLASSIC.value,
            "x-max-length": DEAD_MAX,
            "x-overflow": "drop-head",
            "x-expires": self._expires_ms,
        }

    async def _survey(self) -> None:
        """Finds what others have declared: who shows a crawl, or removes it, has not made the workers' queues."""
        if self._declared:
            # What is put into a queue does not count as its use, but declaring it does: this one is to outlive a long crawl.
            await self._declare_each({self._prefix + DEAD: self._dead_arguments()})
        families: list[Iterable[str]] = [[URLS], (worker_queue(WorkerId(number)) for number in itertools.count())]
        if band_queue(0) not in self._declared:  # who has declared one has declared all
            families.append(band_queue(number) for number in itertools.count())
        found = [name for family in families for name in await self._look_at(family, until_missing=True)]
        self._found = set(found) - self._declared.keys()
        self._survey_at = asyncio.get_running_loop().time() + SURVEY_S

    async def _look_at(self, names: Iterable[str], *, until_missing: bool = False) -> dict[str, int]:
        """The messages ready in each of these queues that exists."""
        depths: dict[str, int] = {}
        rest, looking = iter(names), True
        while looking:
            async with self._consuming.passing_channel() as channel:
                try:
                    for name in rest:
                        answer = await channel.call(channel.raw.queue_declare, self._prefix + name, passive=True)
                        depths[name] = answer.message_count
                    looking = False
                except Refused as refusal:  # one that does not exist ends the channel
                    if refusal.code != NOT_FOUND:
                        raise
                    looking = not until_missing
        return depths

    async def _remove_dead(self) -> None:
        try:
            async with self._consuming.passing_channel() as channel:
                await channel.call(channel.raw.queue_delete, self._prefix + DEAD, if_empty=True)
        except Refused as refusal:
            if refusal.code != PRECONDITION_FAILED:  # there are letters in it
                raise


async def _get(channel: Channel, name: str) -> tuple[Any, bytes] | None:
    """The oldest message of a queue, properties and body, held by the channel; None if there is none."""
    answer: asyncio.Future[tuple[Any, bytes] | None] = asyncio.get_running_loop().create_future()

    def on_empty(_: object) -> None:
        if not answer.done():
            answer.set_result(None)

    def on_message(_channel: object, _method: object, properties: Any, body: bytes) -> None:
        if not answer.done():
            answer.set_result((properties, body))

    channel.raw.add_callback(on_empty, [Basic.GetEmpty])
    channel.raw.basic_get(name, on_message)
    found: tuple[Any, bytes] | None = await channel.answer(answer)
    return found


def _origin(properties: Any) -> str:
    """The queue in which a message died, as the server has written it down; anybody may have put something else there."""
    deaths = (properties.headers or {}).get("x-death")
    match deaths:
        case [{"queue": str(name)}, *_]:
            return name
        case _:
            return ""
