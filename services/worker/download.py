"""One request, one answer: dialled at an address that was judged, streamed under a deadline and a cap, cut when it is no page.

What a peer can do wrong ends here as a `Trouble`, and nothing that it sends is believed further than it was checked. Redirects
are not followed, cookies not kept, content codings not undone: each would be a request or an allocation that nobody asked for.

Knows: HTTP/1.1 as curl reads it. Must not know: robots, budgets, retries (it says whether one is worth it), what a page is for.
"""

import asyncio
import logging
import re
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from ipaddress import ip_address
from typing import Final

import msgspec
import pycurl

from gossamer.clock import Clock
from gossamer.outcomes import Outcome
from gossamer.urls import origin_of
from services.worker import sitemap
from services.worker.addresses import endpoint
from services.worker.multi import Ended, Multi
from services.worker.resolve import Resolution, Resolver, Unresolved
from services.worker.types import FIRST_BYTES, Headers, Label, label_of, refusal_by_bytes, refusal_by_head

log = logging.getLogger("gossamer.worker")

#: The most that curl reads, and hands over, at a time. So a body that is cut at the first piece past its limit has passed it by
#: no more than this, and a request's reservation is its cap and one read. What came along with a head that ended the transfer,
#: no more than one read either, is not counted.
READ_BYTES: Final = 16 * 1024

#: Head and trailers together. Real ones have 120 lines at most; curl alone would take 300 KB.
HEAD_BYTES_MAX: Final = 64 * 1024

INTERIM_MAX: Final = 20

#: The body of a redirect or an error is thrown away, but read if it is this short and quick: a new connection costs more than it
#: does, half a page's work with TLS. Most are under 1 KB.
DRAIN_BYTES_MAX: Final = READ_BYTES
DRAIN_S: Final = 1.0

#: On top of the body: head, framing and TLS, with room for servers that write in tiny chunks.
WIRE_EXTRA_BYTES: Final = 256 * 1024

CONNECT_TIMEOUT_S: Final = 10.0
CONNECTIONS_MAX: Final = 64


class Request(msgspec.Struct, frozen=True):
    """What to ask for, and how much of it to take."""

    url: str  #: in its requested form
    allowance_bytes: int  #: never will more of a body be received
    page_cap_bytes: int  #: a larger body is refused; a sitemap, and with `types` off any body, is cut
    deadline_s: float  #: for the whole attempt, from the name's look-up to the last byte; nothing prolongs it
    types: bool  #: a page is wanted: other types are refused before their bodies are read. Off for robots.txt
    sitemaps: bool = False  #: a sitemap will do as well as a page


class Answer(msgspec.Struct, frozen=True):
    """A whole message. What its status means is for the caller."""

    status: int
    headers: Headers
    body: bytes  #: as it came, content coding and all; empty unless the status is a success with a body
    address: str
    started_at: float  #: by the monotonic clock
    took_s: float
    received_bytes: int  #: of the body, also of what was thrown away
    cut: bool = False  #: there was more than the cap (of a sitemap, or with `types` off)


class Trouble(msgspec.Struct, frozen=True):
    """No message, or one that is not taken."""

    outcome: Outcome
    reason: str
    received_bytes: int
    started_at: float | None  #: None: nothing was sent
    again: bool  #: worth the one retry


