"""A subscription: one channel with a consumer for each of its queues.

The server delivers ahead, up to the prefetch; what has come lies here until it is taken. Must not know: how queues are made.
"""

import asyncio
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from pika.exceptions import AMQPError

from adapters.distributed.amqp_link import Channel, Link
from gossamer.errors import BrokerUnavailable
from gossamer.ports.broker import Delivery


class RabbitSubscription:
    """A consumer of queues at a server: the port `Subscription`. Over with its channel, or when one of its queues is deleted."""

    def __init__(self, channel: Channel, queues: Sequence[str]) -> None:
        self._channel = channel
        self._came: dict[str, deque[Delivery]] = {queue: deque() for queue in queues}
        #: Every tag that is with us, taken or not, in the order of delivery, which is that of the numbers.
        self._held: dict[int, None] = {}
        self._over = False
        #: Set by whatever ends a wait. Cleared only by a waiter that has just seen nothing, so none is missed.
        self._news = asyncio.Event()

    @classmethod
    async def open(cls, link: Link, names: Mapping[str, str], prefetch: int) -> "RabbitSubscription":
        """`names`: what each queue is called at the server. Raises `Refused` for one that does not exist."""
        assert prefetch > 0
        channel = await link.channel()
        subscription = cls(channel, list(names))
        channel.on_end(subscription._end)
        channel.raw.add_on_cancel_callback(subscription._on_cancel)
        try:
            # Counted for each consumer by itself: with one count for the channel, a full band would keep the others away.
            await channel.call(channel.raw.basic_qos, prefetch_count=prefetch)
            for queue, name in names.items():
                await channel.call(channel.raw.basic_consume, name, partial(subscription._on_message, queue))
        except BaseException:
            channel.abandon()
            raise
        return subscription

    def ready(self, queue: str) -> int:
        return len(self._came.get(queue, ()))

    def take(self, queue: str, most: int) -> list[Delivery]:
        came = self._came.get(queue, deque())
        return [came.popleft() for _ in range(min(most, len(came)))]

    async def wait(self, timeout_s: float) -> bool:
        # Who is never out of messages would otherwise not let the others of its process run.
        await asyncio.sleep(0)
        try:
            async with asyncio.timeout(timeout_s):
                while not self._any_ready():
                    self._news.clear()
                    await self._news.wait()
        except TimeoutError:
            return False
        return True

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        done = self._let_go(deliveries)
        if not done:
            return
        with suppress(AMQPError):  # the channel has just ended: they come again
            up_to, single = _split(done, oldest_kept=next(iter(self._held), None))
            if up_to is not None:
                self._channel.raw.basic_ack(up_to, multiple=True)
            for tag in single:
                self._channel.raw.basic_ack(tag)

    async def reject(self, deliveries: Sequence[Delivery]) -> None:
        with suppress(AMQPError):
            for tag in self._let_go(deliveries):
                self._channel.raw.basic_reject(tag, requeue=False)

    async def close(self) -> None:
        self._end()
        await self._channel.close()

    def _let_go(self, deliveries: Sequence[Delivery]) -> list[int]:
        """The tags of those that are still with us, in order. A tag that isn't must not be sent: it would end the channel."""
        done = sorted({delivery.tag for delivery in deliveries} & self._held.keys())
        for tag in done:
            del self._held[tag]
        return done

    def _on_message(self, queue: str, _channel: object, method: Any, _properties: object, body: bytes) -> None:
        if self._over:
            return  # the server takes it back with the channel
        self._held[method.delivery_tag] = None
        self._came[queue].append(Delivery(queue, method.delivery_tag, body, method.redelivered))
        self._news.set()

    def _on_cancel(self, _frame: object) -> None:
        """One of the queues was deleted. The others are given back, so that who comes anew finds all or nothing."""
        self._end()
        self._channel.abandon()

    def _end(self) -> None:
        self._over = True
        self._held.clear()
        for came in self._came.values():
            came.clear()
        self._news.set()

    def _any_ready(self) -> bool:
        if self._over:
            raise BrokerUnavailable("the subscription is over")
        return any(self._came.values())


def _split(done: Sequence[int], *, oldest_kept: int | None) -> tuple[int | None, Sequence[int]]:
    """The tag up to which one acknowledgement does for all, if any; and those that need one each.

    One for many costs the server half as much; but it is for everything before it, so nothing that is kept may lie before it.
    """
    if oldest_kept is None:
        return done[-1], ()
    before = sum(tag < oldest_kept for tag in done)
    return (done[before - 1] if before else None), done[before:]
