"""The results as a picture: what a page costs with each, what it costs as the crawl grows, and the memory over time."""

import statistics
from pathlib import Path
from typing import Any

from bench.compare import crawlers as who
from bench.compare.figures import of
from bench.compare.targets import Seen


def draw(seen: Seen, file: Path) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot

    figure, (costs, growth, memory) = pyplot.subplots(1, 3, figsize=(15, 4.4), width_ratios=[2, 1, 1], layout="constrained")
    _costs(costs, seen)
    _growth(growth, seen)
    _memory(memory, seen)
    figure.savefig(file, dpi=80)
    pyplot.close(figure)


def _costs(axis: Any, seen: Seen) -> None:
    """Each bar is a median with its range; beside it, how many URLs were missed, or asked for and should not have been."""
    there = [crawler for crawler in who.CRAWLERS if seen.of(crawler.name)][::-1]
    for place, crawler in enumerate(there):
        runs = seen.of(crawler.name)
        values = [run.cpu_ms_a_page for run in runs]
        middle = statistics.median(values)
        reach = [[middle - min(values)], [max(values) - middle]]
        mistakes = statistics.median(run.mistakes for run in runs)
        axis.barh(place, middle, xerr=reach, color="tab:blue" if crawler.is_ours else "tab:gray")
        axis.annotate(
            f"  {middle:.2f}" + (f"; {mistakes:,.0f} mistakes" if mistakes else ""), (max(values), place), va="center", size="small"
        )
    axis.set_yticks(range(len(there)), [crawler.name for crawler in there])
    axis.margins(x=0.25)
    axis.set(
        title=f"CPU-s per 1,000 correct pages, {seen.size:,} pages",
        xlabel="CPU-s, servers apart; mistakes: URLs missed, forbidden or not to be found",
    )


def _growth(axis: Any, seen: Seen) -> None:
    medians = [statistics.median(run.cpu_ms_a_page for run in of(seen.growing, who.GOSSAMER, size)) for size in seen.sizes]
    axis.plot(seen.sizes, medians, marker="o")
    axis.set(
        title="Gossamer as the crawl grows",
        xlabel="pages",
        ylabel="CPU-ms a page",
        xscale="log",
        ylim=(0, 1.2 * max(medians, default=1.0)),
    )
    axis.set_xticks(seen.sizes, [f"{size:,}" for size in seen.sizes])
    axis.minorticks_off()
    axis.grid(alpha=0.3)


def _memory(axis: Any, seen: Seen) -> None:
    for run in of(seen.growing, who.GOSSAMER, max(seen.sizes, default=0)):
        axis.plot(*zip(*run.memory, strict=True), linewidth=1, label=f"round {run.round + 1}")
    axis.set(title=f"Gossamer's memory, {max(seen.sizes, default=0):,} pages", xlabel="seconds", ylabel="MB", ylim=0)
    axis.legend(loc="lower right", fontsize="small")
    axis.grid(alpha=0.3)
