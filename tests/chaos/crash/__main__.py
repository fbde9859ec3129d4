"""`make crash`: every crash point on each engine, kills of the controller and of everything, budgets, a table.

Several crawls run side by side: most of their time is delays. The seed decides how often each point is passed before somebody dies
there, and which trials a sample has; it is printed, so that a failure can be had again.
"""

import argparse
import math
import random
import shutil
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import pytest

from gossamer.settings import Engine
from gossamer.walk import CRASH_POINTS
from tests.chaos.crash.suite import ENGINES, Suite, plan
from tests.chaos.crash.trial import lane
from tests.system.stack import running_stack


def main() -> int:
    options = arguments().parse_args()
    began, seed = time.monotonic(), random.SystemRandom().randrange(10**6) if options.seed is None else options.seed
    draw = random.Random(seed)
    trials = [
        trial
        for trial in plan(draw)
        if options.engine in (None, trial.engine) and (options.points is None or trial.dies in options.points)
    ]
    trials = draw.sample(trials, min(options.sample, len(trials)) if options.sample else len(trials))  # mixed, also if all
    suite = Suite(trials, say, began + 60 * options.minutes)
    folder = Path(tempfile.mkdtemp(prefix="gossamer-crash-"))
    say(f"{len(trials)} crawls, {options.lanes} at a time; seed {seed}")
    with ExitStack() as opened:
        external = any(trial.engine is Engine.EXTERNAL for trial in trials)
        stack = opened.enter_context(running_stack()) if external else None
        suite.run([opened.enter_context(lane(folder / str(number), stack)) for number in range(options.lanes)])
    say(f"{suite.summary()}\nseed {seed}; {time.monotonic() - began:.0f} s")
    if suite.failed:
        say(f"what the failed ones left is in {folder}")
    else:
        shutil.rmtree(folder)
    return 1 if suite.failed or not suite.results else 0


def arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="make crash ARGS=…",
        description="A crawl dies at every crash point, on both engines, goes on, and is compared. All of it takes ten minutes.",
        epilog=f"Points: {', '.join(CRASH_POINTS)}. Exit code 1: something was lost, doubled, impolite or not as it should be.",
    )
    parser.add_argument(
        "--points", nargs="+", metavar="POINT", choices=CRASH_POINTS, help="these alone, such as worker.judge:after"
    )
    parser.add_argument("--engine", choices=ENGINES, help="this one alone")
    parser.add_argument("--seed", type=int, help="the same trials again")
    parser.add_argument("--sample", type=int, metavar="N", help="N of the trials, others each time unless a seed is given")
    parser.add_argument("--minutes", type=float, default=math.inf, metavar="M", help="begin no more after that")
    parser.add_argument("--lanes", type=int, default=3, metavar="N", help="crawls at a time (3)")
    return parser


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except pytest.skip.Exception as missing:  # a server that can't be had
        sys.exit(str(missing))
