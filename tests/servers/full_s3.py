"""Stands before an S3 server, and refuses what is to be stored, in the words of a server that is full, on demand."""

import http.client
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self
from urllib.parse import urlsplit

_NOT_PASSED_ON = frozenset({"connection", "content-length", "transfer-encoding"})


class FullS3:
    """A context manager. `url` is the server's with our own host and port in it."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self.refusal: tuple[int, str] | None = None  #: status and code; None: everything passes
        self.refused = 0  #: requests so far
        relay = self

        class Handler(_Handler):
            full = relay

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True

    @property
    def url(self) -> str:
        return self._parts._replace(netloc=f"127.0.0.1:{self._server.server_port}").geturl()

    @property
    def netloc(self) -> str:
        return self._parts.netloc

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    full: FullS3
    protocol_version = "HTTP/1.1"

    def _pass_on(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.command == "PUT" and self.full.refusal is not None:
            status, code = self.full.refusal
            self.full.refused += 1
            error = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no room</Message></Error>"
            self._answer(status, [], error.encode())
            return
        connection = http.client.HTTPConnection(self.full.netloc, timeout=30)
        try:
            connection.putrequest(self.command, self.path, skip_host=True, skip_accept_encoding=True)
            for name, value in self.headers.items():  # Host as well: the signature covers it
                connection.putheader(name, value)
            connection.endheaders(body)
            answer = connection.getresponse()
            self._answer(answer.status, answer.getheaders(), answer.read())
        finally:
            connection.close()

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _pass_on  # noqa: N815  # as the base class calls them

    def _answer(self, status: int, headers: list[tuple[str, str]], body: bytes) -> None:
        self.send_response_only(status)
        for name, value in headers:
            if name.lower() not in _NOT_PASSED_ON:
                self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing is said of requests."""

    def handle(self) -> None:
        with suppress(ConnectionError):  # a client that was killed
            super().handle()
