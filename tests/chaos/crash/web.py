"""What the crash suite crawls: a synthetic web of many small sites, and a site beside it with one of everything else.

The synthetic web knows the truth about itself and sees how it is treated; it has redirects, dead links, forbidden pages, copies and
pages that fail once. The other one has a sitemap, and URLs that end in ways which those do not know.
"""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Final

from tests.system import small_site
from tests.system.web import Web, synthetic_web

#: Pages of the sites.
SIZES: Final = "6*16"
OPTIONS: Final = ("--duplicates", "0.2", "--latency-ms", "20")
ADDRESS: Final = "127.0.3.7"
LINKED: Final = ("/noindex", "/big", "/image", "/blank", "/twin", "/secret", "/loop4")
LISTED: Final = ("/listed/0", "/listed/1", "/listed/2")


@dataclass(frozen=True)
class Sites:
    web: Web
    beside: str  #: the other site's home

    @property
    def seeds(self) -> tuple[str, str]:
        return self.web.seeds[0], self.beside


@contextmanager
def sites(folder: Path, sizes: str) -> Iterator[Sites]:
    with synthetic_web(folder, "--sizes", sizes, *OPTIONS) as web, _beside() as home:
        yield Sites(web, home)


def _answer(path: str, home: str, port: int) -> tuple[str, str, str]:
    """Status, headers beyond the length, body."""
    match path:
        case "/robots.txt":
            status, headers, body = small_site.answer(path, port)
            return status, headers, f"{body}Sitemap: {home}/sitemap.xml\n"
        case "/sitemap.xml":
            entries = "".join(f"<url><loc>{home}{listed}</loc></url>" for listed in LISTED)
            namespace = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
            return "200 OK", "Content-Type: application/xml\r\n", f'<?xml version="1.0"?><urlset {namespace}>{entries}</urlset>'
        case "/" | "/twin":
            links = "".join(f'<a href="{each}">x</a>' for each in LINKED)
            return "200 OK", "Content-Type: text/html\r\n", small_site.HEAD.format("home") + links
        case _ if path in LISTED:
            return "200 OK", "Content-Type: text/html\r\n", small_site.HEAD.format(path)
        case _:
            return small_site.answer(path, port)


@contextmanager
def _beside() -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            status, headers, body = _answer(self.path, home, server.server_port)
            self.wfile.write(f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\n\r\n{body}".encode())

        def log_message(self, format: str, *args: object) -> None:
            """The suite says what there is to say."""

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """Whoever asked has died, which is what this is about."""

    server = Server((ADDRESS, 0), Handler)
    home = f"http://{ADDRESS}:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield home
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
