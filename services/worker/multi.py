"""curl's transfers on asyncio: its sockets are watched and its one timer is kept by the event loop. No thread, no polling.

Whoever performs a transfer hears of its end, whatever happens: an exception in a callback of the loop is only logged by it, and
those who wait would wait for ever, so here it is handed to them. pycurl's own `AsyncCurlMulti` costs the same; it is not used
because nothing there tells what a peer sends beside the body.

Must not know: HTTP, or what a transfer is for.
"""

import asyncio
import socket
import sys
from typing import Final, NamedTuple

import msgspec
import pycurl

#: Ended by us, not by curl, whose own codes are positive.
CUT: Final = -1

#: A socket's bytes are counted each time after so many reads. Ordinary pages are read in fewer, and curl takes 256 KB a time.
READS_BETWEEN_COUNTS: Final = 2


class Ended(NamedTuple):
    """How a transfer ended: curl's code, 0 for well, and its words."""

    code: int
    words: str


class _Watch(msgspec.Struct):
    """A socket that curl waits for."""

    wanted: int  # curl's POLL_ bits
    reads: int = 0
    counted_from: int | None = None  # bytes that had come when they were first counted: a connection serves many


class _Flight(msgspec.Struct, frozen=True):
    ended: asyncio.Future[Ended]
    wire_bytes_max: int


class Multi:
    """Transfers that share connections. Belongs to the loop that it was made in."""

    def __init__(self, connections_max: int) -> None:
        self._loop = asyncio.get_running_loop()
        self._flights: dict[pycurl.Curl, _Flight] = {}
        self._watches: dict[int, _Watch] = {}
        self._connections_max = connections_max
        self._sockets = _Sockets()
        self._released: dict[int, int] = {}  # local port → descriptor of a connection that curl keeps, or has closed since
        self._timer: asyncio.TimerHandle | None = None
        self._is_due = False  # curl is to be called at the end of this turn of the loop
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
        return fd is not None and self._sockets.local_port(fd) == local_port and self._sockets.is_quiet(fd)

    def close(self) -> None:
        """Closes every connection. Whoever is still waiting for a transfer is cancelled."""
        for curl, flight in self._flights.items():
            self._multi.remove_handle(curl)
            flight.ended.cancel()
        self._flights.clear()
        self._multi.close()
        self._cancel_timer()
        self._sockets.give_back()

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
                self._watches[fd] = _Watch(wanted)
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
        if (port := self._sockets.local_port(fd)) is not None:
            self._released.pop(port, None)
            self._released[port] = fd
            if len(self._released) > 2 * self._connections_max:  # of most of which curl has closed the connection
                del self._released[next(iter(self._released))]

    def _on_timer(self, ms: int) -> None:
        """Never acted upon at once: curl calls this from inside its own functions, and may not be called back there."""
        if ms == 0:
            if not self._is_due:
                self._is_due = True
                self._loop.call_soon(self._on_due)
        elif ms > 0:
            at = self._loop.time() + ms / 1000
            # One that ends too soon does no harm, since curl then tells the time that is left. To set it back each time would.
            if self._timer is None or self._timer.when() > at:
                self._cancel_timer()
                self._timer = self._loop.call_at(at, self._on_time)

    def _cancel_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    # --- What the loop tells ---

    def _on_due(self) -> None:
        self._is_due = False
        self._act(pycurl.SOCKET_TIMEOUT, 0)

    def _on_time(self) -> None:
        self._timer = None
        self._act(pycurl.SOCKET_TIMEOUT, 0)

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
        received = self._sockets.bytes_received(fd)
        if watch.counted_from is None:
            watch.counted_from = received
            return
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


class _Sockets:
    """curl's sockets, to be asked what it does not tell. One object for each descriptor, whichever connection has it now."""

    def __init__(self) -> None:
        self._borrowed: dict[int, socket.socket] = {}

    def local_port(self, fd: int) -> int | None:
        """None for what is no socket of the network: curl wakes itself up with one of those."""
        try:
            port: int = self._socket(fd).getsockname()[1]  # at the same place in all families
            return port
        except (OSError, IndexError):
            return None

    def is_quiet(self, fd: int) -> bool:
        """Whether there is nothing to be read, nor an end to be seen."""
        try:
            self._socket(fd).recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
            return False
        except BlockingIOError:
            return True
        except OSError:
            return False

    def bytes_received(self, fd: int) -> int:
        """On its connection so far, by the kernel's count. Elsewhere than on Linux nobody counts, and the deadline has to do."""
        if sys.platform != "linux":
            return 0
        try:
            info = self._socket(fd).getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _RECEIVED.stop)
        except OSError:
            return 0
        return int.from_bytes(info[_RECEIVED], sys.byteorder)

    def give_back(self) -> None:
        """They are not ours to close."""
        for each in self._borrowed.values():
            each.detach()
        self._borrowed.clear()

    def __del__(self) -> None:
        self.give_back()  # or Python would close them

    def _socket(self, fd: int) -> socket.socket:
        borrowed = self._borrowed.get(fd)
        if borrowed is None:
            borrowed = self._borrowed[fd] = socket.socket(socket.AF_INET, socket.SOCK_STREAM, fileno=fd)
        return borrowed


#: tcpi_bytes_received in the kernel's `struct tcp_info`.
_RECEIVED: Final = slice(128, 136)

_WELL: Final = Ended(0, "")