class Downloader:
    """Fetches over connections that are kept and shared. Any number of fetches at once; belongs to the running loop."""

    def __init__(
        self,
        resolver: Resolver,
        clock: Clock,
        *,
        user_agent: str,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        connections_max: int = CONNECTIONS_MAX,
    ) -> None:
        self._resolver, self._clock = resolver, clock
        self._user_agent, self._connect_timeout_s = user_agent, connect_timeout_s
        self._multi = Multi(connections_max)
        self._idle: list[_Transfer] = []

    async def fetch(self, request: Request, check: Callable[[], None] = lambda: None) -> Answer | Trouble:
        """Asks once. A fetch that is cancelled closes its connection at once.

        `check` is called right before anything is sent, and may raise: a look-up takes its time, and whoever began it may have been
        frozen meanwhile.
        """
        asked_at = self._clock.monotonic()
        host, port = endpoint(request.url)
        where = self._resolver.known(host, port)
        if where is None:
            where = await self._resolve(host, port, request.deadline_s)
        if isinstance(where, Unresolved):
            return Trouble(where.outcome, where.reason, 0, None, where.again)
        check()
        started_at = self._clock.monotonic()
        left_s = request.deadline_s - (started_at - asked_at)
        transfer = self._idle.pop() if self._idle else _Transfer(self._multi, self._user_agent)
        try:
            transfer.prepare(request, host, port, where.addresses, left_s, min(left_s, self._connect_timeout_s))
            ended = await self._multi.perform(transfer.curl, transfer.limit_bytes + WIRE_EXTRA_BYTES)
            if transfer.is_stale:
                check()
                transfer.dial_anew()
                ended = await self._multi.perform(transfer.curl, transfer.limit_bytes + WIRE_EXTRA_BYTES)
            return transfer.result(ended, started_at, self._clock.monotonic())
        finally:
            transfer.forget()
            self._idle.append(transfer)

    async def close(self) -> None:
        """Closes all connections."""
        self._multi.close()
        for transfer in self._idle:
            transfer.curl.close()
        self._idle.clear()

    async def _resolve(self, host: str, port: int, deadline_s: float) -> Resolution:
        try:
            async with asyncio.timeout(deadline_s):
                return await self._resolver.resolve(host, port)
        except TimeoutError:
            return Unresolved(Outcome.DNS_FAILED, f"no answer for {host} within {deadline_s:g} s", again=True)


