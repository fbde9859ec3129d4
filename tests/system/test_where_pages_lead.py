"""What pages and robots.txt lead to, on both engines: another host's rules, and the crawl's own servers."""

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.system.stack import Stack, running_stack
from tests.system.web import FREELY, run

FIRST, SECOND = "127.0.3.6", "127.0.3.7"


@pytest.fixture(scope="module", params=["embedded", "external"])
def stack(request: pytest.FixtureRequest) -> Iterator[Stack | None]:
    if request.param == "embedded":
        yield None
    else:
        with running_stack() as stack:
            yield stack


@contextmanager
def two_hosts(home: str) -> Iterator[tuple[int, list[str]]]:
    """The first has this home page, and its robots.txt lies on the second. Their port, and what they were asked for."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            host = self.connection.getsockname()[0]
            asked.append(f"{host}{self.path}")
            body, headers = b"", {"Content-Type": "text/html"}
            if self.path == "/robots.txt" and host == FIRST:
                headers["Location"] = f"http://{SECOND}:{port}/common/robots.txt"
            elif self.path == "/common/robots.txt":
                body, headers = b"User-agent: *\nDisallow: /secret\n", {"Content-Type": "text/plain"}
            elif self.path != "/robots.txt":
                body = f"<title>{host}{self.path}</title>{home if self.path == '/' else self.path}".encode()
            self.answer(302 if "Location" in headers else 200, headers, body)

        def answer(self, status: int, headers: Mapping[str, str], body: bytes) -> None:
            self.send_response(status)
            for name, value in {**headers, "Content-Length": str(len(body))}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            pass

    first = ThreadingHTTPServer((FIRST, 0), Handler)
    port = first.server_port
    servers = [first, ThreadingHTTPServer((SECOND, port), Handler)]
    threads = [threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}) for server in servers]
    for thread in threads:
        thread.start()
    try:
        yield port, asked
    finally:
        for server in servers:
            server.shutdown()
            server.server_close()
        for thread in threads:
            thread.join()


def test_rules_that_lie_on_another_host_are_read_there_and_hold_here(stack: Stack | None, tmp_path: Path) -> None:
    with two_hosts('<a href="/page">x</a><a href="/secret">x</a>') as (port, asked):
        ran = run(tmp_path, "--seed", f"http://{FIRST}:{port}/", *FREELY, *_engine(stack), environ=_environ(stack))

    assert (ran.code, ran.report["outcome"]) == (0, "complete"), ran.said
    assert asked == [f"{FIRST}/robots.txt", f"{SECOND}/common/robots.txt", f"{FIRST}/", f"{FIRST}/page"]
    assert ran.report["outcomes"] == {"done": 2, "robots_denied": 1, "no_content": 1}, (
        "the last is what was read on the second host"
    )


@pytest.mark.parametrize("stack", ["external"], indirect=True)
def test_no_page_leads_to_the_servers_that_the_crawl_stands_on(stack: Stack, tmp_path: Path) -> None:
    servers = [urlsplit(stack.environ[f"GOSSAMER_{name}_URL"]) for name in ("RABBITMQ", "REDIS", "S3")]
    links = [f"http://{host}:{each.port}/" for each in servers for host in (each.hostname, "127.0.0.9", "localhost")]

    with two_hosts("".join(f'<a href="{link}">x</a>' for link in links)) as (port, _):
        ran = run(tmp_path, "--seed", f"http://{FIRST}:{port}/", *FREELY, *_engine(stack), environ=_environ(stack))

    # Where localhost has an IPv6 address too, that one is not allowed, and refuses the name.
    outcomes = ran.report["outcomes"]
    assert outcomes["done"] == 1
    assert outcomes["url_refused"] + outcomes.get("address_refused", 0) == len(set(links)), ran.said
    assert set(outcomes) <= {"done", "url_refused", "address_refused", "no_content"}


def _engine(stack: Stack | None) -> tuple[str, ...]:
    return () if stack is None else ("--engine", "external", "--state", "state")


def _environ(stack: Stack | None) -> Mapping[str, str]:
    return {} if stack is None else stack.environ
