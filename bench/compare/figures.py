"""What many runs say together: medians, ratios, growth. Pure: knows runs, and nothing of how they came about.

A ratio is taken within a round, whose runs had the same machine in the same minute, and only then over the rounds: a machine that
is slower for a while makes both slower.
"""

import statistics
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from bench.compare.measure import Run

QUARTERS: Final = 4


def of(runs: Iterable[Run], crawler: str, size: int | None = None) -> list[Run]:
    """The runs of one crawler, on the web of this size, in the order of their rounds."""
    mine = [run for run in runs if run.crawler == crawler and size in (None, run.size)]
    return sorted(mine, key=lambda run: run.round)


def ratios(ours: Sequence[Run], theirs: Sequence[Run], figure: Callable[[Run], float]) -> list[float]:
    """Of each round in which both have run."""
    by_round = {run.round: figure(run) for run in theirs}
    return [figure(run) / by_round[run.round] for run in ours if by_round.get(run.round)]


def cost_ratios(ours: Sequence[Run], theirs: Sequence[Run]) -> list[float]:
    """CPU time per correct page."""
    return ratios(ours, theirs, lambda run: run.cpu_ms_a_page)


def whole_cost_ratios(ours: Sequence[Run], theirs: Sequence[Run]) -> list[float]:
    """CPU time per correct page, that of the servers they stand on included."""
    return ratios(ours, theirs, lambda run: (run.cpu_s + sum(run.servers_s.values())) / max(run.score["pages"], 1))


def marginal_ms(small: Run, large: Run) -> float:
    """CPU time of one page more, when a crawl of the one size becomes one of the other: start and end are in both."""
    return (large.cpu_s - small.cpu_s) * 1000 / (large.score["pages"] - small.score["pages"])


def marginals_ms(runs: Iterable[Run], small: int, large: int) -> list[float]:
    """Of each round that has both sizes."""
    every = list(runs)
    smaller = {run.round: run for run in every if run.size == small}
    return [marginal_ms(smaller[run.round], run) for run in every if run.size == large and run.round in smaller]


def growth(runs: Iterable[Run], sizes: Sequence[int]) -> list[float]:
    """Of each round: what a page more costs from the second size to the third, against from the first to the second."""
    every = list(runs)
    small, middle, large = sizes
    return [
        later / earlier
        for earlier, later in zip(marginals_ms(every, small, middle), marginals_ms(every, middle, large), strict=True)
    ]


def quarters_mb(run: Run) -> list[float]:
    """The median of its memory in each quarter of its time."""
    end_s = run.memory[-1][0]
    quarters: list[list[float]] = [[] for _ in range(QUARTERS)]
    for second, mb in run.memory:
        quarters[min(int(second / end_s * QUARTERS), QUARTERS - 1)].append(mb)
    return [statistics.median(quarter) for quarter in quarters]


def spread(values: Sequence[float], form: str) -> str:
    """Median and range."""
    if not values:
        return "-"
    middle = f"{statistics.median(values):{form}}"
    return f"{middle} ({min(values):{form}} – {max(values):{form}})" if len(values) > 1 else middle