class _Transfer:
    """A curl handle and what has arrived on it. Used again and again: setting one up costs as much as a page does.

    Its callbacks raise nothing: curl would only see that they failed. What they find goes into `trouble`, what they break into
    `broken`, and what they return ends the transfer.
    """

    def __init__(self, multi: Multi, user_agent: str) -> None:
        self._multi = multi
        self._loop = asyncio.get_running_loop()
        self.curl = _handle(user_agent)
        self.curl.setopt(pycurl.OPENSOCKETFUNCTION, self._on_open)
        self.curl.setopt(pycurl.PREREQFUNCTION, self._on_connected)
        self.curl.setopt(pycurl.HEADERFUNCTION, self._on_head)
        self.curl.setopt(pycurl.WRITEFUNCTION, self._on_body)
        self._drain_timer: asyncio.TimerHandle | None = None
        self.forget()

    def prepare(self, request: Request, host: str, port: int, addresses: Sequence[str], left_s: float, connect_s: float) -> None:
        """For the next request."""
        assert request.allowance_bytes >= READ_BYTES
        self._wants_page, self._takes_sitemap = request.types, request.sitemaps
        self._addresses, self._port = addresses, port
        self.limit_bytes = min(request.page_cap_bytes, request.allowance_bytes - READ_BYTES)
        curl = self.curl
        # curl would spell the path's escapes in its own way; what follows the origin goes out as it was linked to.
        origin = origin_of(request.url)
        curl.setopt(pycurl.URL, origin)
        curl.setopt(pycurl.REQUEST_TARGET, request.url[len(origin) :])
        # The plus lets curl forget the entry after a minute: without it one stays for every host of the crawl. It reads the list
        # anew for each transfer, so a name that has moved is dialled where it was judged last.
        is_name = host not in addresses and host[0] != "["
        curl.setopt(pycurl.RESOLVE, [f"+{host}:{port}:{','.join(addresses)}"] if is_name else [])
        curl.setopt(pycurl.FRESH_CONNECT, 0)
        curl.setopt(pycurl.TIMEOUT_MS, max(1, int(left_s * 1000)))
        curl.setopt(pycurl.CONNECTTIMEOUT_MS, max(1, int(connect_s * 1000)))

    def forget(self) -> None:
        """Lets go of what arrived, and of the timer."""
        self._lines: list[bytes] = []
        self._head_bytes = 0
        self._interim = 0
        self._status = 0
        self._headers: Headers | None = None  # of the final answer, once its head is whole
        self._label: Label | None = None  # while the first bytes of the body are still to be looked at
        self._no_page: tuple[Outcome, str] | None = None  # why not, by its head: only as a sitemap will it be taken
        self._body = bytearray()  # not a list of pieces: they may come in twos
        self._received_bytes = 0
        self._unread = False
        self._cut = False
        if self._drain_timer is not None:
            self._drain_timer.cancel()
            self._drain_timer = None
        self._dialled = False
        self.is_stale = False  # it ended before it began, on a connection that could not be used again
        self._no_socket: str | None = None  # why; another address may still do
        self._trouble: tuple[Outcome, str] | None = None
        self._broken: Exception | None = None

    def dial_anew(self) -> None:
        """For the same request, of which nothing was sent yet."""
        self.is_stale = False
        self.curl.setopt(pycurl.FRESH_CONNECT, 1)

    # --- What curl calls ---

    def _on_open(self, _purpose: int, where: "pycurl.CurlSockaddr") -> socket.socket | int:
        """The very address that is about to be dialled, however curl came by it."""
        try:
            address, port = where.addr[:2]
            if port != self._port or ip_address(address) not in map(ip_address, self._addresses):
                self._trouble = Outcome.ADDRESS_REFUSED, f"{address} is not the address that was judged"
                return _NO_SOCKET
            opened = socket.socket(where.family, where.socktype, where.protocol)
            self._dialled = True
            self._loop.call_soon(opened.close)  # pycurl has a duplicate by then
            return opened
        except OSError as error:
            self._no_socket = f"no socket: {error.strerror}"
        except Exception as error:
            self._broken = error
        return _NO_SOCKET

    def _on_connected(self, _ip: str, _local_ip: str, _port: int, local_port: int) -> int:
        """Nothing was sent yet. What lies on a connection that was kept is no answer to what we are about to ask.

        A certificate must name the host where names belong: curl would make do with its subject.
        """
        try:
            if not self._dialled and not self._multi.is_quiet(local_port):
                self.is_stale = True
                return _STOP
            chain = self.curl.getinfo(pycurl.INFO_CERTINFO)  # empty, but for a TLS connection that is new
            if not chain or any(name == _NAMES and _has_names(value) for name, value in chain[0]):
                return _GO_ON
            self._trouble = Outcome.TLS_FAILED, "a certificate without names"
        except Exception as error:
            self._broken = error
        return _STOP

    def _on_head(self, line: bytes) -> int | None:
        try:
            self._head_bytes += len(line)
            if self._head_bytes > HEAD_BYTES_MAX:
                return self._refuse(Outcome.MALFORMED, f"a head of more than {HEAD_BYTES_MAX} bytes")
            if len(line) > 2 or line.strip():
                self._lines.append(line)
            elif self._headers is None:  # a later blank line would end the trailers
                return self._on_head_end()
            return None
        except Exception as error:
            self._broken = error
            return _ABORT

    def _on_head_end(self) -> int | None:
        first = _STATUS_LINE(self._lines[0]) if self._lines else None  # curl makes do with less, even with none
        if first is None:
            return self._refuse(Outcome.MALFORMED, "a head without a status")
        self._status = status = int(first[1])
        if status < 200:
            self._lines.clear()
            self._interim += 1
            if status == 101 or self._interim > INTERIM_MAX:
                return self._refuse(Outcome.MALFORMED, f"an interim answer, {status}, that nobody asked for")
            return None
        self._headers = headers = _headers(self._lines)
        fields = {name.lower(): value for name, value in headers}
        length = _length(fields, headers)
        if isinstance(length, str):
            return self._refuse(Outcome.MALFORMED, length)
        if status == 206:
            return self._refuse(Outcome.MALFORMED, "a part that nobody asked for")
        if status not in _WITH_BODY:
            return self._drain(length)
        if self._wants_page:
            if (reason := refusal_by_head(headers)) is not None:
                return self._doubt(Outcome.WRONG_TYPE, reason)
            if length is not None and length > self.limit_bytes:
                return self._doubt(Outcome.TOO_LARGE, f"{length} bytes, it says")
            # Under a content coding the first bytes say nothing of the page; `decode` looks at them once it is off.
            if "content-encoding" not in fields:
                self._label = label_of(headers)
        return None

    def _doubt(self, outcome: Outcome, reason: str) -> int | None:
        """No page, by its head; but it may yet be a sitemap, which the first bytes tell."""
        assert self._headers is not None
        if not self._takes_sitemap or not sitemap.may_be_one(self._headers):
            return self._refuse(outcome, reason)
        self._no_page = outcome, reason
        return None

    def _on_body(self, piece: bytes) -> int | None:
        try:
            self._received_bytes += len(piece)
            if self._unread:
                return _ABORT if self._received_bytes > min(DRAIN_BYTES_MAX, self.limit_bytes) else None
            self._body += piece
            if self._received_bytes > self.limit_bytes:
                if self._wants_page and not self._is_sitemap():
                    return self._refuse(*(self._no_page or (Outcome.TOO_LARGE, f"more than {self.limit_bytes} bytes")))
                self._cut = True
                return _ABORT
            if self._received_bytes >= FIRST_BYTES and (self._label is not None or self._no_page is not None):
                refused, self._label, self._no_page = self._no_page or self._by_bytes(), None, None
                if refused is not None and not self._is_sitemap():
                    return self._refuse(*refused)
            return None
        except Exception as error:
            self._broken = error
            return _ABORT

    def _by_bytes(self) -> tuple[Outcome, str] | None:
        assert self._label is not None
        reason = refusal_by_bytes(bytes(self._body[:FIRST_BYTES]), self._label)
        return None if reason is None else (Outcome.WRONG_TYPE, reason)

    def _is_sitemap(self) -> bool:
        assert self._headers is not None
        return self._takes_sitemap and sitemap.begins_as_one(self._headers, bytes(self._body[: FIRST_BYTES + 1]))

    def _drain(self, length: int | None) -> int | None:
        self._unread = True
        if length == 0:
            return None
        if length is not None and length > DRAIN_BYTES_MAX:
            return _ABORT
        self._drain_timer = self._loop.call_later(DRAIN_S, self._multi.cut, self.curl, "the rest of an error was slow")
        return None

    def _refuse(self, outcome: Outcome, reason: str) -> int:
        self._trouble = outcome, reason
        return _ABORT

    # --- What it comes to ---

    def result(self, ended: Ended, started_at: float, now: float) -> Answer | Trouble:
        """The answer or the trouble of the transfer that has ended."""
        if self._broken is not None:  # by a fault of ours: it costs this page, and no crawl
            log.error("answer.unread", exc_info=self._broken)
            reason = f"a fault of ours: {type(self._broken).__name__} while it came"
            return self._in_trouble(Outcome.MALFORMED, reason, started_at, again=False)
        if self._no_page is not None and not self._is_sitemap():  # it ended before anybody looked
            self._trouble = self._trouble or self._no_page
        if self._trouble is not None:
            return self._in_trouble(*self._trouble, started_at, again=False)
        # How the end of a body came about that nobody wanted does not matter.
        whole = ended.code == 0 or self._unread or self._cut
        if whole and self._headers is not None:
            return Answer(
                status=self._status,
                headers=self._headers,
                body=bytes(self._body[: self.limit_bytes] if self._cut else self._body),
                address=self.curl.getinfo(pycurl.PRIMARY_IP),
                started_at=started_at,
                took_s=now - started_at,
                received_bytes=self._received_bytes,
                cut=self._cut,
            )
        if ended.code == 0:
            return self._in_trouble(Outcome.MALFORMED, "a head that ended early", started_at, again=True)
        outcome, again = self._meaning(ended.code)
        words = ended.words.encode("utf-8", "replace").decode()  # curl quotes the peer, whose bytes may be no text
        return self._in_trouble(outcome, self._no_socket or words or f"curl's error {ended.code}", started_at, again)

    def _meaning(self, code: int) -> tuple[Outcome, bool]:
        # curl says that time is up, or the connection lost, whatever it was about: what there was by then tells.
        if code == pycurl.E_OPERATION_TIMEDOUT and not self.curl.getinfo(pycurl.PRIMARY_IP):
            return Outcome.CONNECT_FAILED, True
        if code == pycurl.E_RECV_ERROR and not self._head_bytes:
            return Outcome.CONNECT_FAILED, True
        return MEANINGS.get(code, (Outcome.MALFORMED, False))

    def _in_trouble(self, outcome: Outcome, reason: str, started_at: float, again: bool) -> Trouble:
        return Trouble(outcome, reason, self._received_bytes, started_at, again)


