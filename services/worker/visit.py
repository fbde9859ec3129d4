"""Step 13, visit: a page that was stored is handed to the modules, one after another.

Modules are other people's code. Whatever one does costs neither the page nor its links: what it raises, even SystemExit, and what
takes longer than its deadline is counted against it and logged with the page; after too many in a row it is switched off. Each
is handed a page of its own, so that nothing one does to it reaches the next. A full disk is nobody's fault: it is waited for.

What can't be helped here: an async `visit` that blocks the event loop, C code that keeps Python's lock (a regular expression
that backtracks without end), or code that ends the process. Then the worker's lease runs out, and what it held goes to another.
Knows: modules and pages. Must not know: where modules are found, what is stored, or how a page is closed.
"""

import asyncio
import inspect
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from types import MappingProxyType
from typing import Final, TypeVar

import msgspec

from gossamer.crash import step
from gossamer.errors import ModuleFailed, SettingsError
from gossamer.module import CrawlInfo, Module
from gossamer.outcomes import Flag
from gossamer.page import Page
from gossamer.pauses import Pauses, lacks_room
from services.role.blame import blame
from services.worker.lone_task import call_within
from services.worker.lone_thread import LoneThread
from services.worker.plugins import Loaded

#: In a row, after which a module is switched off. A hang holds its page, and all that wait for their turn, for the whole
#: deadline, so few are enough.
HANGS_MAX: Final = 3
FAILURES_MAX: Final = 20

FINE: Final[frozenset[Flag]] = frozenset()
FAILED: Final = frozenset({Flag.MODULE_FAILED})

log = logging.getLogger("gossamer.modules")

T = TypeVar("T")


class Failures(msgspec.Struct, frozen=True):
    """What is held against one module of one worker."""

    count: int = 0  #: pages, and calls of flush and close
    last: str = ""  #: the last one's reason
    missed: int = 0  #: pages that it was not shown, because it was switched off
    off: str = ""  #: why it was switched off; empty: it was not


class Visitor:
    """The modules of one worker. Made for one epoch: a worker that registers again makes another."""

    def __init__(self, loaded: Sequence[Loaded], *, timeout_s: float, pauses: Pauses) -> None:
        """Makes an instance of each. Raises `SettingsError`."""
        labels = _labels([each.spec.name for each in loaded])
        self._modules = [_Watched(label, each.make(), timeout_s, pauses) for label, each in zip(labels, loaded, strict=True)]
        self._visited = [each for each in self._modules if each.module.wants_pages]

    @property
    def wants_pages(self) -> bool:
        """False: no module looks at pages, so that none has to be made for `visit`."""
        return bool(self._visited)

    @property
    def failures(self) -> Mapping[str, Failures]:
        """By module, for the summary; those without are in it too."""
        return MappingProxyType({each.label: each.failures for each in self._modules})

    async def open(self, crawl: CrawlInfo) -> None:
        """Opens all, in order. If one fails, or nobody waits any more, the others are closed again; `SettingsError` says why."""
        for each in self._modules:
            try:
                await each.with_room(partial(each.open, crawl))
            except ModuleFailed as failed:
                await self.close()
                raise SettingsError(f"module {each.label} can't be opened: {failed}") from failed
            except asyncio.CancelledError:
                await self.close()
                raise

    @step("worker.visit")
    async def visit(self, page: Page) -> frozenset[Flag]:
        """Hands the page to each module in order. `module_failed` if one raised, hung, or is switched off and missed it."""
        fine = [await each.with_room(partial(each.visit, page)) for each in self._visited]
        return FINE if all(fine) else FAILED

    async def flush_with_room(self) -> frozenset[Flag]:
        """As `flush`; a disk that is full is waited for. Raises `ModuleFailed` if the modules are closed meanwhile."""
        fine = [await each.with_room(each.flush_if_open) for each in self._visited]
        return FINE if all(fine) else FAILED

    async def flush(self) -> frozenset[Flag]:
        """What the modules were shown is durable when it returns; to be called before those pages are closed.

        A module whose flush raises is asked once more; then that is counted, and the crawl goes on: a page is not held back
        for a module. What was visited since its last good flush can't be said to be durable, so the answer is a flag for the
        pages that are about to be closed. The module may still write them at its next flush, if it kept them.
        """
        fine = [await each.flush() for each in self._visited]
        return FINE if all(fine) else FAILED

    async def close(self) -> None:
        """Flushes and closes all that were opened, whatever they raise. Every call has its deadline."""
        for each in self._modules:
            await each.close()


