"""The least that each step of a page can cost: the cheapest sensible way to do the same work with the best library known for it.

No politeness, no hostile peers, no engine beneath but a file or a dict: none of this could crawl the web, and all of it does for an
ordinary page what our own step does. So the distance between the two is what safety and order cost us, or what we waste.

Knows: pages, links and bytes. Must not know: how our own steps do it.
"""

import asyncio
import heapq
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import numpy as np
import pika
import pycurl
from ada_url import join_url
from isal import isal_zlib
from msgspec import json
from pika.adapters.asyncio_connection import AsyncioConnection
from selectolax.lexbor import LexborHTMLParser

from gossamer.ids import UrlId
from gossamer.messages import Found, Link, Url

BODY_BYTES_MAX: Final = 500_000
Headers = Sequence[tuple[str, str]]


# --- Download: pycurl's own loop, no event loop above it ---


class Client:
    """Connections that are kept, as many transfers at once as there are handles."""

    def __init__(self, parallel: int) -> None:
        self._multi = pycurl.CurlMulti()
        self._idle = [pycurl.Curl() for _ in range(parallel)]
        self._bodies: dict[pycurl.Curl, bytearray] = {}
        self._heads: dict[pycurl.Curl, list[bytes]] = {}
        for curl in self._idle:
            curl.setopt(pycurl.NOSIGNAL, 1)
            curl.setopt(pycurl.HTTPHEADER, ["Accept-Encoding: gzip, deflate"])
            curl.setopt(pycurl.HTTP_CONTENT_DECODING, 0)
            curl.setopt(pycurl.TIMEOUT_MS, 30_000)
            curl.setopt(pycurl.MAXFILESIZE, BODY_BYTES_MAX)

    def fetch(self, urls: Sequence[str]) -> list[bytes]:
        """The bodies as they came, in the order of their arrival."""
        waiting, bodies = iter(urls), []
        running = self._start(waiting)
        while running:
            self._multi.perform()
            queued = 1
            while queued:
                queued, well, ill = self._multi.info_read()
                assert not ill, ill
                for curl in well:
                    self._multi.remove_handle(curl)
                    bodies.append(bytes(self._bodies.pop(curl)))
                    self._idle.append(curl)
                    running -= 1
            running += self._start(waiting)
            if running:
                self._multi.select(1.0)
        return bodies

    def close(self) -> None:
        for curl in self._idle:
            curl.close()
        self._multi.close()

    def _start(self, waiting: Iterator[str]) -> int:
        started = 0
        while self._idle and (url := next(waiting, None)) is not None:
            curl = self._idle.pop()
            body = bytearray()
            head: list[bytes] = []
            self._bodies[curl], self._heads[curl] = body, head
            curl.setopt(pycurl.URL, url)
            curl.setopt(pycurl.HEADERFUNCTION, head.append)
            curl.setopt(pycurl.WRITEFUNCTION, body.extend)
            self._multi.add_handle(curl)
            started += 1
        return started


# --- Decode: isal, bounded, and the charset that the head or the first bytes name ---


def decode(headers: Headers, body: bytes) -> str:
    fields = {name.lower(): value for name, value in headers}
    if (coding := fields.get("content-encoding")) is not None:
        body = isal_zlib.decompressobj(wbits=_WINDOWS[coding]).decompress(body, BODY_BYTES_MAX)
    named = _CHARSET(fields.get("content-type", "").encode()) or _CHARSET(body[:1024])
    charset = named[1].decode().lower() if named else "utf-8"
    return body.decode(_CODECS.get(charset, charset), "replace")


_CODECS: Final = {"utf-8": "utf-8-sig", "iso-8859-1": "cp1252"}
_WINDOWS: Final = {"gzip": 31, "deflate": 15}
_CHARSET: Final = re.compile(rb"charset=[\"']?([\w-]+)").search


# --- Parse: selectolax, one selector for links and one call for the text ---