#: What curl's errors mean, and whether a second try is worth it. What is not here is no HTTP that curl could read.
MEANINGS: Final = {
    pycurl.E_URL_MALFORMAT: (Outcome.URL_REFUSED, False),
    pycurl.E_COULDNT_RESOLVE_HOST: (Outcome.DNS_FAILED, False),
    pycurl.E_COULDNT_CONNECT: (Outcome.CONNECT_FAILED, True),
    pycurl.E_SEND_ERROR: (Outcome.CONNECT_FAILED, True),
    pycurl.E_GOT_NOTHING: (Outcome.CONNECT_FAILED, True),
    pycurl.E_OPERATION_TIMEDOUT: (Outcome.TIMEOUT, True),
    pycurl.E_PARTIAL_FILE: (Outcome.MALFORMED, True),
    pycurl.E_RECV_ERROR: (Outcome.MALFORMED, True),
    pycurl.E_BAD_CONTENT_ENCODING: (Outcome.BAD_ENCODING, False),  # a transfer coding other than chunked
    pycurl.E_SSL_CONNECT_ERROR: (Outcome.TLS_FAILED, True),
    pycurl.E_PEER_FAILED_VERIFICATION: (Outcome.TLS_FAILED, False),
    pycurl.E_SSL_CERTPROBLEM: (Outcome.TLS_FAILED, False),
    pycurl.E_SSL_CIPHER: (Outcome.TLS_FAILED, False),
    pycurl.E_SSL_ISSUER_ERROR: (Outcome.TLS_FAILED, False),
    pycurl.E_SSL_CACERT_BADFILE: (Outcome.TLS_FAILED, False),
}


