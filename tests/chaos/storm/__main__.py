"""`make chaos`: a storm, and what came of it. Exits with 1 if anything was lost, doubled, impolite or over its budget."""

import argparse
import random
import shutil
import signal
import sys
import tempfile
import time
from pathlib import Path

from tests.chaos.storm.report import Result, lines, table
from tests.chaos.storm.run import CALM_S, DELAY_S, storm


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.chaos.storm", description=__doc__.split("\n")[0])
    parser.add_argument("--seed", type=int, action="append", help="the same faults in the same order; several: one storm for each")
    parser.add_argument("--duration", type=float, default=600.0, metavar="S", help="how long it lasts, in seconds")
    parser.add_argument("--markdown", action="store_true", help="at the end, a table for the docs")
    given = parser.parse_args()
    # Leaving in this way ends everything that was started.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit("the storm was ended"))
    signal.signal(signal.SIGALRM, lambda *_: sys.exit("the storm did not end in its time"))
    results = [_one(seed, given.duration) for seed in given.seed or [random.SystemRandom().randrange(10_000)]]
    if given.markdown:
        for line in table(results):
            _show(line)
    return 0 if all(result.is_fine for result in results) else 1


def _one(seed: int, duration_s: float) -> Result:
    folder, began = Path(tempfile.mkdtemp(prefix="gossamer-storm-")), time.monotonic()
    _show(f"storm of {duration_s:g} s; the same again: make chaos SEED={seed} DURATION={duration_s:g}")
    signal.alarm(int(duration_s + CALM_S))
    result = storm(seed, duration_s, folder, lambda line: _show(f"{time.monotonic() - began:7.1f}  {line}"))
    for line in lines(result, DELAY_S):
        _show(line)
    if result.is_fine:
        shutil.rmtree(folder)
    else:
        _show(f"what is left of it: {folder}")
    return result


def _show(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
