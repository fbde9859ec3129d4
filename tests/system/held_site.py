"""A site whose answers are held back until they are let go: so a test chooses what is in flight when something happens.

It serves from threads of the test's own process, at several loopback hosts with one port, and remembers every request.
"""

import select
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

#: A bound for what a failed test leaves held.
LONGEST_S = 300.0


@dataclass
class Asked:
    """One request, robots.txt included, as its server saw it."""

    url: str
    began_at: float
    held: bool
    ended_at: float | None = None  #: answered, or cut by whoever asked
    cut: bool = False


@dataclass
class Page:
    text: str
    links: tuple[str, ...]
    status: int = 200
    holds: bool = False  #: whoever asks for it now
    let_go: threading.Event = field(default_factory=threading.Event)


class HeldSite:
    def __init__(self, port: int, hosts: int) -> None:
        self._port, self._hosts = port, hosts
        self._pages: dict[str, Page] = {}
        self._changing = threading.Lock()
        self.asked: list[Asked] = []
        self.most_held = 0  #: at once

    def url(self, path: str = "/", host: int = 0) -> str:
        assert host < self._hosts
        return f"http://127.0.4.{host + 1}:{self._port}{path}"

    def page(self, url: str, *links: str, text: str | None = None) -> str:
        """Says something of its own, unless it is told what."""
        if text is None:
            text = f"<title>{url}</title><p>This is {url} and no other page.</p>"
        self._pages[url] = Page(text, links)
        return url

    def hold(self, *urls: str) -> None:
        for url in urls:
            self._pages[url].holds = True

    def hold_no_more(self, *urls: str) -> None:
        """But those that are held."""
        for url in urls:
            self._pages[url].holds = False

    def let_go(self, *urls: str) -> None:
        self.hold_no_more(*urls)
        for url in urls:
            self._pages[url].let_go.set()

    def fail(self, *urls: str) -> None:
        """From now on they are not found, also for who is held."""
        for url in urls:
            self._pages[url].status = 404

    def held(self, *urls: str) -> int:
        """How many requests for these (all, if none is named) are held at this moment."""
        held = [each.url for each in list(self.asked) if each.held and each.ended_at is None]
        return sum(not urls or url in urls for url in held)

    def times_asked(self, url: str) -> int:
        return sum(each.url == url for each in list(self.asked))

    def most_at_once(self, since: float) -> int:
        """Requests to one host in flight at the same time, of those that began since then."""
        most = 0
        recent = [each for each in self.asked if each.began_at >= since]
        for one in recent:
            there = [each for each in recent if each.url.split("/")[2] == one.url.split("/")[2]]
            most = max(most, sum(each.began_at <= one.began_at < (each.ended_at or time.monotonic()) for each in there))
        return most

    def answer(self, url: str, connection: socket.socket) -> tuple[int, str] | None:
        """None: whoever asked is gone."""
        with self._changing:
            page = self._pages.get(url, Page("", (), 404))
            asked = Asked(url, time.monotonic(), held=page.holds)
            self.asked.append(asked)
            self.most_held = max(self.most_held, self.held())
        asked.cut = asked.held and not _wait(page.let_go, connection)
        asked.ended_at = time.monotonic()
        links = "".join(f'<a href="{link}">x</a>' for link in page.links)
        return None if asked.cut else (page.status, page.text + links)


def _wait(let_go: threading.Event, connection: socket.socket) -> bool:
    """Whether it came before the other end hung up."""
    deadline = time.monotonic() + LONGEST_S
    while not let_go.wait(0.02) and time.monotonic() < deadline:
        if select.select([connection], [], [], 0)[0]:  # nothing more is sent by who waits for an answer: it is the end
            return False
    return True


@contextmanager
def held_site(hosts: int = 1) -> Iterator[HeldSite]:
    site: HeldSite

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            url = f"http://{self.headers['Host']}{self.path}"
            answer = site.answer(url, self.connection)
            self.close_connection = answer is None
            if answer is not None:
                status, body = answer
                self.send_response(status)
                self.send_header("Content-Type", "text/plain" if self.path == "/robots.txt" else "text/html")
                self.send_header("Content-Length", str(len(body.encode())))
                self.end_headers()
                self.wfile.write(body.encode())

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ExitStack() as opened:
        port = 0
        for host in range(hosts):
            server = _Server((f"127.0.4.{host + 1}", port), Handler)
            opened.enter_context(server)
            port = server.server_port
            threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
            opened.callback(server.shutdown)
        site = HeldSite(port, hosts)
        yield site


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, request: object, client_address: object) -> None:
        """Whoever asked may go away at any time, and that is all there is to it."""
