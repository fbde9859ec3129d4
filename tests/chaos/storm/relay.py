"""Stands before a server, so that its connections can be cut, silenced, or answered by somebody else, while it knows nothing of it.

Must not know: what is behind it, but for an HTTP answer that it is told to give.
"""

import asyncio
import re
from contextlib import closing, suppress
from types import TracebackType
from typing import Final, Self
from urllib.parse import urlsplit

_LENGTH: Final = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_REFUSAL: Final = b"<?xml version='1.0'?><Error><Code>%s</Code><Message>there is a storm</Message></Error>"
_CODES: Final = {500: b"InternalError", 507: b"InsufficientStorage"}


class Relay:
    """An async context manager. `url` is the server's, with our own host and port in it."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._connections: set[asyncio.Task[None]] = set()
        self._open = asyncio.Event()
        self._open.set()
        self._status: int | None = None

    @property
    def url(self) -> str:
        host, port = self._server.sockets[0].getsockname()
        before, at, _ = self._parts.netloc.rpartition("@")
        return self._parts._replace(netloc=f"{before}{at}{host}:{port}").geturl()

    def cut(self) -> None:
        """Every connection that there is."""
        for connection in self._connections:
            connection.cancel()

    def silence(self) -> None:
        """Nothing passes, in either direction; what comes meanwhile is held."""
        self._open.clear()

    def speak(self) -> None:
        """What was held is passed on, late as it is."""
        self._open.set()

    def refuse(self, status: int | None) -> None:
        """Answers every HTTP request with this status; None: the server does again."""
        self._status = status
        self.cut()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.close()
        self.cut()
        await asyncio.gather(*self._connections, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        connection = asyncio.create_task(self._serve(reader, writer))
        self._connections.add(connection)
        connection.add_done_callback(self._connections.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # Either side may go away at any time, and that is all there is to it.
        with closing(writer), suppress(OSError, EOFError, ValueError):
            if self._status is not None:
                await _refuse(reader, writer, self._status)
                return
            there, back = await asyncio.open_connection(self._parts.hostname, self._parts.port)
            with closing(back):
                ways = [asyncio.create_task(self._pass(*way)) for way in ((reader, back), (there, writer))]
                try:
                    await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
                finally:
                    for way in ways:
                        way.cancel()
                    await asyncio.gather(*ways, return_exceptions=True)

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            await self._open.wait()
            writer.write(data)
            await writer.drain()


async def _refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, status: int) -> None:
    head = await reader.readuntil(b"\r\n\r\n")
    length = _LENGTH.search(head)
    if length is not None and b"100-continue" not in head:  # who waits for a word before its body gets this one
        await reader.readexactly(int(length[1]))
    body = _REFUSAL % _CODES[status]
    fields = b"Content-Type: application/xml\r\nContent-Length: %d\r\nConnection: close\r\n" % len(body)
    writer.write(b"HTTP/1.1 %d %s\r\n%s\r\n%s" % (status, _CODES[status], fields, body))
    await writer.drain()
