"""How a role is, asked over HTTP: `GET /health` is 200 if it is alive and its servers can be reached, else 503; JSON either way.

That an answer comes at all says that the process's one loop turns. Only for the machine or the container's network that it is bound
to: it tells which server is away, and never where it is.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

from gossamer.errors import EngineUnavailable, GossamerError

#: For a server to answer, and for a caller to ask.
PATIENCE_S: Final = 3.0
REQUEST_BYTES_MAX: Final = 8192

Checks = Mapping[str, Callable[[], Awaitable[object]]]


@asynccontextmanager
async def answering(address: tuple[str, int] | None, checks: Checks) -> AsyncIterator[None]:
    """While it lasts, whoever asks there is answered. Raises OSError if the address can't be had."""
    if address is None:
        yield
        return

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(4 * PATIENCE_S):
                head = await reader.readuntil(b"\r\n\r\n")
                writer.write(_response(*(await _health(checks) if head.startswith(b"GET /health ") else (404, {}))))
                await writer.drain()
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, ConnectionError):
            pass  # a caller without manners, or without patience
        finally:
            writer.close()

    server = await asyncio.start_server(answer, *address, limit=REQUEST_BYTES_MAX)
    async with server:
        yield


async def _health(checks: Checks) -> tuple[int, Mapping[str, object]]:
    names = list(checks)
    states = dict(zip(names, await asyncio.gather(*(_state(checks[name]) for name in names)), strict=True))
    well = all(state == "reachable" for state in states.values())
    return 200 if well else 503, {"alive": True, "servers": states}


async def _state(check: Callable[[], Awaitable[object]]) -> str:
    try:
        async with asyncio.timeout(PATIENCE_S):
            await check()
    except (EngineUnavailable, TimeoutError):
        return "away"
    except GossamerError:
        return "unfit"  # it is there, and can't be used
    return "reachable"


def _response(status: int, body: Mapping[str, object]) -> bytes:
    reason = {200: "OK", 404: "Not Found", 503: "Service Unavailable"}[status]
    data = json.dumps(body).encode() + b"\n"
    fields = {"Content-Type": "application/json", "Content-Length": len(data), "Connection": "close"}
    head = f"HTTP/1.1 {status} {reason}\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return head.encode() + b"\r\n" + data
