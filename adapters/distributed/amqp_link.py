"""A connection that is there when it is needed, and channels whose answers can be awaited.

pika has neither: a lost connection stays lost, and answers come as callbacks, or never. Here each wait ends: by the answer, by the
end of the channel, or by the time. Must not know: what the channels are for.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any, Final

from pika.exceptions import AMQPError, ChannelClosedByBroker

from adapters.distributed.amqp_server import Server, why
from gossamer.errors import BrokerUnavailable

log = logging.getLogger("gossamer.broker")

#: For one answer. A server that takes longer is as good as away.
ANSWER_S: Final = 5.0
#: For saying goodbye. A server that is short of memory does not read it.
CLOSE_S: Final = 2.0

NOT_FOUND: Final = 404
PRECONDITION_FAILED: Final = 406


class Refused(BrokerUnavailable):
    """The server ended a channel because of what was asked for on it. `code` is AMQP's."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"RabbitMQ: {code} {text}")
        self.code, self.text = code, text


class Link:
    """One connection, opened when a channel is first asked for, and again after it was lost."""

    def __init__(self, server: Server, purpose: str) -> None:
        self._server, self._purpose = server, purpose
        self._connection: Any = None
        self._opening = asyncio.Lock()  # however many ask at once, one connection is opened
        self._closed = False
        #: The server is short of memory or disk, and does not read what we send.
        self.blocked = False

    async def channel(self) -> "Channel":
        """A new channel. Raises `BrokerUnavailable` if there is no connection to be had."""
        connection = await self._connected()
        opened = asyncio.get_running_loop().create_future()
        try:
            channel = Channel(self, connection.channel(on_open_callback=partial(_settle, opened)))
        except AMQPError as error:
            raise self.ended(error) from error
        try:
            await channel.answer(opened)
        except BaseException:
            channel.abandon()
            raise
        return channel

    @asynccontextmanager
    async def passing_channel(self) -> AsyncIterator["Channel"]:
        """A channel for questions that may be refused: a refusal ends the channel, and whatever else is on it."""
        channel = await self.channel()
        try:
            yield channel
        finally:
            await channel.close()

    def raise_if_away(self) -> None:
        """Raises `BrokerUnavailable` if it would only be found out again that the server is away."""
        if self._connection is None:
            self._server.raise_if_away()

    def drop(self, reason: str) -> BrokerUnavailable:
        """Cuts a connection that does not answer; everything that waits on it ends now. The next use opens another."""
        connection, self._connection = self._connection, None
        if connection is not None and not connection.is_closed:
            self._server.lost(reason)
            # As pika's own heartbeat does it. A proper goodbye would wait for the very answer that does not come.
            connection._terminate_stream(AMQPError(reason))
        return self._server.unavailable(reason)

    async def close(self) -> None:
        """Ends the connection for good, and with it all channels."""
        self._closed = True
        async with self._opening:  # whoever opens it just now has it closed all the same
            connection = self._connection
        if connection is None or connection.is_closed:
            return
        ended = asyncio.Event()
        connection.add_on_close_callback(lambda *_: ended.set())
        try:
            async with asyncio.timeout(CLOSE_S):
                if not connection.is_closing:
                    connection.close()
                await ended.wait()
        except TimeoutError:
            connection._terminate_stream(AMQPError("the goodbye was not answered"))
            await ended.wait()  # needs nobody's answer

    def ended(self, reason: BaseException) -> BrokerUnavailable:
        """What to raise, where a wait ends because its channel or connection has."""
        if isinstance(reason, ChannelClosedByBroker):
            return Refused(reason.reply_code, reason.reply_text)
        return self._server.unavailable(why(reason))

    async def _connected(self) -> Any:
        self.raise_if_away()  # and not queue up behind an attempt
        async with self._opening:
            if self._closed:
                raise BrokerUnavailable("the connection was closed")
            if self._connection is None or not self._connection.is_open:
                self._connection = connection = await self._server.connect(self._purpose)
                self.blocked = False
                connection.add_on_close_callback(self._on_close)
                connection.add_on_connection_blocked_callback(self._on_blocked)
                connection.add_on_connection_unblocked_callback(self._on_unblocked)
            return self._connection

    def _on_close(self, connection: Any, error: BaseException) -> None:
        if connection is self._connection:
            self._connection = None
            if not self._closed:
                self._server.lost(why(error))

    def _on_blocked(self, *_: object) -> None:
        self.blocked = True
        meaning = "it is short of memory or disk and takes no hints; workers go on with what they hold, the rest waits"
        log.warning("broker.blocked", extra={"server": str(self._server.address), "meaning": meaning})

    def _on_unblocked(self, *_: object) -> None:
        self.blocked = False
        log.warning("broker.unblocked", extra={"server": str(self._server.address)})


class Channel:
    """A channel of a link. `raw` is pika's, for what needs no answer."""

    def __init__(self, link: Link, raw: Any) -> None:
        self.raw = raw
        self._link = link
        self._waiting: set[asyncio.Future[Any]] = set()
        self._ended = asyncio.Event()
        self._error: BrokerUnavailable | None = None
        self._on_end: list[Callable[[], None]] = []
        raw.add_on_close_callback(self._on_close)

    @property
    def is_open(self) -> bool:
        return bool(self.raw.is_open)

    def on_end(self, callback: Callable[[], None]) -> None:
        """Called when the channel has ended, by whomever."""
        self._on_end.append(callback)

    async def call(self, verb: Callable[..., object], *args: object, **options: object) -> Any:
        """Asks by one of `raw`'s methods, and returns the server's answer. Raises `Refused`, or `BrokerUnavailable`."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        try:
            verb(*args, callback=partial(_settle, answer), **options)
        except AMQPError as error:  # the channel has ended before
            raise self._error or self._link.ended(error) from error
        return (await self.answer(answer)).method

    async def answer(self, future: "asyncio.Future[Any]") -> Any:
        """What some callback puts into this future; or the error by which the channel ends before."""
        if self._error is not None:
            raise self._error
        self._waiting.add(future)
        try:
            async with asyncio.timeout(ANSWER_S):
                return await future
        except TimeoutError:
            raise self._link.drop(f"no answer within {ANSWER_S:.0f} s") from None
        finally:
            self._waiting.discard(future)

    async def close(self) -> None:
        """Returns when the server has taken back what was delivered and not acknowledged."""
        if self.raw.is_closed:
            return
        self.abandon()
        try:
            async with asyncio.timeout(ANSWER_S):
                await self._ended.wait()
        except TimeoutError:
            self._link.drop(f"no answer within {ANSWER_S:.0f} s")

    def abandon(self) -> None:
        """As `close`, for who can't wait."""
        with suppress(AMQPError):
            if not (self.raw.is_closing or self.raw.is_closed):
                self.raw.close()

    def _on_close(self, _: object, reason: BaseException) -> None:
        self._error = self._link.ended(reason)
        self._ended.set()
        for future in self._waiting:
            if not future.done():
                future.set_exception(self._error)
        for callback in self._on_end:
            callback()


def _settle(future: "asyncio.Future[Any]", answer: object) -> None:
    if not future.done():  # whoever asked may have gone
        future.set_result(answer)
