"""A role as a process: it waits for its crawl, serves it until that has ended, and waits again; SIGTERM ends it in good order.

Servers that are away at any of this are waited for. What can't be mended by waiting (a setting, a module that is not there) ends
the process with one line and exit code 2, so that whoever restarts it can tell.
"""

import asyncio
import logging
import os
import signal
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Final, NoReturn

from adapters.wiring import Ports, open_external
from gossamer import kept
from gossamer.clock import Clock, SystemClock
from gossamer.errors import NoCrawl, SettingsError
from gossamer.ids import CrawlId
from gossamer.records import CrawlRecord
from gossamer.settings import Settings
from gossamer.walk import Role
from services.role.following import Following
from services.role.garbage import keep_all
from services.role.health import answering
from services.role.logs import start_logging
from services.role.words import Help, Words, read

log = logging.getLogger("gossamer.role")

#: Under which nothing is kept.
NO_CRAWL: Final = CrawlId("NONE")


@dataclass(frozen=True, slots=True, kw_only=True)
class AtWork:
    """What a role has while it serves a crawl."""

    crawl: CrawlId
    words: Words
    settings: Settings  #: the crawl's
    ports: Ports
    clock: Clock
    leaving: asyncio.Event  #: the process is to end, or to serve another crawl


Serve = Callable[[AtWork], Awaitable[None]]


def main(role: Role, serve: Serve) -> int:
    """The process's exit code. `serve` returns when the crawl has ended, or soon after `leaving` is set."""
    try:
        words = read(role, sys.argv[1:], os.environ)
        if isinstance(words, Help):
            sys.stdout.write(words.text)
            return 0
        start_logging(words.log)
        asyncio.run(_run(role, words, serve))
    except Exception as error:
        if (wrong := _wrong_setting(error)) is not None:
            sys.stderr.write(f"services.{role}: {wrong}\n")
            return 2
        log.critical("role.died", exc_info=error)
        return 1
    return 0


def end(code: int) -> NoReturn:
    """Ends the process. Threads that wait for a server that says nothing are not waited for, as Python itself would do."""
    logging.shutdown()
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


async def _run(role: Role, words: Words, serve: Serve) -> None:
    clock, stopping = SystemClock(), asyncio.Event()
    following = Following(words.servers, words.crawl, stopping)
    asked = open_external(words.servers, NO_CRAWL, Settings(), clock)  # for health alone: it is asked also while there is no crawl
    try:
        with _told_by_signals(stopping), _told_by_input(stopping) if words.tied else nullcontext():
            async with answering(words.health, asked.checks):
                first = True
                while (found := await following.next()) is not None:
                    keep_all(but_for_garbage=not first)
                    first = False
                    await _serve(role, words, *found, serve, clock, following)
    finally:
        await asked.close()
        await following.close()


async def _serve(
    role: Role, words: Words, crawl: CrawlId, record: CrawlRecord, serve: Serve, clock: Clock, following: Following
) -> None:
    settings = kept.from_text(record.rules.settings, {}).settings
    ports = open_external(words.servers, crawl, settings, clock)
    log.info("role.serving", extra={"role": str(role), "crawl": crawl})
    try:
        async with following.serving(crawl) as leaving:
            await serve(AtWork(crawl=crawl, words=words, settings=settings, ports=ports, clock=clock, leaving=leaving))
    except* NoCrawl:
        log.warning("role.crawl_gone", extra={"crawl": crawl})
    finally:
        await ports.close()


def _wrong_setting(error: BaseException) -> SettingsError | None:
    """If that is what ended it: alone, or in a group of tasks."""
    if isinstance(error, SettingsError):
        return error
    inner = error.exceptions if isinstance(error, BaseExceptionGroup) else ()
    return next((found for each in inner if (found := _wrong_setting(each)) is not None), None)


@contextmanager
def _told_by_signals(stopping: asyncio.Event) -> Iterator[None]:
    loop = asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, stopping.set)
    try:
        yield
    finally:
        for each in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(each)


@contextmanager
def _told_by_input(stopping: asyncio.Event) -> Iterator[None]:
    """A pipe ends when its other end dies, however it dies: so nobody is left at work for a controller that was killed."""
    loop, file = asyncio.get_running_loop(), sys.stdin.fileno()

    def readable() -> None:
        if not os.read(file, 4096):
            loop.remove_reader(file)
            stopping.set()

    loop.add_reader(file, readable)
    try:
        yield
    finally:
        loop.remove_reader(file)