def parse(html: bytes | str) -> tuple[str, list[str], str, str]:
    """Title, links, what the page asks of robots, and its text without the site's own parts."""
    tree = LexborHTMLParser(html)
    title = tree.css_first("title")
    hrefs = [node.attributes["href"] or "" for node in tree.css("a[href],area[href]")]
    robots = tree.css_first("meta[name=robots]")
    tree.strip_tags(_NO_TEXT)
    text = "" if tree.body is None else tree.body.text(separator=" ")
    return "" if title is None else title.text(), hrefs, str(robots and robots.attributes.get("content")), text


_NO_TEXT: Final = ["script", "style", "noscript", "iframe", "svg", "nav", "header", "footer", "aside"]


# --- Links: ada-url, a dict for each site, blake2b ---


class Links:
    """Identities and ids of links: what the site's pages have in common is known after the first of them."""

    def __init__(self) -> None:
        self._sites: dict[str, dict[str, bytes]] = {}

    def ids(self, base: str, hrefs: Iterable[str], charset: str) -> list[bytes]:
        known = self._sites.setdefault(base[: base.index("/", 8)], {})
        found: dict[bytes, None] = {}
        for href in hrefs:
            if not href.isascii() and "?" in href:
                href = _in_charset(href, charset)
            id = known.get(href)
            if id is None:
                id = _id(base, href)
                if href.startswith(("/", "http")):
                    known[href] = id
            if id:
                found[id] = None
        return list(found)


def _in_charset(href: str, charset: str) -> str:
    path, _, query = href.partition("#")[0].strip().partition("?")
    return f"{path}?{quote(query, safe='=&%+', encoding=charset)}"


def _id(base: str, href: str) -> bytes:
    """Empty for what is no link to a page."""
    try:
        url = join_url(base, href)
    except ValueError:
        return b""
    if not url.startswith("http"):
        return b""
    url = url.partition("#")[0]
    if "%" in url:
        url = _ESCAPE(lambda escape: chr(int(escape[1], 16)), url)
    path, _, query = url.partition("?")
    if len(path) < len(url):
        kept = sorted(each for each in query.split("&") if each and not each.startswith("utm_"))
        url = f"{path}?{'&'.join(kept)}" if kept else path
    return blake2b(url.encode(), digest_size=16).digest()


#: Of letters, digits and `-._~`.
_ESCAPE: Final = re.compile(r"%(2[DEde]|3[0-9]|[46][1-9A-Fa-f]|[57][0-9Aa]|5[Ff]|7[Ee])").sub


# --- Sketch: one-permutation MinHash, all words at once in numpy ---

SHINGLE_WORDS: Final = 5
BINS: Final = 256
BANDS: Final = 16


def sketch(text: str) -> tuple[bytes, list[bytes]]:
    """A signature of 256 values, and its bands. An empty bin takes the value of the next."""
    letters = np.frombuffer(f" {text.lower()} ".encode()[: len(_POWERS)], np.uint8)
    blanks = np.flatnonzero(letters <= 32)
    sums = np.cumsum(_POWERS[: len(letters)] * letters * (letters > 32), dtype=np.uint64)[blanks]
    words = (sums[1:] - sums[:-1]) * _BACK[blanks[:-1]]
    words = words[np.diff(blanks) > 1]
    count = max(1, len(words) - SHINGLE_WORDS + 1)
    shingles = words[:count] * _FACTORS[0]
    for place in range(1, min(SHINGLE_WORDS, len(words))):
        shingles += words[place : place + count] * _FACTORS[place]
    shingles ^= shingles >> np.uint64(32)
    shingles *= _FACTORS[0]
    shingles.sort()
    least = shingles[np.minimum(np.searchsorted(shingles, _STARTS), count - 1)].astype(np.uint32)
    signature = least.tobytes()
    size = len(signature) // BANDS
    return signature, [signature[at : at + size] for at in range(0, len(signature), size)]


_BASE: Final = 0x9E3779B97F4A7C15
_POWERS: Final = np.cumprod(np.full(1 << 18, _BASE, np.uint64), dtype=np.uint64)
_BACK: Final = np.cumprod(np.full(1 << 18, pow(_BASE, -1, 1 << 64), np.uint64), dtype=np.uint64)
_FACTORS: Final = np.array([pow(_BASE, power, 1 << 64) for power in (3, 5, 7, 11, 13)], np.uint64)
_STARTS: Final = np.arange(BINS, dtype=np.uint64) << np.uint64(64 - 8)


