"""Ports that wait out outages: a call that found its server away, or full, is made again, until it is answered.

Every verb of a port is safe to repeat, so this is all that an outage needs; the crawl stands still meanwhile and goes on by itself.
The price: whoever waits so hears nothing else. What must be able to end while a server is away sets a limit, or races the call.
"""

import functools
from collections.abc import Awaitable, Callable, Collection
from typing import Any, TypeVar, cast

from gossamer.errors import EngineUnavailable
from gossamer.pauses import Pauses

T = TypeVar("T")


def patient(port: T, pauses: Pauses, name: str, full: str, verbs: Collection[str] | None = None) -> T:
    """The same port; these of its verbs (all, unless they are named) return when they are done, however long it was away.

    What is no outage (`Fenced`, `NoCrawl`) passes through. People are told of `name` when it is away, and `full` when it is full.
    """
    return cast(T, _Patient(port, pauses, name, full, verbs))


class _Patient:
    def __init__(self, port: object, pauses: Pauses, name: str, full: str, verbs: Collection[str] | None) -> None:
        self._port, self._pauses, self._verbs = port, pauses, verbs
        self._away, self._full = f"the {name} can't be used", full

    def __getattr__(self, verb: str) -> Callable[..., Awaitable[Any]]:
        method = getattr(self._port, verb)
        call = method if self._verbs is not None and verb not in self._verbs else self._repeated(method)
        setattr(self, verb, call)  # looked up once
        return call

    def _repeated(self, method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
        @functools.wraps(method)
        async def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return await method(*args, **kwargs)  # nearly always: what follows costs more than a verb
            except EngineUnavailable as error:
                again = functools.partial(method, *args, **kwargs)
                return await self._pauses.outlast(again, EngineUnavailable, error, self._full if error.full else self._away)

        return call
