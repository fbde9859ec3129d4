"""The RabbitMQ server: where it is, how a connection to it is opened, and whether it is away.

All connections of a broker share this, so that one that found the server away spares the others the attempt, and people are told
once. Must not know: channels, queues, messages.
"""

import asyncio
import logging
import random
import ssl
from dataclasses import dataclass, field
from typing import Any, Final
from urllib.parse import unquote, urlsplit

import pika
from pika.adapters.asyncio_connection import AsyncioConnection
from pika.adapters.utils.connection_workflow import AMQPConnectorStackTimeout
from pika.exceptions import (
    AuthenticationError,
    ConnectionBlockedTimeout,
    ConnectionClosed,
    ConnectionOpenAborted,
    IncompatibleProtocolError,
    ProbableAccessDeniedError,
    ProbableAuthenticationError,
)

from gossamer.errors import BrokerUnavailable, SettingsError

log = logging.getLogger("gossamer.broker")

# pika logs each failed attempt as several errors with their traces. That a server is away is no news to whoever waits for it, and
# what people must know is logged here, once.
logging.getLogger("pika").setLevel(logging.CRITICAL)

#: From the first packet to a connection that is logged in; and before that, for its name. Together they are shorter than a
#: publisher's patience, so that a failure is noted.
CONNECT_S: Final = 3.0
RESOLVE_S: Final = 1.0
HEARTBEAT_S: Final = 30
#: A connection that the server no longer reads from is given up after this, in case it has forgotten to say that it does again.
BLOCKED_S: Final = 60.0
#: Between attempts, while the server is away. Short: who waits for it wants to know, and an attempt costs little.
FIRST_PAUSE_S: Final = 0.1
LONGEST_PAUSE_S: Final = 2.0


@dataclass(frozen=True, slots=True)
class Address:
    """What an AMQP URL says. The password is never shown."""

    host: str
    port: int
    user: str
    password: str = field(repr=False)
    virtual_host: str
    tls: bool

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


def address(url: str) -> Address:
    """Reads amqp[s]://user:password@host:port/vhost, each part percent-encoded; what is left out is RabbitMQ's own default."""
    try:
        parts = urlsplit(url)
        tls = {"amqp": False, "amqps": True}[parts.scheme]
        return Address(
            host=parts.hostname or "localhost",
            port=parts.port or (5671 if tls else 5672),
            user=unquote("guest" if parts.username is None else parts.username),
            password=unquote("guest" if parts.password is None else parts.password),
            virtual_host=unquote(parts.path.removeprefix("/")) or "/",
            tls=tls,
        )
    except (ValueError, KeyError):
        # Not from the original: its text may hold half of a password.
        raise SettingsError("rabbitmq_url must be like amqp://user:password@host:5672/vhost, percent-encoded") from None


class Server:
    """Opens connections. While the server is away it makes one attempt now and then; whoever else asks is told no at once."""

    def __init__(self, url: str, name: str) -> None:
        """`name` is shown by RabbitMQ beside each connection."""
        self.address = address(url)
        self._name = name
        self._failures = 0
        self._not_before = 0.0
        self._trying = False
        self._reason = ""
        self._known = False  # it was there once: only then is it news that it is not
        self._away = False

    def raise_if_away(self) -> None:
        """Raises `BrokerUnavailable` if the last attempt failed, and the next is not due or under way."""
        if self._failures and (self._trying or asyncio.get_running_loop().time() < self._not_before):
            raise self.unavailable(self._reason)

    async def connect(self, purpose: str) -> Any:
        """A pika connection that is open. Raises `BrokerUnavailable` with one line that says why there is none."""
        self.raise_if_away()
        self._trying = True
        try:
            async with asyncio.timeout(CONNECT_S + RESOLVE_S):
                connection = await _open(_parameters(self.address, f"{self._name} {purpose}"))
        except TimeoutError:
            raise self._failed("its name was not resolved in time") from None
        except _OpenFailed as failure:
            raise self._failed(why(failure.error)) from failure.error
        finally:
            self._trying = False
        self._failures = 0
        self._known = True
        self._back()
        return connection

    def lost(self, reason: str) -> None:
        """A connection has ended that nobody had closed."""
        if self._known and not self._away:
            self._away = True
            log.warning("broker.away", extra={"server": str(self.address), "reason": reason})

    def unavailable(self, reason: str) -> BrokerUnavailable:
        return BrokerUnavailable(f"RabbitMQ at {self.address}: {reason}")

    def _failed(self, reason: str) -> BrokerUnavailable:
        pause_s = min(FIRST_PAUSE_S * 2**self._failures, LONGEST_PAUSE_S)
        # Jitter, so that the many clients of a server that comes back don't come all at once.
        self._not_before = asyncio.get_running_loop().time() + pause_s * random.uniform(0.5, 1.0)
        self._failures += 1
        self._reason = reason
        self.lost(reason)
        return self.unavailable(reason)

    def _back(self) -> None:
        if self._away:
            self._away = False
            log.warning("broker.back", extra={"server": str(self.address)})


class _OpenFailed(Exception):
    def __init__(self, error: BaseException) -> None:
        self.error = error


async def _open(parameters: Any) -> Any:
    opened: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def on_open(connection: Any) -> None:
        if opened.done():
            connection.close()  # whoever wanted it has gone
        else:
            opened.set_result(None)

    def on_error(_: object, error: BaseException) -> None:
        if not opened.done():
            opened.set_exception(_OpenFailed(error))

    # An attempt whose caller goes is left to end by itself, by pika's own time limit: to cut it short trips pika up.
    connection = AsyncioConnection(parameters, on_open_callback=on_open, on_open_error_callback=on_error)
    await opened
    return connection


def _parameters(address: Address, name: str) -> Any:
    tls = pika.SSLOptions(ssl.create_default_context(), address.host) if address.tls else None
    return pika.ConnectionParameters(
        host=address.host,
        port=address.port,
        virtual_host=address.virtual_host,
        credentials=pika.PlainCredentials(address.user, address.password),
        ssl_options=tls,
        heartbeat=HEARTBEAT_S,
        blocked_connection_timeout=BLOCKED_S,
        socket_timeout=CONNECT_S,
        stack_timeout=CONNECT_S,
        connection_attempts=1,
        client_properties={"connection_name": name},
    )


def why(error: BaseException) -> str:
    """A line for people. Never holds what the server was logged in with."""
    match error:
        case ProbableAuthenticationError() | AuthenticationError():
            return "the user or the password was refused"
        case ProbableAccessDeniedError():
            return "the virtual host does not exist, or the user may not use it"
        case IncompatibleProtocolError():
            return "it took the connection and closed it: still starting, or no AMQP server"
        case ConnectionBlockedTimeout():
            return f"short of memory or disk for {BLOCKED_S:.0f} s, it takes no messages"
        case ConnectionOpenAborted() | AMQPConnectorStackTimeout() | TimeoutError():
            return f"no answer within {CONNECT_S:.0f} s"
        case ConnectionClosed():
            return f"{error.reply_code} {error.reply_text}"
        case OSError():
            return error.strerror or type(error).__name__
    # pika wraps the system's own error in several of its own: a list of attempts, each of a phase, each of an error.
    inner = [*getattr(error, "exceptions", ()), getattr(error, "exception", None), *error.args]
    if causes := [one for one in inner if isinstance(one, BaseException)]:
        return why(causes[-1])
    return " ".join([type(error).__name__, *(str(arg) for arg in error.args)]).replace("\n", " ")
