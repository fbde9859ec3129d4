"""A rank API on loopback that behaves as badly as it is told, and counts what it is asked."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from urllib.parse import parse_qs, urlsplit


class Mood(StrEnum):
    FINE = "fine"
    ERROR = "500"
    OVERRUN = "429 with Retry-After"
    FORBIDDEN = "403"
    HANGING = "hanging"
    TRICKLING = "a byte now and then"
    CUT = "cut off in the middle"
    HTML = "HTML"
    NAN = "a rank that is no number"
    HUGE = "a huge body"
    PACKED = "gzip, though nobody asked"
    ELSEWHERE = "a redirect to another host"


@dataclass
class RankServer:
    url: str = ""
    mood: Mood = Mood.FINE
    decimals: Mapping[str, float] = field(default_factory=dict)  #: of the domains that it knows
    retry_after: str = "7"
    asked: list[list[str]] = field(default_factory=list)  #: the domains of each request
    heads: list[str] = field(default_factory=list)
    answered: int = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                while True:
                    head = (await reader.readuntil(b"\r\n\r\n")).decode()
                    self.heads.append(head)
                    self.asked.append(parse_qs(urlsplit(head.split()[1]).query)["domains[]"])
                    await self._answer(writer, self.asked[-1])
        finally:
            writer.close()

    async def _answer(self, writer: asyncio.StreamWriter, domains: list[str]) -> None:
        match self.mood:
            case Mood.FINE:
                writer.write(response(json.dumps({"status_code": 200, "response": [self._entry(each) for each in domains]})))
            case Mood.ERROR:
                writer.write(response("it broke", status="500 Internal Server Error"))
            case Mood.OVERRUN:
                writer.write(response("", status="429 Too Many Requests", head=f"Retry-After: {self.retry_after}\r\n"))
            case Mood.FORBIDDEN:
                writer.write(response("", status="403 Forbidden"))
            case Mood.HANGING:
                await asyncio.Event().wait()
            case Mood.TRICKLING:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
                while True:
                    writer.write(b" ")
                    await writer.drain()
                    await asyncio.sleep(0.01)
            case Mood.CUT:
                writer.write(b'HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n{"status_code": 200, ')
                writer.close()
            case Mood.HTML:
                writer.write(response("<!doctype html><title>Down for maintenance</title>", head="Content-Type: text/html\r\n"))
            case Mood.NAN:
                entry = f'{{"status_code": 200, "domain": "{domains[0]}", "page_rank_decimal": NaN}}'
                writer.write(response(f'{{"status_code": 200, "response": [{entry}]}}'))
            case Mood.HUGE:
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 10000000000\r\n\r\n")
                while True:
                    writer.write(b" " * 65_536)
                    await writer.drain()
            case Mood.PACKED:
                writer.write(response("\x1f\x8b", head="Content-Encoding: gzip\r\n"))
            case Mood.ELSEWHERE:
                writer.write(response("", status="302 Found", head="Location: http://127.0.0.99:9/\r\n"))
        await writer.drain()
        self.answered += 1

    def _entry(self, domain: str) -> dict[str, object]:
        if domain not in self.decimals:
            missing = {"status_code": 404, "error": "Domain not found", "page_rank_decimal": "", "rank": None}
            return {**missing, "page_rank_integer": 0, "domain": domain}
        decimal = self.decimals[domain]
        found = {"status_code": 200, "error": "", "page_rank_integer": round(decimal), "page_rank_decimal": decimal, "rank": "6"}
        return {**found, "domain": domain}


def response(body: str, *, status: str = "200 OK", head: str = "") -> bytes:
    data = body.encode("latin-1")
    return f"HTTP/1.1 {status}\r\nContent-Length: {len(data)}\r\n{head}\r\n".encode() + data


@asynccontextmanager
async def rank_server(mood: Mood = Mood.FINE, **decimals: float) -> AsyncIterator[RankServer]:
    """While it lasts. Domains are given with `_` for the dot."""
    made = RankServer(mood=mood, decimals={name.replace("_", "."): decimal for name, decimal in decimals.items()})
    connections: set[asyncio.Task[None]] = set()

    def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.ensure_future(made.serve(reader, writer))
        connections.add(task)
        task.add_done_callback(connections.discard)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    made.url = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/api/v1.0/getPageRank"
    try:
        yield made
    finally:
        server.close()
        for task in list(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)
        await server.wait_closed()
