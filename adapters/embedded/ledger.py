"""The ledger on SQLite: the embedded engine's, and the reference that the others are held against.

Verbs are plain functions (verbs/); this is their front. Calls that arrive while the disk is busy with the last group are run one
after another in one transaction and made durable together: so a caller is answered only when what it was told will survive the
machine, and many of them pay for one write. The order of calls is kept.

Only the commit, which waits for the disk, has a thread of its own. Verbs run on the loop: SQLite lets go of Python's lock at each
statement, so in a thread they would fight over it with the loop sixty times a page.

A file is used by one process at a time (the controller's lock sees to that); another one may read, or `stop` a crawl, meanwhile.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.resources import files
from pathlib import Path
from typing import Any, TypeVar

from adapters.embedded.verbs import asking, content, crawls, endings, gate, knowledge, leases, reading, routing
from adapters.embedded.verbs.desk import Desk
from gossamer.answers import GateAnswer, Judgement, RouteAnswer, Routing
from gossamer.clock import Clock
from gossamer.errors import GossamerError, LedgerUnavailable, SettingsError
from gossamer.ids import UrlId
from gossamer.messages import Url
from gossamer.outcomes import CrawlOutcome
from gossamer.records import (
    NO_SITES,
    Closing,
    Content,
    Counts,
    CrawlRecord,
    Deferral,
    DomainRecord,
    Leaving,
    PassedUp,
    Robots,
    Rules,
    Seat,
    SiteRecord,
    UrlRecord,
    WorkerRecord,
)

#: Verbs of one group: a bound on how long the last of them waits for the first's commit.
GROUP = 256
#: Between the beginnings of two groups while many call: a commit of thirty costs hardly more than one of three. And how many in
#: the last one are many. Whoever calls alone is served at once.
GROUP_S = 0.006
MANY = 4
#: Another process that writes (to stop the crawl, say) is done in no time: how often it is tried again, and after how long.
BUSY_TRIES = 1000
BUSY_S = 0.01
#: SQLite's own 2 MB is too small for the index of ids: looking up links would read the file again and again.
CACHE_KIB = 32_768

#: The version of the schema. It counts up when files of before can't be gone on with.
SCHEMA = 1

T = TypeVar("T")
_Call = tuple[Callable[[Desk], Any], asyncio.Future[Any]]


class SqliteLedger:
    """`Ledger` in one file."""

    def __init__(self, path: Path, clock: Clock) -> None:
        self._path = path
        self._clock = clock
        self._calls: list[_Call] = []
        self._began_at, self._was_many = 0.0, False  # the last group
        self._busy = False  # a group is under way, or about to be
        self._closing: asyncio.Event | None = None
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="ledger")
        self._desk: Desk | None = None

    # --- The front: groups of calls, one commit each ---

    async def _run(self, verb: Callable[[Desk], T]) -> T:
        if self._closing:
            raise LedgerUnavailable("the ledger was closed")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()
        self._calls.append((verb, answer))
        if not self._busy:
            self._busy = True
            self._start_soon(loop)
        return await answer

    def _start_soon(self, loop: asyncio.AbstractEventLoop) -> None:
        """Not at once: calls of this turn of the loop go together, and under load those of a few milliseconds."""
        at = self._began_at + GROUP_S
        if self._was_many and at > loop.time():
            loop.call_at(at, self._start, loop)
        else:
            loop.call_soon(self._start, loop)

    def _start(self, loop: asyncio.AbstractEventLoop, tries: int = BUSY_TRIES) -> None:
        """The next group. No task: what ends a loop cancels its tasks, and those who clean up still call."""
        group, self._calls = self._calls[:GROUP], self._calls[GROUP:]
        self._began_at, self._was_many = loop.time(), len(group) >= MANY
        try:
            answers = self._run_group([verb for verb, _ in group])
        except _Busy as busy:
            if tries:
                self._calls[:0] = group
                loop.call_later(BUSY_S, self._start, loop, tries - 1)
            else:
                self._answer(loop, group, [_unavailable(busy)] * len(group))
            return
        committed = loop.run_in_executor(self._thread, self._commit, answers)
        committed.add_done_callback(lambda done: self._answer(loop, group, done.result()))

    def _answer(self, loop: asyncio.AbstractEventLoop, group: Sequence[_Call], answers: Sequence[Any]) -> None:
        for (_, future), answer in zip(group, answers, strict=True):
            if future.done():
                continue
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)
        if self._calls:
            self._start_soon(loop)
        else:
            self._busy = False
            if self._closing is not None:
                self._closing.set()

    def _run_group(self, verbs: Sequence[Callable[[Desk], Any]]) -> list[Any]:
        """All but the commit. An answer for each verb: its result, or what to raise. Raises `_Busy` if none was run."""
        try:
            return self._run_together(verbs)
        except _Busy:
            raise
        except BaseException as error:
            self._roll_back()
            unavailable = _as_unavailable(error)
            if isinstance(unavailable, LedgerUnavailable) or len(verbs) == 1:
                return [unavailable] * len(verbs)
        # One of them can't be done (a text that no file can hold, say): the others are not to blame.
        return [self._run_alone(verb) for verb in verbs]

    def _run_alone(self, verb: Callable[[Desk], Any]) -> Any:
        """With its commit, here: it is rare."""
        try:
            return self._commit(self._run_group([verb]))[0]
        except _Busy as busy:  # those before it are committed: they are not to be called again
            return _unavailable(busy)

    def _run_together(self, verbs: Sequence[Callable[[Desk], Any]]) -> list[Any]:
        answers: list[Any] = []
        desk = self._begun()
        for verb in verbs:
            try:
                answers.append(verb(desk))
            except GossamerError as refusal:  # it was refused before it changed anything
                answers.append(refusal)
        desk.written()
        return answers

    def _begun(self) -> Desk:
        """The desk, with a transaction opened."""
        try:
            self._desk = self._desk or _open(self._path)
            self._desk.begin(self._clock)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & _PRIMARY == sqlite3.SQLITE_BUSY:
                raise _Busy from error
            raise
        return self._desk

    def _commit(self, answers: Sequence[Any]) -> Sequence[Any]:
        """In the ledger's thread. The same answers, once they are durable; else what to raise instead of each."""
        try:
            if self._desk is not None and self._desk.sql.in_transaction:  # else each was committed alone, or none could be run
                self._desk.commit()
        except BaseException as error:
            self._roll_back()
            return [_as_unavailable(error)] * len(answers)
        return answers

    def _roll_back(self) -> None:
        if self._desk is not None:
            try:
                self._desk.rollback()
            except sqlite3.Error:
                self._desk = None  # opened anew by the next group

    async def close(self) -> None:
        if self._closing is not None:
            return
        self._closing = asyncio.Event()
        if self._busy:
            await self._closing.wait()
        await asyncio.get_running_loop().run_in_executor(self._thread, self._shut)
        self._thread.shutdown()

    def _shut(self) -> None:
        if self._desk is not None:
            self._desk.sql.close()
            self._desk = None

    # --- The crawl ---

    async def create(self, rules: Rules) -> None:
        await self._run(lambda desk: crawls.create(desk, rules))

    async def resume(self, rules: Rules, *, nobody_lives: bool = False) -> None:
        await self._run(lambda desk: crawls.resume(desk, rules, nobody_lives=nobody_lives))

    async def add(
        self, urls: Sequence[Url], scope: Sequence[str] = (), sites: Mapping[str, str] = NO_SITES, seat: Seat | None = None
    ) -> list[Url]:
        return await self._run(lambda desk: endings.add(desk, seat, urls, scope, sites))

    async def stop(self, outcome: CrawlOutcome) -> None:
        await self._run(lambda desk: crawls.stop(desk, outcome))

    async def end(self) -> CrawlRecord:
        return await self._run(lambda desk: reading.crawl_record(desk, endings.end(desk)))

    async def keep(self) -> None:
        await self._run(crawls.keep)

    # --- Leases ---

    async def register(self, process: str, formerly: Seat | None = None) -> Seat:
        return await self._run(lambda desk: leases.register(desk, process, formerly))

    async def renew(self, seat: Seat) -> CrawlRecord:
        return await self._run(lambda desk: reading.crawl_record(desk, leases.renew(desk, seat)))

    async def release(self, seat: Seat) -> list[UrlId]:
        return await self._run(lambda desk: leases.release(desk, seat))

    async def reap(self) -> list[UrlId]:
        return await self._run(leases.reap)

    # --- The frontier ---

    async def route(self, urls: Sequence[tuple[UrlId, int]]) -> list[RouteAnswer]:
        return await self._run(lambda desk: routing.route(desk, urls))

    async def promote(self, most: int) -> list[Routing]:
        return await self._run(lambda desk: routing.as_routings(desk, routing.promote(desk, most)))

    async def waiting(self, most: int, *, idle: bool) -> list[tuple[Url, int]]:
        return await self._run(lambda desk: asking.waiting(desk, most, idle))

    async def rank(self, urls: Sequence[tuple[UrlId, int]]) -> None:
        await self._run(lambda desk: asking.rank(desk, urls))

    async def shed(self, open_max: int, most: int) -> int:
        return await self._run(lambda desk: endings.shed(desk, open_max, most))

    async def outlinks(self, after: int, most: int) -> list[tuple[int, UrlId, bytes]]:
        return await self._run(lambda desk: asking.outlinks(desk, after, most))

    # --- The worker ---

    async def held(self, seat: Seat) -> list[Url]:
        return await self._run(lambda desk: asking.held(desk, seat))

    async def begin(self, seat: Seat, ids: Sequence[UrlId]) -> list[GateAnswer]:
        return await self._run(lambda desk: gate.begin(desk, seat, ids))

    async def knock(self, seat: Seat, id: UrlId) -> GateAnswer:
        return await self._run(lambda desk: gate.knock(desk, seat, id))

    async def leave(self, seat: Seat, leavings: Sequence[Leaving]) -> None:
        await self._run(lambda desk: gate.leave(desk, seat, leavings))

    async def judge(self, seat: Seat, contents: Sequence[Content]) -> list[Judgement]:
        return await self._run(lambda desk: content.judge(desk, seat, contents))

    async def finish(self, seat: Seat, closings: Sequence[Closing]) -> list[Url]:
        return await self._run(lambda desk: endings.finish(desk, seat, closings))

    async def defer(self, seat: Seat, deferrals: Sequence[Deferral]) -> None:
        await self._run(lambda desk: endings.defer(desk, seat, deferrals))

    async def pass_up(self, seat: Seat, passed: Sequence[PassedUp]) -> None:
        await self._run(lambda desk: endings.pass_up(desk, seat, passed))

    # --- Shared knowledge ---

    async def robots(self, origin: str) -> Robots | None:
        return await self._run(lambda desk: knowledge.robots(desk, origin))

    async def know_robots(self, origin: str, robots: Robots, for_s: float) -> None:
        await self._run(lambda desk: knowledge.know_robots(desk, origin, robots, for_s))

    async def known_ranks(self, domains: Sequence[str]) -> dict[str, int]:
        return await self._run(lambda desk: knowledge.known_ranks(desk, domains))

    async def know_ranks(self, ranks: Mapping[str, int], for_s: float) -> None:
        await self._run(lambda desk: knowledge.know_ranks(desk, ranks, for_s))

    async def lease(self, name: str, holder: str, for_s: float) -> bool:
        return await self._run(lambda desk: knowledge.lease(desk, name, holder, for_s))

    async def note(self, name: str, text: str) -> None:
        await self._run(lambda desk: knowledge.note(desk, name, text))

    async def notes(self) -> dict[str, str]:
        return await self._run(knowledge.notes)

    # --- Reading ---

    async def crawl(self) -> CrawlRecord:
        return await self._run(reading.crawl)

    async def counts(self) -> Counts:
        return await self._run(reading.counts)

    async def workers(self) -> list[WorkerRecord]:
        return await self._run(reading.workers)

    async def records(self, ids: Sequence[UrlId]) -> list[UrlRecord | None]:
        return await self._run(lambda desk: reading.records(desk, ids))

    async def pages(self, after: int, most: int) -> list[tuple[int, UrlRecord]]:
        return await self._run(lambda desk: reading.pages(desk, after, most))

    async def domain(self, name: str) -> DomainRecord | None:
        return await self._run(lambda desk: reading.domain(desk, name))

    async def domains(self, most: int) -> list[DomainRecord]:
        return await self._run(lambda desk: reading.domains(desk, most))

    async def site(self, name: str) -> SiteRecord | None:
        return await self._run(lambda desk: reading.site(desk, name))

    async def unfinished(self, most: int) -> list[UrlRecord]:
        return await self._run(lambda desk: reading.unfinished(desk, most))

    async def poisoned(self, most: int) -> list[UrlRecord]:
        return await self._run(lambda desk: reading.poisoned(desk, most))

    async def refused(self) -> list[tuple[str, str]]:
        return await self._run(reading.refused)


