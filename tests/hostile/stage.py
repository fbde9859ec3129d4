"""A stage: a web of its own for one crawl, with names, addresses and times as the case wants them. Nothing leaves the machine.

The crawl is a real one, on the embedded engine, and has no network allowed to it: for the crawler the sites are public. Two things
are exchanged. Names are looked up in a table. And where curl opens a socket, after the crawler's own guard has had its say, the
dial is written down and the socket it gets is connected already: to the stage, on loopback. So no packet is ever sent to an address
that a page names, and what was dialled is known to the last one.
"""

import asyncio
import os
import socket
import ssl
import struct
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Final
from unittest.mock import patch

import pycurl

from adapters.wiring import open_embedded, open_file
from gossamer.clock import Clock, SystemClock
from gossamer.ids import CrawlId
from gossamer.outcomes import Outcome
from gossamer.records import Counts, UrlRecord
from gossamer.settings import Budgets, Fetching, Manners, Patience, Settings, Start, Storage
from gossamer.urls import identity, requested, url_id
from services.controller.engines import Stop, beginning
from services.controller.engines.embedded import EmbeddedEngine
from services.worker import download
from services.worker.resolve import LookupFailed, Record
from tests.hostile import certificates
from tests.hostile.playing import server_context

CRAWL: Final = CrawlId("stage")
#: A crawl that does not end by itself is broken.
PATIENCE_S: Final = 60.0
PUBLIC: Final = "93.184.216.34"
NO_SERVERS: Final = Storage()
_TLS_RECORD: Final = b"\x16"


# --- What a site says ---


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, as the stage saw it."""

    at: float  #: by the crawl's own clock
    host: str  #: as the request names it
    target: str
    head: str

    @property
    def url(self) -> str:
        return f"http://{self.host}{self.target}"


#: The whole message; or its pieces, as they are to be sent. A generator that raises `ConnectionResetError` resets the connection.
Reply = bytes | AsyncIterator[bytes]
Site = Callable[[Asked], Reply]


def reply(body: str | bytes = "", *headers: str, status: int = 200, type: str = "text/html") -> bytes:
    content = body.encode() if isinstance(body, str) else body
    head = [f"HTTP/1.1 {status} Whatever", f"Content-Type: {type}", f"Content-Length: {len(content)}", *headers]
    return "\r\n".join(head).encode("latin-1") + b"\r\n\r\n" + content


def page(name: str, body: str = "", *headers: str) -> bytes:
    """One that is like no other."""
    return reply(f"<!doctype html><title>{name}</title><p>This is {name}, and nothing else is.</p>{body}", *headers)


def text(body: str | bytes, *headers: str) -> bytes:
    return reply(body, *headers, type="text/plain")


def moved(to: str, status: int = 302) -> bytes:
    return reply("", f"Location: {to}", status=status)


GONE: Final = reply(status=404)


def site(pages: Mapping[str, Reply | Callable[[], Reply]], *, robots: Reply | Callable[[], Reply] = GONE) -> Site:
    """Answers by path and query; what it doesn't know is a page of its own name."""

    def answer(asked: Asked) -> Reply:
        found = robots if asked.target == "/robots.txt" else pages.get(asked.target, page(asked.url))
        return found() if callable(found) else found

    return answer


# --- The stage ---


class Hurried:
    """A clock that runs so many times as fast. Whoever asks a site later than that is late, but nobody can be early."""

    def __init__(self, times: float) -> None:
        self._times, self._began_at = times, time.time()
        self._began = time.monotonic()

    def now(self) -> float:
        return self._began_at + self.monotonic()

    def monotonic(self) -> float:
        return (time.monotonic() - self._began) * self._times

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(max(seconds, 0) / self._times)