def _handle(user_agent: str) -> pycurl.Curl:
    curl = pycurl.Curl()
    curl.setopt(pycurl.USERAGENT, user_agent)
    curl.setopt(pycurl.HTTPHEADER, [f"Accept: {ACCEPT}", f"Accept-Encoding: {ACCEPT_ENCODING}"])
    curl.setopt(pycurl.HTTP_CONTENT_DECODING, 0)
    curl.setopt(pycurl.HTTP_VERSION, pycurl.CURL_HTTP_VERSION_1_1)
    curl.setopt(pycurl.PROTOCOLS, pycurl.PROTO_HTTP | pycurl.PROTO_HTTPS)
    curl.setopt(pycurl.FOLLOWLOCATION, 0)
    curl.setopt(pycurl.BUFFERSIZE, READ_BYTES)
    curl.setopt(pycurl.NOSIGNAL, 1)
    curl.setopt(pycurl.OPT_CERTINFO, 1)
    # A proxy from the environment would dial for us, and nobody would have judged where.
    curl.setopt(pycurl.PROXY, "")
    curl.setopt(pycurl.NOPROXY, "*")
    # The curl in the wheel does not know where this machine keeps its certificates; Python does, and heeds SSL_CERT_FILE.
    authorities = ssl.get_default_verify_paths()
    if authorities.cafile is not None:
        curl.setopt(pycurl.CAINFO, authorities.cafile)
    elif authorities.capath is not None:
        curl.setopt(pycurl.CAPATH, authorities.capath)
    return curl


ACCEPT: Final = "text/html,application/xhtml+xml,text/plain;q=0.9,*/*;q=0.1"
ACCEPT_ENCODING: Final = "gzip, deflate"  # what `decode` can undo within bounds


def _headers(lines: Sequence[bytes]) -> Headers:
    """Of the lines of a head. One whose name is empty or ends in a blank is dropped: parsers differ over whose value it is."""
    headers = []
    for line in lines[1:]:
        name, colon, value = line.decode("latin-1").partition(":")
        if colon and name and name[-1] not in " \t":
            headers.append((name, value.strip(" \t\r\n")))
    return tuple(headers)


def _has_names(alternatives: str) -> bool:
    return any(each.startswith(("DNS:", "IP Address:")) for each in alternatives.split(", "))


def _length(fields: Mapping[str, str], headers: Headers) -> int | str | None:
    """The body's length if it is said; a text if it can't be told where the body ends. Most of these curl has refused already."""
    if "transfer-encoding" in fields:
        codings = [value.lower() for name, value in headers if name.lower() == "transfer-encoding"]
        chunked = ",".join(codings).count("chunked")
        if chunked:
            return None if chunked == 1 else "chunked twice"
    said = fields.get("content-length")
    if said is None:
        return None
    return int(said) if said.isdecimal() and len(said) <= _LENGTH_DIGITS_MAX else "a length that is none"


_STATUS_LINE: Final = re.compile(rb"HTTP/[0-9.]+[ \t]+([0-9]{3})(?![0-9])").match
_LENGTH_DIGITS_MAX: Final = 18
_WITH_BODY: Final = frozenset(range(200, 300)) - {204, 205}
_ABORT: Final = 0  # fewer bytes taken than there were
_NO_SOCKET: Final[int] = pycurl.SOCKET_BAD
_GO_ON: Final[int] = pycurl.PREREQFUNC_OK
_STOP: Final[int] = pycurl.PREREQFUNC_ABORT
_NAMES: Final = "X509v3 Subject Alternative Name"
