"""curl's transfers on asyncio: its sockets are watched and its one timer is kept by the event loop. No thread, no polling.

Whoever performs a transfer hears of its end, whatever happens: an exception in a callback of the loop is only logged by it, and
those who wait would wait for ever, so here it is handed to them. pycurl's own `AsyncCurlMulti` costs the same; it is not used
because nothing there tells what a peer sends beside the body.

Must not know: HTTP, or what a transfer is for.
"""

import asyncio
import socket
import sys
from dataclasses import dataclass
from typing import Final, NamedTuple

import pycurl

#: Ended by us, not by curl, whose own codes are positive.
CUT: Final = -1

#: A socket's bytes are counted each time after so many reads. Ordinary pages are read in fewer, and curl takes 256 KB a time.
READS_BETWEEN_COUNTS: Final = 2


class Ended(NamedTuple):
    """How a transfer ended: curl's code, 0 for well, and its words."""

    code: int
    words: str


@dataclass(slots=True)
class _Watch:
    """A socket that curl waits for."""

    wanted: int  # curl's POLL_ bits
    counted_from: int  # bytes that had come before: a connection serves many
    reads: int = 0


@dataclass(frozen=True, slots=True)
class _Flight:
    ended: asyncio.Future[Ended]
    wire_bytes_max: int


