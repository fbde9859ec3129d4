"""The publisher: offers messages and learns, for each, whether the server has it for certain.

Many callers share one channel and one window of messages that are offered and not answered, so that they need not queue up behind
each other's answers, and a server that is slow is not sent ever more. Nothing here waits for room in a queue, and nothing waits
longer than the time it is given. Must not know: how queues are named or made.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Final

import pika
from pika.exceptions import AMQPError
from pika.spec import Basic

from adapters.distributed.amqp_link import Channel, Link
from gossamer.errors import BrokerUnavailable

PERSISTENT: Final = pika.DeliveryMode.Persistent.value


class Publisher:
    """A channel in confirm mode on a connection of its own: the server stops reading from those that publish when it is short of
    memory, and acknowledgements must get through then."""

    def __init__(self, link: Link, *, window: int, timeout_s: float) -> None:
        self._link, self._timeout_s = link, timeout_s
        self._window = asyncio.Semaphore(window)
        self._channel: Channel | None = None
        self._opening = asyncio.Lock()
        #: Offered and not answered, by the channel's own count, the oldest first.
        self._unanswered: dict[int, _Offer] = {}
        self._tag = 0
        self._answered_at = 0.0

    async def publish(self, queue: str, bodies: Sequence[bytes]) -> int:
        """How many of them the server has taken for certain, when all are answered or the time is over."""
        if self._link.blocked or not bodies:
            return 0  # blocked: it would be sent into a socket that nobody reads
        offer = _Offer()
        started_at = asyncio.get_running_loop().time()
        try:
            async with asyncio.timeout(self._timeout_s):
                channel = await self._confirming()
                for body in bodies:
                    await self._window.acquire()
                    self._send(channel, queue, body, offer)
                await offer.answered()
        except TimeoutError:
            # Slow is slow; but a connection on which nobody was answered all this time is a dead one.
            if self._answered_at < started_at and self._unanswered and not self._link.blocked:
                self._link.drop(f"no message was confirmed within {self._timeout_s:.0f} s")
        except BrokerUnavailable:
            pass  # and logged, once, by the link
        return offer.taken

    def _send(self, channel: Channel, queue: str, body: bytes, offer: "_Offer") -> None:
        try:
            # The number in the message tells which one it is, if it is returned.
            properties = pika.BasicProperties(delivery_mode=PERSISTENT, message_id=str(self._tag + 1))
            channel.raw.basic_publish("", queue, body, properties, mandatory=True)
        except AMQPError as error:
            self._window.release()
            raise BrokerUnavailable("the channel has ended") from error
        assert channel is self._channel
        self._tag += 1
        self._unanswered[self._tag] = offer
        offer.unanswered += 1

    async def _confirming(self) -> Channel:
        channel = self._channel
        if channel is not None and channel.is_open:
            return channel
        self._link.raise_if_away()
        async with self._opening:  # however many publish at once, one channel is opened
            if self._channel is None or not self._channel.is_open:
                self._channel, self._tag = await self._open(), 0
            return self._channel

    async def _open(self) -> Channel:
        channel = await self._link.channel()
        try:
            await channel.call(channel.raw.confirm_delivery, self._on_answer)
        except BaseException:
            channel.abandon()
            raise
        channel.raw.add_on_return_callback(self._on_return)
        channel.on_end(self._on_end)
        return channel

    def _on_answer(self, frame: Any) -> None:
        method = frame.method
        taken = isinstance(method, Basic.Ack)
        self._answered_at = asyncio.get_running_loop().time()
        if not method.multiple:
            self._answer(method.delivery_tag, taken)
            return
        for tag in list(self._unanswered):
            if tag > method.delivery_tag:
                break
            self._answer(tag, taken)

    def _on_return(self, _channel: object, _method: object, properties: Any, _body: object) -> None:
        """No such queue. An ack follows, which finds nothing any more."""
        self._answer(int(properties.message_id), taken=False)

    def _on_end(self) -> None:
        """What is not answered by now is not certain, though the server may have it."""
        for tag in list(self._unanswered):
            self._answer(tag, taken=False)

    def _answer(self, tag: int, taken: bool) -> None:
        if (offer := self._unanswered.pop(tag, None)) is not None:
            self._window.release()
            offer.answer(taken)


class _Offer:
    """The messages of one call."""

    __slots__ = ("_all_answered", "taken", "unanswered")

    def __init__(self) -> None:
        self.taken = 0
        self.unanswered = 0
        self._all_answered: asyncio.Future[None] | None = None

    async def answered(self) -> None:
        if self.unanswered:
            self._all_answered = asyncio.get_running_loop().create_future()
            await self._all_answered

    def answer(self, taken: bool) -> None:
        self.taken += taken
        self.unanswered -= 1
        if not self.unanswered and self._all_answered is not None and not self._all_answered.done():
            self._all_answered.set_result(None)
