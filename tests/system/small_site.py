"""A site with one of everything that ends a URL in its own way. `python -m tests.system.small_site` prints its port, and serves."""

import asyncio
import sys

#: A second host, with the same port.
NEIGHBOUR = "127.0.3.5"

HEAD = "<!doctype html><title>{0}</title><p>This is {0}, and nothing else is.</p>"
HOME = HEAD.format("home") + "".join(
    f'<a href="{href}">x</a>'
    for href in (
        "/loop0",
        "/x?utm_source=a",
        "/noindex",
        "/gone",
        "/big",
        "/image",
        "/blank",
        "/twin",
        "/secret",
        "http://127.0.3.9/",
    )
)


def answer(target: str, port: int) -> tuple[str, str, str]:
    """Status, headers beyond the length, body."""
    html = "Content-Type: text/html\r\n"
    if target.startswith("/loop"):
        return "302 Found", f"Location: /loop{int(target[5:]) + 1}\r\n", ""
    match target:
        case "/robots.txt":
            return "200 OK", "Content-Type: text/plain\r\n", "User-agent: *\nDisallow: /secret\n"
        case "/":
            return "200 OK", html, HOME
        case "/twin":
            return "200 OK", html, HOME
        case "/x?utm_source=a":
            return "301 Moved Permanently", "Location: /x\r\n", ""
        case "/x" | "/from-noindex":
            return "200 OK", html, HEAD.format(target)
        case "/neighbour":  # to pages of another host, which have nothing but themselves
            links = "".join(f'<a href="http://{NEIGHBOUR}:{port}/n{number}">x</a>' for number in range(3))
            return "200 OK", html, HEAD.format(target) + links
        case "/n0" | "/n1" | "/n2":
            return "200 OK", html, HEAD.format(target)
        case "/noindex":
            page = '<meta name=robots content=noindex><a href="/from-noindex">x</a>'
            return "200 OK", html, HEAD.format(target) + page
        case "/big":
            return "200 OK", html, "x" * 600_000
        case "/image":
            return "200 OK", "Content-Type: image/png\r\n", "not really"
        case "/blank":
            return "200 OK", html, " "
        case _:
            return "404 Not Found", html, ""


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while line := await reader.readline():
            while await reader.readline() not in (b"\r\n", b""):
                pass
            status, headers, body = answer(line.split()[1].decode(), writer.get_extra_info("sockname")[1])
            writer.write(f"HTTP/1.1 {status}\r\n{headers}Content-Length: {len(body)}\r\n\r\n{body}".encode())
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def main() -> None:
    server = await asyncio.start_server(serve, "127.0.3.4", 0)
    port = server.sockets[0].getsockname()[1]
    await asyncio.start_server(serve, NEIGHBOUR, port)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main())