class Multi:
    """Transfers that share connections. Belongs to the loop that it was made in."""

    def __init__(self, connections_max: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._flights: dict[pycurl.Curl, _Flight] = {}
        self._watches: dict[int, _Watch] = {}
        self._connections_max = connections_max
        self._released: dict[int, int] = {}  # local port → descriptor of a connection that curl keeps, or has closed since
        self._timer: asyncio.Handle | None = None
        self._multi = pycurl.CurlMulti()
        self._multi.setopt(pycurl.M_MAXCONNECTS, connections_max)
        self._multi.setopt(pycurl.M_SOCKETFUNCTION, self._on_socket)
        self._multi.setopt(pycurl.M_TIMERFUNCTION, self._on_timer)

    async def perform(self, curl: pycurl.Curl, wire_bytes_max: int) -> Ended:
        """Runs a transfer to its end, and cuts it when a few reads more than `wire_bytes_max` have come over the wire.

        Headers and framing have no length that curl would check: a chunk's extension may go on for ever. When it was not the end
        of the message, and when the caller is cancelled, the connection is closed at once.
        """
        flight = _Flight(self._loop.create_future(), wire_bytes_max)
        self._flights[curl] = flight
        try:
            self._multi.add_handle(curl)
            return await flight.ended
        finally:
            if self._flights.pop(curl, None) is not None:
                self._multi.remove_handle(curl)

    def cut(self, curl: pycurl.Curl, words: str) -> None:
        """Ends a transfer that is still running."""
        if (flight := self._flights.get(curl)) is not None:
            _settle(flight.ended, Ended(CUT, words))

    def is_quiet(self, local_port: int) -> bool:
        """Whether nothing has come, no end either, on a kept connection since its last transfer. False if that can't be told.

        What came since is no answer to anything, and would be taken for the next one. curl looks at connections that were idle for
        a second, and believes the others.
        """
        fd = self._released.pop(local_port, None)
        if fd is None or _local_port(fd) != local_port:
            return False
        borrowed = socket.socket(socket.AF_INET, socket.SOCK_STREAM, fileno=fd)
        try:
            borrowed.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            return False
        except BlockingIOError:
            return True
        except OSError:
            return False
        finally:
            borrowed.detach()

    def close(self) -> None:
        """Closes every connection. Whoever is still waiting for a transfer is cancelled."""
        self._on_timer(-1)
        for curl, flight in self._flights.items():
            self._multi.remove_handle(curl)
            flight.ended.cancel()
        self._flights.clear()
        self._multi.close()

    # --- What curl asks for ---

    def _on_socket(self, wanted: int, fd: int, _multi: pycurl.CurlMulti, _data: object) -> None:
        try:
            watch = self._watches.get(fd)
            had = 0 if watch is None else watch.wanted
            if wanted == pycurl.POLL_REMOVE:
                self._watches.pop(fd, None)
                self._release(fd)
                wanted = pycurl.POLL_NONE
            elif watch is None:
                self._watches[fd] = _Watch(wanted, _bytes_received(fd))
            else:
                watch.wanted = wanted
            if (had ^ wanted) & pycurl.POLL_IN:
                if wanted & pycurl.POLL_IN:
                    self._loop.add_reader(fd, self._readable, fd)
                else:
                    self._loop.remove_reader(fd)
            if (had ^ wanted) & pycurl.POLL_OUT:
                if wanted & pycurl.POLL_OUT:
                    self._loop.add_writer(fd, self._act, fd, pycurl.CSELECT_OUT)
                else:
                    self._loop.remove_writer(fd)
        except Exception as error:
            self._fail(error)

    def _release(self, fd: int) -> None:
        if (port := _local_port(fd)) is not None:
            self._released.pop(port, None)
            self._released[port] = fd
            if len(self._released) > 2 * self._connections_max:  # of most of which curl has closed the connection
                del self._released[next(iter(self._released))]

    def _on_timer(self, ms: int) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        # Never acted upon at once: curl calls this from inside its own functions, and may not be called back there.
        if ms == 0:
            self._timer = self._loop.call_soon(self._act, pycurl.SOCKET_TIMEOUT, 0)
        elif ms > 0:
            self._timer = self._loop.call_later(ms / 1000, self._act, pycurl.SOCKET_TIMEOUT, 0)

    # --- What the loop tells ---

    def _readable(self, fd: int) -> None:
        self._act(fd, pycurl.CSELECT_IN)
        if (watch := self._watches.get(fd)) is not None:
            watch.reads += 1
            if watch.reads % READS_BETWEEN_COUNTS == 0:
                self._count(fd, watch)

    def _act(self, fd: int, events: int) -> None:
        try:
            _, running = self._multi.socket_action(fd, events)
            if running != len(self._flights):
                self._settle_ended()
        except Exception as error:
            self._fail(error)

    def _settle_ended(self) -> None:
        queued = 1
        while queued:
            queued, well, ill = self._multi.info_read()
            for curl in well:
                _settle(self._flights[curl].ended, _WELL)
            for curl, code, words in ill:
                _settle(self._flights[curl].ended, Ended(code, words))

    def _count(self, fd: int, watch: _Watch) -> None:
        received = _bytes_received(fd)
        for curl, flight in self._flights.items():
            if received - watch.counted_from > flight.wire_bytes_max and curl.getinfo(pycurl.ACTIVESOCKET) == fd:
                _settle(flight.ended, Ended(CUT, "much more came over the wire than a body"))

    def _fail(self, error: Exception) -> None:
        for flight in self._flights.values():
            if not flight.ended.done():
                flight.ended.set_exception(error)


def _settle(ended: asyncio.Future[Ended], how: Ended) -> None:
    if not ended.done():
        ended.set_result(how)


def _local_port(fd: int) -> int | None:
    """None for what is no socket: curl wakes itself up with one of those."""
    try:
        borrowed = socket.socket(socket.AF_INET, socket.SOCK_STREAM, fileno=fd)
    except OSError:
        return None
    try:
        port: int = borrowed.getsockname()[1]
        return port
    except OSError:
        return None
    finally:
        borrowed.detach()


def _bytes_received(fd: int) -> int:
    """On this connection so far, by the kernel's count. Elsewhere than on Linux nobody counts, and the deadline has to do."""
    if sys.platform != "linux":
        return 0
    try:
        borrowed = socket.socket(socket.AF_INET, socket.SOCK_STREAM, fileno=fd)
    except OSError:
        return 0
    try:
        info = borrowed.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.stop)
    finally:
        borrowed.detach()
    return int.from_bytes(info[_RECEIVED], sys.byteorder)


#: tcpi_bytes_received in the kernel's `struct tcp_info`.
_RECEIVED: Final = slice(128, 136)

_WELL: Final = Ended(0, "")
