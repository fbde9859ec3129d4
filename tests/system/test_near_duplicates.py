"""Near-duplicates in a crawl: one of them is stored, whoever comes with them and at whatever moment; on both engines."""

import json
import random
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bench.pairs import Writer, frame
from tests.system.stack import Stack, running_stack
from tests.system.web import Ran, run

HOSTS = 20
WORKERS = 8
#: As `FREELY`, with near-duplicates looked for as they are by default.
FREELY = ("--delay", "0", "--allow-net", "127.0.0.0/8", "--max-bytes", "1GB", "--module", "jsonl:path=out/pages.jsonl")


@dataclass
class Site:
    """Pages by path, the same on every host. They are held back until so many hosts are asked at once (or for five seconds)."""

    pages: dict[str, str]
    at_once: int = 1
    _asked: set[str] = field(default_factory=set)
    _enough: threading.Event = field(default_factory=threading.Event)

    def page(self, host: str, path: str) -> str | None:
        found = self.pages.get(path)
        if found is not None:
            self._asked.add(host)
            if len(self._asked) >= self.at_once:
                self._enough.set()
            self._enough.wait(5)
        return found


@contextmanager
def served(site: Site, hosts: int) -> Iterator[list[str]]:
    """On so many loopback addresses, each a host of its own; their roots."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            page = site.page(self.headers["Host"], self.path)
            body = (page or "").encode()
            self.send_response(404 if page is None else 200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ExitStack() as servers:
        roots = []
        for number in range(1, hosts + 1):
            server = servers.enter_context(ThreadingHTTPServer((f"127.0.3.{number}", 0), Handler))
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            servers.callback(thread.join)
            servers.callback(server.shutdown)
            roots.append(f"http://127.0.3.{number}:{server.server_port}")
        yield roots


@pytest.fixture(scope="module")
def stack() -> Iterator[Stack]:
    with running_stack() as running:
        yield running


Crawl = Callable[..., Ran]


@pytest.fixture(params=["embedded", "external"])
def crawl(request: pytest.FixtureRequest, tmp_path: Path) -> Crawl:
    """The command, on either engine."""

    def crawled(*words: str) -> Ran:
        if request.param == "embedded":
            return run(tmp_path, *FREELY, *words)
        stack: Stack = request.getfixturevalue("stack")
        return run(tmp_path, *FREELY, "--engine", "external", *words, environ=stack.environ)

    return crawled


def lines(folder: Path) -> list[str]:
    return (folder / "out" / "pages.jsonl").read_text().splitlines()


def titles(folder: Path) -> set[str]:
    return {json.loads(line)["title"] for line in lines(folder)}


def seeds(urls: list[str]) -> list[str]:
    return [word for url in urls for word in ("--seed", url)]


def test_of_a_hundred_duplicates_that_come_at_once_one_is_stored(crawl: Crawl, tmp_path: Path) -> None:
    """Half of them the same to the byte, half with a word changed here and there, on twenty hosts."""
    writer = Writer(random.Random(5))
    article = writer.words(600)
    page = frame(writer, 300)
    variants = {f"/{number}": page("an article", article if number % 2 else writer.edited(article, 1)) for number in range(5)}
    with served(Site(variants, at_once=WORKERS), HOSTS) as roots:
        urls = [root + path for root in roots for path in variants]
        assert len(urls) == 100

        ran = crawl("--workers", str(WORKERS), "--max-depth", "0", *seeds(urls))

    assert ran.code == 0, ran.said
    assert ran.report["outcomes"] == {"done": 1, "duplicate": 99}
    assert len(lines(tmp_path)) == 1


@pytest.mark.parametrize("links", ["drop", "follow"])
def test_a_duplicates_links_are_followed_only_if_that_is_asked_for(crawl: Crawl, tmp_path: Path, links: str) -> None:
    writer = Writer(random.Random(6))
    article = writer.words(300)
    page = frame(writer, 200)
    pages = {
        "/one": page("one", article).replace("</body>", '<a href="/of-one">on</a></body>'),
        "/two": page("two", writer.edited(article, 1)).replace("</body>", '<a href="/of-two">on</a></body>'),
        "/of-one": page("of one", writer.words(300)),
        "/of-two": page("of two", writer.words(300)),
    }
    with served(Site(pages), 1) as (root,):
        ran = crawl("--duplicate-links", links, "--exclude", "/[0-9]+$", *seeds([f"{root}/one", f"{root}/two"]))

    assert ran.code == 0, ran.said
    assert ran.report["outcomes"]["duplicate"] == 1
    (stored,) = titles(tmp_path) & {"one", "two"}
    assert titles(tmp_path) == {stored} | ({f"of {stored}"} if links == "drop" else {"of one", "of two"})
