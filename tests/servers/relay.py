"""Stands between a client and its server, and is slow, silent or forgetful on demand.

Bytes pass as they are; so the client must be told the relay's address from the start.
"""

import asyncio
from contextlib import closing, suppress
from types import TracebackType
from typing import Self
from urllib.parse import urlsplit


class Relay:
    """An async context manager. `url` is the server's with our own host and port in it."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._tasks: set[asyncio.Task[None]] = set()
        self.requests = bytearray()  #: all that clients sent
        self.answered_bytes = 0
        self.loses_answers = False  #: the server hears and does everything, but the client sees a closed connection
        self.cuts_bodies = False  #: of an HTTP request the head alone arrives, and then the connection ends on both sides
        self.is_silent = False  #: nothing passes, and nothing is closed

    @property
    def url(self) -> str:
        host, port = self._server.sockets[0].getsockname()
        before, at, _ = self._parts.netloc.rpartition("@")
        return self._parts._replace(netloc=f"{before}{at}{host}:{port}").geturl()

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.close()
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, client_reader: asyncio.StreamReader, client_writer: asyncio.StreamWriter) -> None:
        # Either side may go away at any time, and that is all there is to it.
        with closing(client_writer), suppress(OSError):
            server_reader, server_writer = await asyncio.open_connection(self._parts.hostname, self._parts.port)
            requests = asyncio.create_task(self._pass_requests(client_reader, server_writer))
            try:
                await self._pass_answers(server_reader, client_writer)
            finally:
                requests.cancel()
                await asyncio.gather(requests, return_exceptions=True)
                server_writer.close()

    async def _pass_requests(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            self.requests += data
            if self.cuts_bodies:
                head, end, _ = data.partition(b"\r\n\r\n")
                writer.write(head + end)
                break
            if not self.is_silent:
                writer.write(data)
                await writer.drain()
        writer.close()  # which ends the answers as well

    async def _pass_answers(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(65_536):
            if self.loses_answers:
                return
            self.answered_bytes += len(data)
            writer.write(data)
            await writer.drain()
