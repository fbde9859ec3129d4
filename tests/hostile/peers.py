"""Peers as the hostile and the broken web has them: raw sockets on loopback that send what a script says, when it says so."""

import asyncio
import contextlib
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

PIECE_BYTES: Final = 65_536


@dataclass
class Connection:
    """The peer's end of one connection, after it was accepted."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    number: int  #: of the peer's connections, from 1
    requests: list[bytes]

    async def request(self) -> bool:
        """Reads one request; False if the client closed instead."""
        try:
            self.requests.append(await self.reader.readuntil(b"\r\n\r\n"))
        except asyncio.IncompleteReadError:
            return False
        return True

    async def send(self, data: bytes) -> None:
        """In pieces, so that the peer never holds a copy of the whole: its memory is measured with ours."""
        for at in range(0, len(data), PIECE_BYTES):
            self.writer.write(data[at : at + PIECE_BYTES])
            await self.writer.drain()

    async def hold(self) -> None:
        """Stays open, until the client closes."""
        await self.reader.read()

    def reset(self) -> None:
        """RST instead of FIN."""
        raw: socket.socket = self.writer.get_extra_info("socket")
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.writer.transport.abort()


Script = Callable[[Connection], Awaitable[None]]


@dataclass
class Peer:
    """A listening peer, and what it has seen."""

    port: int
    requests: list[bytes] = field(default_factory=list)
    connections: int = 0
    open: int = 0  #: connections that neither side has closed


@contextlib.asynccontextmanager
async def listening(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[Peer]:
    """A peer on a free port of 127.0.0.1 that runs the script on each connection."""
    peer = Peer(port=0)
    served: dict[asyncio.StreamWriter, asyncio.Task[None]] = {}

    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        served[writer] = task
        peer.connections += 1
        peer.open += 1
        try:
            await script(Connection(reader, writer, peer.connections, peer.requests))
        except OSError:
            pass  # the client went away, as it should
        finally:
            peer.open -= 1
            del served[writer]
            writer.transport.abort() if tls else writer.close()

    server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
    peer.port = server.sockets[0].getsockname()[1]
    try:
        yield peer
    finally:
        server.close()
        tasks = list(served.values())
        for writer in served:
            writer.transport.abort()
        await asyncio.gather(*tasks)


# --- Scripts ---


def replies(data: bytes, *, close: bool = False, to_each: bool = True) -> Script:
    """Answers requests with these bytes; then closes, or waits for the next."""

    async def script(connection: Connection) -> None:
        while await connection.request():
            await connection.send(data)
            if close:
                return
            if not to_each:
                await connection.hold()

    return script


def spells(text: bytes, every_s: float, *, asked: bool = True) -> Script:
    """Sends a text byte by byte, when it was asked or at once, and stays open."""

    async def script(connection: Connection) -> None:
        if asked:
            await connection.request()
        for byte in text:
            await connection.send(bytes([byte]))
            await asyncio.sleep(every_s)
        await connection.hold()

    return script


def drips(head: bytes, piece: bytes, every_s: float) -> Script:
    """Sends the head, then a piece each so often, for ever."""

    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.send(head)
        while True:
            await connection.send(piece)
            await asyncio.sleep(every_s)

    return script


def floods(head: bytes, piece: bytes) -> Script:
    """Sends the head, then pieces as fast as they are taken, for ever."""
    return drips(head, piece * (1 + PIECE_BYTES // len(piece)), 0)


def resets(data: bytes) -> Script:
    """Sends these bytes, waits until they are under way, and resets the connection."""

    async def script(connection: Connection) -> None:
        await connection.request()
        await connection.send(data)
        await asyncio.sleep(0.05)
        connection.reset()

    return script


async def silent(connection: Connection) -> None:
    """Accepts, and says nothing."""
    await connection.hold()


async def closes(connection: Connection) -> None:
    """Takes the request and closes."""
    await connection.request()


async def until(condition: Callable[[], bool], within_s: float = 2.0) -> None:
    """Waits for something that must come true."""
    async with asyncio.timeout(within_s):
        while not condition():  # noqa: ASYNC110  # what is waited for happens in the kernel
            await asyncio.sleep(0.002)