class _Busy(Exception):
    """Another process is writing to the file."""


def _unavailable(busy: _Busy) -> LedgerUnavailable:
    return LedgerUnavailable(f"the ledger's file can't be used now: {busy.__cause__}")


_PRIMARY = 0xFF  #: SQLite's codes have their kind in the lowest byte


def _open(path: Path) -> Desk:
    connection = sqlite3.connect(path, timeout=0, isolation_level=None, cached_statements=256, check_same_thread=False)
    connection.execute("PRAGMA journal_mode = WAL")
    # FULL: a commit is on the disk when it is answered. With groups of calls it costs next to nothing.
    connection.execute("PRAGMA synchronous = FULL")
    connection.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
    connection.execute("PRAGMA temp_store = MEMORY")
    # Four times SQLite's own: pages of the index are written back once for several groups that changed them.
    connection.execute("PRAGMA wal_autocheckpoint = 4000")
    try:
        _lay_out(connection)
    except BaseException:
        connection.close()
        raise
    return Desk(connection)


def _lay_out(connection: sqlite3.Connection) -> None:
    """Makes the tables, if the file is new. Raises `SettingsError` for one that has others than ours."""
    version, tables = connection.execute(
        "SELECT user_version, (SELECT count(*) FROM sqlite_schema) FROM pragma_user_version"
    ).fetchone()
    if not tables:
        connection.executescript(files("adapters.embedded").joinpath("sql/schema.sql").read_text())
    elif version != SCHEMA:
        raise SettingsError("the crawl's ledger was begun by another version of Gossamer, which alone goes on with it; start anew")


def _as_unavailable(error: BaseException) -> BaseException:
    """A file that can't be written now (full disk, locked) is an outage, to be tried again; anything else is our own bug."""
    ours = getattr(error, "sqlite_errorcode", None) == sqlite3.SQLITE_ERROR  # SQL that can't be run: no outage
    if isinstance(error, sqlite3.OperationalError | OSError) and not ours:
        # The second is what a file beside it says that can't grow (SQLite's index of its log).
        full = getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR_SHMSIZE)
        unavailable = LedgerUnavailable(f"the ledger's file can't be used now: {error}", full=full)
        unavailable.__cause__ = error
        return unavailable
    return error
