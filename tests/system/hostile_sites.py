"""Ten sites that do their worst, on a loopback address each. `python -m tests.system.hostile_sites` serves until its input ends.

It prints the port, and at the end how many requests each site had. None of them has a robots.txt, but for one, whose never ends;
and each has more pages than anybody could fetch.
"""

import asyncio
import gzip
import socket
import struct
import sys
from collections.abc import Awaitable, Callable
from itertools import count

ADDRESSES = [f"127.0.4.{number}" for number in range(1, 11)]
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"
#: 480 KB on the wire, 480 MB of zeros.
BOMB = gzip.compress(bytes(480_000_000), 9) if __name__ == "__main__" else b""

numbers = count()
requests = dict.fromkeys(ADDRESSES, 0)


def links() -> bytes:
    """Where to go on from here: pages that nobody has seen."""
    return b"".join(b'<a href="/%d">x</a>' % next(numbers) for _ in range(20))


def whole(body: bytes, *headers: bytes) -> bytes:
    return HEAD + b"".join(each + b"\r\n" for each in headers) + b"Content-Length: %d\r\n\r\n" % len(body) + body


def page() -> bytes:
    return whole(b"<title>%d</title>" % next(numbers) + links())


async def loris(writer: asyncio.StreamWriter) -> None:
    """A header now and then, never the last."""
    writer.write(HEAD)
    while True:
        writer.write(b"X-%d: 1\r\n" % next(numbers))
        await writer.drain()
        await asyncio.sleep(0.2)


async def tarpit(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"Content-Length: 400000\r\n\r\n")
    while True:
        writer.write(b"x")
        await writer.drain()
        await asyncio.sleep(0.1)


async def endless(writer: asyncio.StreamWriter) -> None:
    writer.write(HEAD + b"Transfer-Encoding: chunked\r\n\r\n")
    while True:
        writer.write(b"4000\r\n" + b"x" * 0x4000 + b"\r\n")
        await writer.drain()


async def bomb(writer: asyncio.StreamWriter) -> None:
    writer.write(whole(BOMB, b"Content-Encoding: gzip"))


async def maze(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 302 Found\r\nLocation: /%d\r\nContent-Length: 0\r\n\r\n" % next(numbers))


async def pages(writer: asyncio.StreamWriter) -> None:
    """What this site does wrong is its robots.txt."""
    writer.write(page())


async def resets(writer: asyncio.StreamWriter) -> None:
    raw: socket.socket = writer.get_extra_info("socket")
    raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def nesting(writer: asyncio.StreamWriter) -> None:
    writer.write(whole(b"<title>%d</title>" % next(numbers) + links() + b"<div>" * 90_000))


async def storm(writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 429 Later\r\nContent-Length: 0\r\n\r\n")


async def garbage(writer: asyncio.StreamWriter) -> None:
    writer.write(b"\x00\xff\x13 220 ready\r\n" * 2_000)
    writer.close()


Site = Callable[[asyncio.StreamWriter], Awaitable[None]]
SITES: dict[str, Site] = dict(
    zip(ADDRESSES, (loris, tarpit, endless, bomb, maze, pages, resets, nesting, storm, garbage), strict=True)
)


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    address = writer.get_extra_info("sockname")[0]
    try:
        while line := await reader.readline():
            while await reader.readline() not in (b"\r\n", b""):
                pass
            requests[address] += 1
            target = line.split()[1]
            if target == b"/robots.txt" and SITES[address] is pages:
                await endless(writer)
            elif target == b"/robots.txt":
                writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            elif target == b"/":
                writer.write(page())
            else:
                await SITES[address](writer)
            await writer.drain()
    except (ConnectionError, asyncio.LimitOverrunError, ValueError, asyncio.CancelledError):
        pass  # the crawler has had enough, or it is over
    finally:
        writer.transport.abort()


async def main() -> None:
    first = await asyncio.start_server(serve, ADDRESSES[0], 0)
    port = first.sockets[0].getsockname()[1]
    servers = [first] + [await asyncio.start_server(serve, address, port) for address in ADDRESSES[1:]]
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    for server in servers:
        server.close()
    sys.stdout.write(" ".join(map(str, requests.values())) + "\n")


if __name__ == "__main__":
    asyncio.run(main())