class Twins:
    """Pages by their hash and by their bands, in memory."""

    def __init__(self) -> None:
        self._exact: dict[bytes, bytes] = {}
        self._bands: dict[bytes, bytes] = {}
        self._signatures: dict[bytes, bytes] = {}

    def judge(self, id: bytes, exact: bytes, signature: bytes, bands: Sequence[bytes]) -> bytes | None:
        """The page that says the same, or nearly; else it is this one from here on."""
        if (twin := self._exact.setdefault(exact, id)) != id:
            return twin
        mine = np.frombuffer(signature, np.uint32)
        for band in bands:
            other = self._bands.setdefault(band, id)
            if other != id and np.count_nonzero(np.frombuffer(self._signatures[other], np.uint32) == mine) > 0.9 * len(mine):
                return other
        self._signatures[id] = signature
        return None


# --- Store: isal members, one write and one fsync a group ---


def pack(pages: Iterable[tuple[str, Headers, bytes]]) -> bytes:
    """URLs, heads and bodies as WARC records, each a gzip member."""
    members = []
    for url, headers, body in pages:
        http = "HTTP/1.1 200 OK\r\n" + "".join(f"{name}: {value}\r\n" for name, value in headers)
        head = (
            f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\n"
            f"WARC-Payload-Digest: sha256:{sha256(body).hexdigest()}\r\n"
            f"Content-Length: {len(http) + 2 + len(body)}\r\n\r\n{http}\r\n"
        )
        members.append(isal_zlib.compress(b"".join((head.encode(), body, b"\r\n\r\n")), 1, 31))
    return b"".join(members)


def store(path: Path, segment: bytes) -> None:
    """Durably."""
    with path.open("xb") as file:
        file.write(segment)
        file.flush()
        os.fsync(file.fileno())


# --- Ledger: SQLite, one durable commit a group, known links never reach it ---


class Ledger:
    """URLs and what waits of them, in a file. A group of pages is claimed, closed and its links entered in one transaction."""

    def __init__(self, path: Path) -> None:
        self._sql = sqlite3.connect(path, isolation_level=None)
        self._known: set[bytes] = set()
        for pragma in ("journal_mode=WAL", "synchronous=FULL", "cache_size=-32768", "wal_autocheckpoint=4000"):
            self._sql.execute(f"PRAGMA {pragma}")
        self._sql.executescript(
            "CREATE TABLE urls (id BLOB PRIMARY KEY, url TEXT, domain TEXT, depth INT, state INT, facts BLOB) WITHOUT ROWID;"
            "CREATE TABLE waiting (domain TEXT, priority INT, id BLOB, PRIMARY KEY (domain, priority, id)) WITHOUT ROWID;"
        )

    def add(self, links: Sequence[Link], depth: int) -> None:
        new = [link for link in links if link.id not in self._known]
        self._known.update(link.id for link in new)
        self._sql.executemany("INSERT OR IGNORE INTO urls VALUES (?, ?, ?, ?, 0, NULL)", [(*link[:3], depth) for link in new])
        self._sql.executemany("INSERT OR IGNORE INTO waiting VALUES (?, 50, ?)", [(link.domain, link.id) for link in new])

    def live(self, group: Sequence[tuple[Url, bytes, Sequence[Link]]]) -> None:
        """Pages with what is known of them and their links."""
        self._sql.execute("BEGIN IMMEDIATE")
        for url, facts, links in group:
            self._sql.execute("SELECT id FROM waiting WHERE domain = ? ORDER BY priority LIMIT 1", (url.domain,)).fetchone()
            self._sql.execute("DELETE FROM waiting WHERE domain = ? AND priority = 50 AND id = ?", (url.domain, url.id))
            self._sql.execute("UPDATE urls SET state = 1 WHERE id = ?", (url.id,))
            self._sql.execute("UPDATE urls SET state = 2, facts = ? WHERE id = ?", (facts, url.id))
            self.add(links, url.depth + 1)
        self._sql.execute("COMMIT")

    def close(self) -> None:
        self._sql.close()


# --- Frontier: a heap, and one message for all new links of a group ---


