"""A thread that one may stop waiting for.

The standard library's pools wait for each of their threads, at the latest when the process ends: one call that never returns and
the process never does either. Here a call that hangs is left behind, thread and all.
Must not know: what is called, or how long it may take.
"""

import asyncio
import contextlib
import ctypes
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import msgspec


class Returned(msgspec.Struct, frozen=True):
    """How a call ended."""

    value: object
    error: BaseException | None  #: a value, not a raise: a SystemExit of theirs must not end our loop on its way


class LoneThread:
    """Calls functions one after another in a thread of its own."""

    def __init__(self, name: str) -> None:
        self._calls: SimpleQueue[_Call | None] = SimpleQueue()
        self._thread = threading.Thread(target=_work, args=(self._calls,), name=name, daemon=True)
        self._thread.start()

    def call(self, function: Callable[[], object]) -> asyncio.Future[Returned]:
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Returned] = loop.create_future()
        self._calls.put(_Call(function, loop, answer))
        return answer

    def end(self) -> None:
        """The thread ends after the calls that it has; nobody waits for it."""
        self._calls.put(None)

    def abandon(self) -> None:
        """Leaves the thread to itself, and interrupts what it does, if that is Python.

        Three abandoned loops (`while True`) made a round trip on the event loop eight times slower, for as long as the process
        lives. What sits in a C function (a sleep, a socket) is interrupted when it returns.
        """
        if self._thread.ident is not None:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self._thread.ident), ctypes.py_object(Abandoned))
        self.end()  # second: a thread that had ended its loop would be interrupted in code that is not ours


class Abandoned(BaseException):
    """Raised in a thread that nobody waits for. Not an Exception: `except Exception: continue` should not stop it."""


class _Call(msgspec.Struct, frozen=True):
    function: Callable[[], object]
    loop: asyncio.AbstractEventLoop
    answer: asyncio.Future[Returned]


def _work(calls: SimpleQueue[_Call | None]) -> None:
    # Abandoned: came just after the call that it was meant for. RuntimeError: the loop is closed, nobody is there to be answered.
    with contextlib.suppress(Abandoned, RuntimeError):
        while (call := calls.get()) is not None:
            returned = _returned(call.function)
            call.loop.call_soon_threadsafe(_settle, call.answer, returned)
            del call, returned  # or a page would live until the next one comes


def _returned(function: Callable[[], Any]) -> Returned:
    try:
        return Returned(function(), None)
    except BaseException as error:
        return Returned(None, error)


def _settle(answer: asyncio.Future[Returned], returned: Returned) -> None:
    if not answer.done():
        answer.set_result(returned)