@dataclass
class Stage:
    """One web. `names` has what is answered for each name, one answer after the other and the last one for ever."""

    sites: Mapping[str, Site]  #: by the host of the request
    names: Mapping[str, Sequence[Sequence[str] | LookupFailed]] = field(default_factory=dict)
    clock: Clock = field(default_factory=SystemClock)
    tls: bool = False  #: at port 443, for the host h.test
    asked: list[Asked] = field(default_factory=list)
    dialled: list[tuple[str, int]] = field(default_factory=list)
    looked_up: list[str] = field(default_factory=list)
    in_flight: dict[str, int] = field(default_factory=dict)
    most_in_flight: dict[str, int] = field(default_factory=dict)  #: by host

    async def crawl(self, *seeds: str, settings: Settings | None = None, also: Sequence[str] = ()) -> "Crawled":
        """A crawl from these URLs to its end. `also`: URLs that nobody may ask for, but that it should know of."""
        chosen = hasty() if settings is None else settings
        chosen = replace(chosen, start=replace(chosen.start, seeds=seeds))
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            async with self._listening() as port, self._dialling(port, folder):
                ports = await open_embedded(folder, CRAWL, self.clock)
                await ports.ledger.create(beginning.rules(chosen))
                plugins = beginning.Plugins((), ())
                engine = EmbeddedEngine(chosen, CRAWL, ports, self.clock, plugins, lambda: self._look_up)
                async with asyncio.timeout(PATIENCE_S):
                    ended = await engine.run(lambda _: None, Stop())
            ledger = open_file(folder, self.clock)
            try:
                urls = [requested(each) for each in (*seeds, *also, *(asked.url for asked in self.asked))]
                records = await ledger.records([url_id(identity(url)) for url in urls])
                known = {url: record for url, record in zip(urls, records, strict=True) if record is not None}
                return Crawled(known, ended.counts, dict(await ledger.refused()))
            finally:
                await ledger.close()

    def seen(self, host: str) -> list[str]:
        """What this host was asked for, in order."""
        return [each.target for each in self.asked if each.host == host]

    def gaps_s(self, host: str) -> list[float]:
        """Between the starts of requests to it."""
        starts = [each.at for each in self.asked if each.host == host]
        return [later - sooner for sooner, later in pairwise(starts)]

    async def _look_up(self, name: str) -> Sequence[Record]:
        self.looked_up.append(name)
        answers = self.names.get(name, [[PUBLIC]] if name in self.sites else [LookupFailed("no such name", again=False)])
        answer = answers[min(self.looked_up.count(name), len(answers)) - 1]
        if isinstance(answer, LookupFailed):
            raise answer
        return [Record(address, 0.0) for address in answer]

    @asynccontextmanager
    async def _dialling(self, port: int, folder: Path) -> AsyncIterator[None]:
        """Dials that the crawler's guard lets through end on the stage, and are written down."""
        made, opened = download._handle, download._Transfer._on_open

        def handle(user_agent: str) -> pycurl.Curl:
            curl = made(user_agent)
            curl.setopt(pycurl.SOCKOPTFUNCTION, lambda *_: pycurl.SOCKOPT_ALREADY_CONNECTED)
            return curl

        def on_open(transfer: download._Transfer, purpose: int, where: "pycurl.CurlSockaddr") -> socket.socket | int:
            meant = opened(transfer, purpose, where)
            if not isinstance(meant, socket.socket):
                return meant
            self.dialled.append(where.addr[:2])
            staged = socket.create_connection(("127.0.0.1", tls_port if self.tls and where.addr[1] == 443 else port))
            staged.setblocking(False)
            asyncio.get_running_loop().call_soon(staged.close)  # pycurl has a duplicate by then
            return staged

        authority = folder / "authority.pem"
        authority.write_text(certificates.CA, encoding="ascii")
        trusting = patch.dict(os.environ, SSL_CERT_FILE=str(authority))
        with patch.object(download, "_handle", handle), patch.object(download._Transfer, "_on_open", on_open), trusting:
            async with self._listening(server_context(certificates.GOOD)) as tls_port:
                yield

    @asynccontextmanager
    async def _listening(self, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
        serving: set[asyncio.Task[None]] = set()

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            task = asyncio.current_task()
            assert task is not None
            serving.add(task)
            try:
                while await self._serve(reader, writer):
                    pass
            except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
                pass  # the client went away, or was sent away; or the play is over
            finally:
                serving.discard(task)
                writer.transport.abort()

        server = await asyncio.start_server(accept, "127.0.0.1", 0, ssl=tls)
        try:
            yield server.sockets[0].getsockname()[1]
        finally:
            server.close()
            for task in serving:
                task.cancel()
            await asyncio.gather(*serving, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        first = await reader.readexactly(1)
        if first == _TLS_RECORD:
            writer.write(b"no TLS here\r\n")
            return False
        head = (first + await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        lines = head.split("\r\n")
        host = next(line.partition(":")[2].strip() for line in lines if line.lower().startswith("host:"))
        asked = Asked(self.clock.monotonic(), host, lines[0].split()[1], head)
        self.asked.append(asked)
        self.in_flight[host] = self.in_flight.get(host, 0) + 1
        self.most_in_flight[host] = max(self.most_in_flight.get(host, 0), self.in_flight[host])
        try:
            answer = self.sites[host](asked)
            if isinstance(answer, bytes):
                writer.write(answer)
                await writer.drain()
                return True
            sending, gone = asyncio.ensure_future(_send(answer, writer)), asyncio.ensure_future(reader.read(1))
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
            for each in (sending, gone):
                each.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)
            if not sending.cancelled():
                sending.result()
            return False
        except ConnectionResetError:
            raw: socket.socket = writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            raise
        finally:
            self.in_flight[host] -= 1


async def _send(pieces: AsyncIterator[bytes], writer: asyncio.StreamWriter) -> None:
    async for piece in pieces:
        writer.write(piece)
        await writer.drain()


@dataclass(frozen=True, slots=True)
class Crawled:
    """What came of a crawl."""

    records: Mapping[str, UrlRecord]  #: by URL
    counts: Counts
    refused: Mapping[str, str]  #: links that were not added: the reason, and one of them

    def outcome(self, url: str) -> Outcome:
        outcome = self.records[requested(url)].outcome
        assert outcome is not None
        return outcome

    def reason(self, url: str) -> str:
        return self.records[requested(url)].reason


def hasty(
    *,
    delay_s: float = 0.0,
    robots_wait_s: float = 0.01,
    attempt_timeout_s: float = 5.0,
    max_page_bytes: int = 500_000,
    allow_net: tuple[str, ...] = (),
    storage: Storage = NO_SERVERS,
) -> Settings:
    """The settings of a crawl that waits for as little as it may, on two workers; its lease outlasts the most hurried clock."""
    return Settings(
        start=Start(workers=2, modules=()),
        budgets=Budgets(max_bytes=1_000_000_000, max_page_bytes=max_page_bytes),
        manners=Manners(delay_s=delay_s, allow_net=allow_net),
        fetching=Fetching(attempt_timeout_s=attempt_timeout_s, similarity=None),
        patience=Patience(lease_s=10_000_000.0, robots_wait_s=robots_wait_s),
        storage=storage,
    )
