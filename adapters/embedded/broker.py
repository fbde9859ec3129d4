"""The broker in memory: the queues of an embedded crawl, whose roles share one process and one event loop.

It forgets everything when the process ends, and may: hints are only hints. Where a server is weak, it is so as well (the limit
counts what nobody has taken, tags start anew with each subscription), since it is the double that tests of the roles run on.
Must not know: what is in a message. No threads: nothing here is awaited between reading a queue and changing it.
"""

import asyncio
import itertools
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

import msgspec
from msgspec.structs import replace

from gossamer.errors import BrokerUnavailable
from gossamer.ports.broker import DeadLetter, Delivery

#: Dead letters that are kept; the oldest make room.
DEAD_MAX: Final = 1_000


class MemoryBroker:
    """One connection to queues in this process: the port `Broker`."""

    def __init__(self) -> None:
        self._queues: dict[str, _Queue] = {}
        self._dead: deque[DeadLetter] = deque(maxlen=DEAD_MAX)
        self._open = True

    def connect(self) -> "MemoryBroker":
        """Another connection to the same queues. Each role has its own, so that closing it ends nobody else's subscriptions."""
        other = MemoryBroker()
        other._queues, other._dead = self._queues, self._dead
        return other

    async def declare(self, limits: Mapping[str, int]) -> None:
        self._check_open()
        for name, limit in limits.items():
            assert limit > 0
            if name not in self._queues:
                self._queues[name] = _Queue(name, limit)

    async def publish(self, queue: str, bodies: Sequence[bytes]) -> int:
        self._check_open()
        found = self._queues.get(queue)
        return 0 if found is None else found.offer(bodies)

    async def subscribe(self, queues: Sequence[str], prefetch: int) -> "MemorySubscription":
        self._check_open()
        if missing := [name for name in queues if name not in self._queues]:
            raise BrokerUnavailable(f"no such queue: {', '.join(missing)}")
        return MemorySubscription(self, [self._queues[name] for name in queues], prefetch)

    async def depths(self) -> dict[str, int]:
        self._check_open()
        return {name: len(queue.messages) for name, queue in self._queues.items()}

    async def dead_letters(self, most: int) -> list[DeadLetter]:
        self._check_open()
        return list(itertools.islice(self._dead, most))

    def bury(self, letter: DeadLetter) -> None:
        """For subscriptions, of what was rejected."""
        self._dead.append(letter)

    async def remove(self) -> None:
        self._check_open()
        for queue in self._queues.values():
            for subscription in queue.subscriptions:
                subscription.forget(queue)
        self._queues.clear()

    async def close(self) -> None:
        self._open = False
        ours = {held for queue in self._queues.values() for held in queue.subscriptions if held.connection is self}
        for subscription in ours:
            await subscription.close()

    def _check_open(self) -> None:
        if not self._open:
            raise BrokerUnavailable("the connection was closed")


class MemorySubscription:
    """A consumer of queues in this process: the port `Subscription`."""

    def __init__(self, connection: MemoryBroker, queues: "Sequence[_Queue]", prefetch: int) -> None:
        assert prefetch > 0
        self.connection = connection
        self._prefetch = prefetch
        self._queues = {queue.name: queue for queue in queues}
        self._held: dict[str, dict[int, _Message]] = {queue.name: {} for queue in queues}
        self._tags = itertools.count(1)
        #: Set by whatever may have made something ready. Cleared only by a waiter that has just seen nothing, so none is missed.
        self.news = asyncio.Event()
        for queue in self._queues.values():
            queue.subscriptions.append(self)

    def ready(self, queue: str) -> int:
        if queue not in self._queues:
            return 0
        return min(len(self._queues[queue].messages), self._prefetch - len(self._held[queue]))

    def take(self, queue: str, most: int) -> list[Delivery]:
        deliveries = []
        for _ in range(min(most, self.ready(queue))):
            message, tag = self._queues[queue].messages.popleft(), next(self._tags)
            self._held[queue][tag] = message
            deliveries.append(Delivery(queue, tag, message.body, message.redelivered))
        return deliveries

    async def wait(self, timeout_s: float) -> bool:
        # A role whose queue is never empty would otherwise not let the others of its process run.
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(timeout_s):
                while not self._any_ready():
                    self.news.clear()
                    await self.news.wait()
        except TimeoutError:
            return False
        return True

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            self._held.get(delivery.queue, {}).pop(delivery.tag, None)
        self.news.set()  # below the prefetch again

    async def reject(self, deliveries: Sequence[Delivery]) -> None:
        for delivery in deliveries:
            # Not of the delivery, which may be a stranger's or long done with.
            if (message := self._held.get(delivery.queue, {}).pop(delivery.tag, None)) is not None:
                self.connection.bury(DeadLetter(delivery.queue, message.body))
        self.news.set()

    async def close(self) -> None:
        for queue in list(self._queues.values()):
            given_back = self._held[queue.name].values()
            self.forget(queue)
            queue.subscriptions.remove(self)
            queue.give_back(given_back)

    def forget(self, queue: "_Queue") -> None:
        """The queue is over, as far as this subscription goes, and with it what was taken from it."""
        del self._queues[queue.name]
        del self._held[queue.name]
        self.news.set()  # whoever waits looks again, and learns if nothing is left to wait for

    def _any_ready(self) -> bool:
        if not self._queues:
            raise BrokerUnavailable("the subscription is over")
        return any(self.ready(queue) for queue in self._queues)


class _Message(msgspec.Struct, frozen=True):
    age: int  #: its place in the queue's order, kept when it is given back
    body: bytes
    redelivered: bool = False


class _Queue:
    """Messages that nobody has taken, the oldest first."""

    def __init__(self, name: str, limit: int) -> None:
        self.name = name
        self.messages: deque[_Message] = deque()
        self.subscriptions: list[MemorySubscription] = []
        self._limit = limit
        self._ages = itertools.count()

    def offer(self, bodies: Sequence[bytes]) -> int:
        """Appends as many as there is room for, and returns how many that were."""
        # What is given back may lift a queue above its limit.
        taken = bodies[: max(self._limit - len(self.messages), 0)]
        self.messages.extend(_Message(next(self._ages), body) for body in taken)
        self._tell()
        return len(taken)

    def give_back(self, messages: Iterable[_Message]) -> None:
        """Puts messages back at the places that they had, whatever the limit: they were accepted once."""
        back = [replace(message, redelivered=True) for message in messages]
        self.messages = deque(sorted([*back, *self.messages], key=lambda message: message.age))
        self._tell()

    def _tell(self) -> None:
        for subscription in self.subscriptions:
            subscription.news.set()
