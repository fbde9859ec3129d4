"""A server that is unwell on purpose, at three loopback addresses. `python -m tests.system.unwell` serves until it is ended.

127.0.3.1 answers 503 to everything but robots.txt, 127.0.3.2 accepts and never answers for robots.txt, and at 127.0.3.3 nobody
listens. It prints the port, and at the end of its input how many requests the first two saw.
"""

import asyncio
import sys

requests = {"127.0.3.1": 0, "127.0.3.2": 0}


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    host = writer.get_extra_info("sockname")[0]
    try:
        while line := await reader.readline():
            while await reader.readline() not in (b"\r\n", b""):
                pass
            requests[host] += 1
            if host == "127.0.3.2":
                await asyncio.Event().wait()  # silence
            missing = b"robots.txt" in line
            status = b"404 Not Found" if missing else b"503 Service Unavailable"
            writer.write(b"HTTP/1.1 " + status + b"\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
    except ConnectionError:
        pass
    finally:
        writer.close()


async def main() -> None:
    first = await asyncio.start_server(serve, "127.0.3.1", 0)
    port = first.sockets[0].getsockname()[1]
    await asyncio.start_server(serve, "127.0.3.2", port)
    sys.stdout.write(f"{port}\n")
    sys.stdout.flush()
    await asyncio.get_running_loop().run_in_executor(None, sys.stdin.read)
    sys.stdout.write(f"{requests['127.0.3.1']} {requests['127.0.3.2']}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(main())