class _Watched:
    """One module under a deadline, and what is held against it."""

    def __init__(self, label: str, module: Module, timeout_s: float, pauses: Pauses) -> None:
        self.label = label
        self._pauses = pauses
        self.module = module
        self.failures = Failures()
        self._timeout_s = timeout_s
        self._is_open = False
        self._visits = _Row()
        self._flushes = _Row()  # of its own: visits that only fill a buffer go well while the disk is full
        self._visited = 0  # pages, and how many of them had been when a flush began that is through
        self._flushed = 0
        # A plain visit has a thread for itself, for one page at a time. Flush waits for its turn as well, or authors would have
        # to think about threads; the authors of async ones see where they await.
        self._is_plain = not inspect.iscoroutinefunction(module.visit)
        self._thread: LoneThread | None = None
        self._turn = asyncio.Lock()

    async def with_room(self, call: Callable[[], Awaitable[T]]) -> T:
        """One of the calls below, made again until there is room for what it writes."""
        try:
            return await call()
        except _NoRoom as first:
            return await self._pauses.outlast(call, _NoRoom, first, f"no space left for module {self.label}")

    async def open(self, crawl: CrawlInfo) -> None:
        self._is_open = True  # before it is tried: what is half open is to be closed as well
        await self._awaited(lambda: self.module.open(crawl))

    async def visit(self, page: Page) -> bool:
        if not self._is_plain:
            return await self._visit(page)
        await self._turn.acquire()
        # The turn is over when the thread is through with the page, not when we stop waiting: a cancelled walk must not let
        # the next page in beside this one.
        visiting = asyncio.create_task(self._visit(page))
        visiting.add_done_callback(self._over)
        return await asyncio.shield(visiting)

    def _over(self, visiting: "asyncio.Task[bool]") -> None:
        self._turn.release()
        if not visiting.cancelled():
            visiting.exception()  # whoever waited for it may have gone

    async def flush_if_open(self) -> bool:
        """Raises `_NoRoom`, and `ModuleFailed` once it is closed: what it holds can't become durable any more."""
        if not self._is_open:
            raise ModuleFailed("it was closed")
        try:
            return await self._flush()
        except _NoRoom:
            raise
        except ModuleFailed as failed:
            return self._flush_failed(failed)

    async def flush(self) -> bool:
        try:
            return await self._flush()
        except _NoRoom:
            return False  # its pages are still open, and come again
        except ModuleFailed as failed:
            return self._flush_failed(failed)

    async def _flush(self) -> bool:
        async with self._turn:  # also behind another flush, which may be about the same pages
            visited = self._visited
            if self._flushed != visited:
                await self._flush_or_retry()
                self._flushes.good()
                self._flushed = visited
            return True

    def _flush_failed(self, failed: ModuleFailed) -> bool:
        self._count("in flush", failed, self._flushes)
        if self.failures.off:
            self._flushed = self._visited  # that was its last chance
        return False

    async def close(self) -> None:
        if not self._is_open:
            return
        self._is_open = False
        await self.flush()
        async with self._turn:
            try:
                await self._awaited(self.module.close)
            except _NoRoom:
                pass  # likewise
            except ModuleFailed as failed:
                self._count("in close", failed, _Row())
        if self._thread is not None:
            self._thread.end()

    async def _visit(self, page: Page) -> bool:
        if self.failures.off:
            self.failures = msgspec.structs.replace(self.failures, missed=self.failures.missed + 1)
            return False
        own = replace(page)
        try:
            await (self._in_thread(own) if self._is_plain else self._awaited(lambda: self.module.visit(own)))
        except _NoRoom:
            raise
        except ModuleFailed as failed:
            self._count(f"on {page.url!r}", failed, self._visits)
            return False
        finally:
            self._visited += 1  # not before: a flush that begins meanwhile may miss what this visit is yet to write
        self._visits.good()
        return True

    async def _in_thread(self, page: Page) -> None:
        if self._thread is None:
            self._thread = LoneThread(f"module {self.label}")
        answer = self._thread.call(lambda: self.module.visit(page))
        done, _ = await asyncio.wait({answer}, timeout=self._timeout_s)
        if not done:
            self._thread.abandon()
            self._thread = None
            raise self._hung()
        returned = answer.result()
        if returned.error is not None:
            raise _failed(returned.error) from returned.error
        if isinstance(waiting := returned.value, Awaitable):  # a plain function around an async one
            await self._awaited(lambda: waiting)

    async def _flush_or_retry(self) -> None:
        try:
            await self._awaited(self.module.flush)
        except _Hung:
            raise  # once is long enough
        except ModuleFailed:
            await self._awaited(self.module.flush)

    async def _awaited(self, call: Callable[[], Awaitable[object] | None]) -> None:
        try:
            error = await call_within(self._timeout_s, call)
        except TimeoutError:
            raise self._hung() from None
        if error is not None:
            raise _failed(error) from error

    def _hung(self) -> "_Hung":
        return _Hung(f"took longer than {self._timeout_s:g} s")

    def _count(self, where: str, failed: ModuleFailed, row: "_Row") -> None:
        self.failures = msgspec.structs.replace(self.failures, count=self.failures.count + 1, last=f"{where}: {failed}")
        log.warning("module %s failed %s: %s", self.label, where, failed)
        why = row.bad(hung=isinstance(failed, _Hung))
        if why and not self.failures.off:
            self.failures = msgspec.structs.replace(self.failures, off=why)
            log.error("module %s is switched off after %s; it sees no further page of this worker", self.label, why)


class _Hung(ModuleFailed):
    """It was not through by its deadline."""


class _NoRoom(ModuleFailed):
    """The disk that it writes to is full."""


def _failed(error: BaseException) -> ModuleFailed:
    return (_NoRoom if lacks_room(error) else ModuleFailed)(blame(error))


class _Row:
    """Failures in a row."""

    def __init__(self) -> None:
        self._hangs = 0
        self._failures = 0

    def good(self) -> None:
        self._hangs = self._failures = 0

    def bad(self, *, hung: bool) -> str:
        """Why that is enough; empty if it is not."""
        self._hangs = self._hangs + 1 if hung else 0
        self._failures += 1
        if self._hangs >= HANGS_MAX:
            return f"{self._hangs} hangs in a row"
        return f"{self._failures} failures in a row" if self._failures >= FAILURES_MAX else ""


def _labels(names: Sequence[str]) -> Iterator[str]:
    """Names that tell apart what was asked for twice: jsonl, jsonl (2)."""
    seen: Counter[str] = Counter()
    for name in names:
        seen[name] += 1
        yield name if seen[name] == 1 else f"{name} ({seen[name]})"
