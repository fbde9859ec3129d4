"""The suite: which crawls die where, and their trials, made side by side."""

import math
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from threading import Lock
from typing import Final

from gossamer.settings import Engine
from gossamer.walk import CRASH_POINTS, STEPS
from tests.chaos.crash.trial import CONTROLLER, CSV, DELAY_S, EVERYTHING, JITTER_S, Lane, Result, Trial

ENGINES: Final = (Engine.EMBEDDED, Engine.EXTERNAL)
#: How often a point is passed at most before somebody dies there: about as often as each process passes it in one crawl.
TIMES: Final = 12
SELDOM: Final = {"controller.seed": 1, "controller.announce": 1, "worker.sitemaps": 3, "frontier.ask": 4}
#: With a budget below what the web has: where pages are counted, reserved and given back.
BUDGETED: Final = ("worker.begin:after", "worker.store:after", "worker.finish:before", "worker.finish:after")
MAX_PAGES: Final = 40
#: How many of each, and when so many pages are stored.
KILLS: Final = 3
KILLED_AT: Final = range(1, 61)


def plan(draw: random.Random) -> Iterator[Trial]:
    for engine in ENGINES:
        for point in CRASH_POINTS:
            yield Trial(engine, point, draw.randint(1, SELDOM.get(point.partition(":")[0], TIMES)))
        for point in BUDGETED:
            yield Trial(engine, point, draw.randint(1, TIMES), MAX_PAGES)
        yield Trial(engine, EVERYTHING, draw.randint(1, MAX_PAGES - 10), MAX_PAGES)
        yield Trial(engine, "worker.visit:after", draw.randint(1, TIMES), module=CSV)
        for victim in (EVERYTHING, CONTROLLER) if engine is Engine.EXTERNAL else (EVERYTHING,):
            yield from (Trial(engine, victim, at) for at in draw.sample(KILLED_AT, KILLS))


@dataclass
class Suite:
    """Trials, handed to lanes one by one, until all are made or no more is to be begun."""

    trials: Sequence[Trial]
    say: Callable[[str], None]
    ends_at: float = math.inf  #: by the monotonic clock
    results: dict[Trial, Result] = field(default_factory=dict)
    _waiting: SimpleQueue[Trial] = field(default_factory=SimpleQueue)
    _telling: Lock = field(default_factory=Lock)

    def run(self, lanes: Sequence[Lane]) -> None:
        for trial in self.trials:
            self._waiting.put(trial)
        with ThreadPoolExecutor(len(lanes)) as pool:
            list(pool.map(self._run, lanes))

    def _run(self, lane: Lane) -> None:
        while time.monotonic() < self.ends_at:
            try:
                trial = self._waiting.get_nowait()
            except Empty:
                return
            result = lane.play(trial)
            with self._telling:
                self.results[trial] = result
                self._tell(result)

    def _tell(self, result: Result) -> None:
        verdict = "FAILED" if result.failures else f"nothing lost, requests made again: {result.again}"
        self.say(f"{len(self.results):4}/{len(self.trials)}  {result.trial!s:60} {result.seconds:5.1f} s  {verdict}")
        for failure in result.failures:
            self.say(f"            {failure}")

    @property
    def failed(self) -> list[Result]:
        return [result for result in self.results.values() if result.failures]

    def summary(self) -> str:
        points = {(trial.engine, trial.dies) for trial in self.results if trial.dies in CRASH_POINTS}
        by = Counter((engine, STEPS[point.partition(":")[0]].role) for engine, point in points)
        kills = Counter((trial.engine, trial.dies) for trial in self.results if trial.dies not in CRASH_POINTS)
        gaps = [result.least_gap_s for result in self.results.values() if result.least_gap_s is not None]
        return "\n".join(
            [
                f"{len(self.results)} crawls died once each, {len(points)} of them at different points and engines:",
                *(f"  {engine:8} {role}: {count} points" for (engine, role), count in sorted(by.items())),
                *(f"  {engine:8} {what}: {count} times" for (engine, what), count in sorted(kills.items())),
                f"closest requests to one domain, as the web saw them: {min(gaps, default=0.0):.3f} s at a delay of {DELAY_S} s;",
                f"a busy machine shifts them: a breach is two at once, or less than {DELAY_S - JITTER_S:.1f} s",
                f"not run: {len(self.trials) - len(self.results)}; failures: {len(self.failed)}",
            ]
        )
