"""A site whose pages are linked from its sitemaps alone: an index, one under another, gzip, plain text, one that is too long.

`PAGES` are those that a crawl of the site's own host has to find, `REQUESTS` all that it asks for on the way.
"""

import gzip
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from tests.system.web import PATIENCE_S

#: `--max-page-bytes` of its crawls.
CAP = 20_000
HTML, XML, GZIP, TEXT = "text/html", "application/xml", "application/x-gzip", "text/plain"

#: By the sitemap that lists them.
LISTED = {
    "/pages.xml": [f"/page/{number}" for number in range(8)],
    "/coded.xml": [f"/coded/{number}" for number in range(4)],
    "/packed.xml.gz": [f"/packed/{number}" for number in range(4)],
    "/list.txt": [f"/list/{number}" for number in range(4)],
    "/deep.xml": ["/deep/0"],
    "/long.xml": [f"/long/{number}" for number in range(4)],  # and more, past the cap
}
PAGES = frozenset(path for paths in LISTED.values() for path in paths) | {"/"}
#: The index of the index lists one more, which nobody asks for.
SITEMAPS = frozenset(LISTED) | {"/index.xml", "/inner.xml", "/innermost.xml"}
MOVED = {"/moved.xml": "/index.xml", "/passing.xml": "/innermost.xml"}
REQUESTS = PAGES | SITEMAPS | frozenset(MOVED) | {"/robots.txt"}


@dataclass
class Site:
    """The site, and another host that it names."""

    home: str  #: `http://127.0.3.5:1234`
    elsewhere: str
    asked: list[str] = field(default_factory=list)  #: paths, in the order of their requests
    held: str = ""  #: a path that is answered only when `go_on` says so
    go_on: threading.Event = field(default_factory=threading.Event)

    def note(self, path: str) -> None:
        self.asked.append(path)
        if path == self.held:
            self.go_on.wait(PATIENCE_S)

    def answer(self, path: str) -> tuple[str, bytes, Mapping[str, str]] | None:
        """Type, body and further headers; None if there is nothing."""
        home = self.home
        match path:
            case "/robots.txt":
                named = ["/moved.xml", f"{home}/list.txt", f"{self.elsewhere}/sitemap.xml", "ftp://a.test/", ""]
                return TEXT, "".join(f"Sitemap: {each}\n" for each in named).encode(), {}
            case "/index.xml":
                inside = [f"{home}{each}" for each in LISTED if each not in ("/list.txt", "/deep.xml")]
                return XML, listing("sitemapindex", [*inside, f"{home}/inner.xml", f"{self.elsewhere}/more.xml"]), {}
            case "/inner.xml":
                return XML, listing("sitemapindex", [f"{home}/deep.xml", f"{home}/passing.xml"]), {}
            case "/innermost.xml":
                return XML, listing("sitemapindex", [f"{home}/bottomless.xml"]), {}
            case "/list.txt":
                return TEXT, "\n".join(home + each for each in LISTED[path]).encode(), {}
            case "/coded.xml":
                return XML, gzip.compress(self._urlset(path)), {"Content-Encoding": "gzip"}
            case "/packed.xml.gz":
                return GZIP, gzip.compress(self._urlset(path)), {}
            case "/long.xml":
                entries = [f"{home}/long/{number}" for number in range(100)]
                return XML, listing("urlset", entries, padding=CAP // len(LISTED[path])), {}
            case "/pages.xml":
                return XML, self._urlset(path, f"{home}/page/0.pdf", f"{self.elsewhere}/page/9"), {}
            case _ if path in MOVED:
                return HTML, b"", {"Location": MOVED[path]}
            case _ if path in LISTED:
                return XML, self._urlset(path), {}
            case _ if path in PAGES or path.startswith("/long/"):
                return HTML, f"<!doctype html><title>{path}</title><p>This is {path}, and nothing else is.".encode(), {}
            case _:
                return None

    def _urlset(self, path: str, *more: str) -> bytes:
        return listing("urlset", [*(self.home + each for each in LISTED[path]), *more])


def listing(root: str, locs: list[str], padding: int = 0) -> bytes:
    """Entries of at least `padding` bytes."""
    entries = "".join(f"<entry><loc>{loc}</loc></entry>{' ' * (padding - 40 - len(loc))}" for loc in locs)
    return f'<?xml version="1.0"?><{root} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</{root}>'.encode()


@contextmanager
def sitemap_site() -> Iterator[Site]:
    with (
        _serving("127.0.3.5", lambda path: site.answer(path), lambda path: site.note(path)) as home,
        _serving("127.0.3.6", lambda path: None, lambda path: site.asked.append(f"elsewhere {path}")) as elsewhere,
    ):
        site = Site(home, elsewhere)
        yield site


@contextmanager
def _serving(
    address: str, answer: Callable[[str], tuple[str, bytes, Mapping[str, str]] | None], note: Callable[[str], None]
) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            note(self.path)
            type, body, more = answer(self.path) or (HTML, b"", {"Status": "404"})
            self.send_response(301 if "Location" in more else int(more.get("Status", "200")))
            for name, value in {"Content-Type": type, "Content-Length": str(len(body)), **more}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Tests say what they saw."""

    server = ThreadingHTTPServer((address, 0), Handler)
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://{address}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