class Frontier:
    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Url]] = []
        self._count = 0

    def pass_on(self, urls: Sequence[Url]) -> list[Url]:
        """Sent, read, ranked and handed out again."""
        for url in json.decode(json.encode(Found(tuple(urls))), type=Found).urls:
            self._count += 1
            heapq.heappush(self._heap, (50, self._count, url))
        return [heapq.heappop(self._heap)[2] for _ in urls]


# --- The servers of a distributed crawl ---

#: A page is closed and its links are entered: ids in one argument, since each further one costs the client as much as ten ids.
VERB: Final = """
local ids, new = {}, {}
for at = 1, #ARGV[2], 16 do ids[#ids + 1] = string.sub(ARGV[2], at, at + 15) end
if #ids > 0 then
  local known = redis.call('SMISMEMBER', KEYS[1], unpack(ids))
  for at = 1, #known do if known[at] == 0 then new[#new + 1] = ids[at] end end
end
if #new > 0 then redis.call('SADD', KEYS[1], unpack(new)); redis.call('RPUSH', KEYS[2], unpack(new)) end
redis.call('HSET', KEYS[3], ARGV[1], ARGV[3])
return new
"""


async def redis_verbs(client: Any, sha: str, keys: Sequence[str], pages: Sequence[tuple[UrlId, bytes, bytes]], size: int) -> None:
    """One verb a page, `size` to a pipeline: its id, the ids of its links, its facts."""
    for start in range(0, len(pages), size):
        pipeline = client.pipeline(transaction=False)
        for page in pages[start : start + size]:
            pipeline.evalsha(sha, len(keys), *keys, *page)
        await pipeline.execute()


async def redis_twins(client: Any, prefix: str, pages: Sequence[tuple[UrlId, Sequence[bytes]]], size: int) -> None:
    """Who has the bands of a page, and that it has them now; `size` pages to a pipeline."""
    for start in range(0, len(pages), size):
        pipeline = client.pipeline(transaction=False)
        for id, bands in pages[start : start + size]:
            if keys := [prefix.encode() + band for band in bands]:
                pipeline.mget(keys)
                pipeline.mset(dict.fromkeys(keys, id))
        await pipeline.execute()


class Rabbit:
    """Messages through one queue, in and out: 64 at a time are not confirmed yet, and every sixteenth is acknowledged."""

    def __init__(self, url: str, queue: str) -> None:
        self._url, self._queue = url, queue
        self._loop = asyncio.get_running_loop()
        self._confirmed = 0
        self._news = asyncio.Event()

    async def open(self) -> None:
        opened, ready = self._loop.create_future(), self._loop.create_future()
        AsyncioConnection(pika.URLParameters(self._url), on_open_callback=opened.set_result, custom_ioloop=self._loop)
        self._connection = await opened
        self._connection.channel(on_open_callback=ready.set_result)
        self._channel = await ready
        await self._asked(self._channel.queue_declare, self._queue, auto_delete=True)
        await self._asked(self._channel.basic_qos, prefetch_count=64)
        await self._asked(self._channel.confirm_delivery, self._on_confirm)

    async def pass_on(self, bodies: Sequence[bytes]) -> None:
        received = 0
        all_there = self._loop.create_future()

        def on_message(channel: Any, method: Any, _properties: object, _body: bytes) -> None:
            nonlocal received
            received += 1
            if received % 16 == 0 or received == len(bodies):
                channel.basic_ack(method.delivery_tag, multiple=True)
            if received == len(bodies):
                all_there.set_result(None)

        self._channel.basic_consume(self._queue, on_message)
        self._confirmed = 0
        for sent, body in enumerate(bodies):
            while sent - self._confirmed >= 64:
                self._news.clear()
                await self._news.wait()
            self._channel.basic_publish("", self._queue, body, pika.BasicProperties(delivery_mode=2))
        await all_there

    def close(self) -> None:
        self._connection.close()

    async def _asked(self, verb: Any, *words: object, **options: object) -> None:
        answered = self._loop.create_future()
        verb(*words, callback=answered.set_result, **options)
        await answered

    def _on_confirm(self, frame: Any) -> None:
        self._confirmed = frame.method.delivery_tag
        self._news.set()
