"""Runs one of our programs as it is, and notes how much of its CPU time went into the ledger.

    python -m bench.timed FOLDER services.worker --crawl …
    python -m bench.timed FOLDER controller.py --seed …

Each step that a verb of the ledger takes on the event loop is timed, and each group of verbs in SQLite's own thread. What the loop
does to wake them up, and for their sockets, is not: a little more of the program's time is the ledger's than is told here. The
figures lie in FOLDER/<process id>.json whenever the program has closed a ledger, since roles end without cleaning up.
"""

import json
import os
import runpy
import sys
import time
import types
from collections.abc import Callable, Coroutine, Generator
from functools import wraps
from inspect import iscoroutinefunction
from pathlib import Path
from typing import Any

from adapters.distributed.ledger import RedisLedger
from adapters.embedded.ledger import SqliteLedger


class Meter:
    """CPU seconds within the ledger. One for each thread that adds to it."""

    def __init__(self) -> None:
        self.spent_s = 0.0
        self._depth = 0  # a verb that calls another is timed once

    def __enter__(self) -> None:
        if not self._depth:
            self._began = time.thread_time()
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        if not self._depth:
            self.spent_s += time.thread_time() - self._began


LOOP, THREAD = Meter(), Meter()


@types.coroutine
def step_by_step(verb: Coroutine[Any, Any, Any]) -> Generator[Any, Any, Any]:
    """The same coroutine, timed while it runs and not while it waits."""
    resume, argument = verb.send, None
    while True:
        try:
            with LOOP:
                awaited = resume(argument)
        except StopIteration as done:
            return done.value
        try:
            resume, argument = verb.send, (yield awaited)
        except BaseException as error:
            resume, argument = verb.throw, error


def timed(verb: Callable[..., Coroutine[Any, Any, Any]]) -> Callable[..., Coroutine[Any, Any, Any]]:
    @wraps(verb)
    async def call(*args: Any, **kwargs: Any) -> Any:
        return await step_by_step(verb(*args, **kwargs))

    return call


def time_ledgers(folder: Path) -> None:
    for ledger in (SqliteLedger, RedisLedger):
        for name, verb in list(vars(ledger).items()):
            if iscoroutinefunction(verb) and not name.startswith("_"):
                setattr(ledger, name, noting(timed(verb), folder) if name == "close" else timed(verb))
    run_group = SqliteLedger._run_group

    def timed_group(self: SqliteLedger, verbs: Any) -> Any:
        with THREAD:
            return run_group(self, verbs)

    SqliteLedger._run_group = timed_group  # type: ignore[method-assign]


def noting(close: Callable[..., Coroutine[Any, Any, Any]], folder: Path) -> Callable[..., Coroutine[Any, Any, Any]]:
    async def closed(ledger: object) -> None:
        await close(ledger)
        figures = {"program": sys.argv[0], "cpu_s": time.process_time(), "ledger_s": LOOP.spent_s + THREAD.spent_s}
        (folder / f"{os.getpid()}.json").write_text(json.dumps(figures))

    return closed


def main() -> None:
    folder, program, *words = sys.argv[1:]
    time_ledgers(Path(folder).resolve())
    sys.argv = [program, *words]
    if program.endswith(".py"):
        runpy.run_path(program, run_name="__main__")
    else:
        runpy.run_module(program, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
