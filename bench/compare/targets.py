"""What the crawler is meant to reach, each beside what was seen. Pure.

A target that has nothing to be judged by (a peer that is absent, a size that was left out) says so, and counts as neither.
"""

import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final

from bench.compare import crawlers as who
from bench.compare.figures import cost_ratios, growth, marginals_ms, of, quarters_mb, ratios, spread
from bench.compare.measure import Run
from bench.compare.startup import Startup

#: The targets are meant for a web of so many pages: on smaller ones start-up weighs more.
MEANT_FOR: Final = 10_000
FLAT: Final = 1.1  #: memory is flat if its last quarter is at most so many times its first


@dataclass(frozen=True)
class Seen:
    """All that was measured."""

    sites: int  #: of each web
    size: int  #: pages of the web on which all were compared
    sizes: Sequence[int]  #: pages of the webs on which the growth was seen; none: it was not
    runs: Sequence[Run]  #: of the comparison
    growing: Sequence[Run] = ()
    startup: Startup | None = None
    steps: Mapping[str, Any] = field(default_factory=dict)  #: as `bench.steps` tells them; none: they were not measured
    absent: Mapping[str, str] = field(default_factory=dict)  #: crawlers that are not there, and why

    def of(self, crawler: str) -> list[Run]:
        return of(self.runs, crawler)

    @property
    def imperfect(self) -> list[Run]:
        return [run for run in (*self.runs, *self.growing) if run.crawler.startswith(who.GOSSAMER) and not run.is_perfect]


class Verdict(Enum):
    MET = "met"
    MISSED = "**not met**"
    REPORTED = "reported"
    UNKNOWN = "not measured"


@dataclass(frozen=True)
class Line:
    measure: str
    target: str
    seen: str
    verdict: Verdict


def judged(
    measure: str, bound: float | None, values: Sequence[float], form: str = ".2f", unit: str = "×", besides: str = ""
) -> Line:
    """By the median; without a bound it is only reported. `besides` is said of the target, and does not judge."""
    target = "" if bound is None else f"≤ {bound:g} {unit}{besides}"
    if not values:
        return Line(measure, target, "-", Verdict.UNKNOWN)
    seen = f"{spread(values, form)} {unit}"
    if bound is None:
        return Line(measure, target, seen, Verdict.REPORTED)
    return Line(measure, target, seen, Verdict.MET if statistics.median(values) <= bound else Verdict.MISSED)


def lines(seen: Seen) -> list[Line]:
    def against(peer: str, bound: float, crawler: str = who.GOSSAMER, besides: str = "") -> Line:
        measure = f"CPU a correct page, {seen.size:,} pages: {crawler} ÷ {peer}"
        return judged(measure, bound, cost_ratios(seen.of(crawler), seen.of(peer)), besides=besides)

    return [
        against(who.SCRAPY_TUNED, 0.5, besides=", at best 0.4"),
        against(who.SCRAPY, 0.15),
        against(who.CRAWLEE, 0.22),
        against(who.SCRAPY_REDIS, 0.4, who.EXTERNAL_2),
        against(who.SPIDER_RS, 2, who.NO_SIMILARITY, besides=", wished for"),
        *_floor(seen),
        _scaling(seen),
        *_growth(seen),
        *_startup(seen.startup),
        _correctness(seen),
    ]


def _floor(seen: Seen) -> list[Line]:
    """Against what the steps of a page take at least, measured on the same pages in the same run."""
    floor_ms = seen.steps.get("floor_sum_ms")
    whole = [run.cpu_ms_a_page / floor_ms for run in seen.of(who.GOSSAMER)] if floor_ms else []
    more = [each / floor_ms for each in marginals_ms(seen.growing, *seen.sizes[:2])] if floor_ms and len(seen.sizes) > 1 else []
    step = ", " + " → ".join(f"{size:,}" for size in seen.sizes[:2]) + " pages" if seen.sizes else ""
    return [
        judged(f"CPU a page, {seen.size:,} pages, start-up included ÷ the sum of its steps' floors", 1.4, whole),
        judged(f"CPU of a page more{step} ÷ the same", 1.4, more),
    ]


def _scaling(seen: Seen) -> Line:
    faster = ratios(seen.of(who.EXTERNAL_2), seen.of(who.EXTERNAL_1), lambda run: run.pages_a_second)
    return judged("pages a second on servers: 2 workers ÷ 1, servers and web on the same cores", None, faster)


def _growth(seen: Seen) -> list[Line]:
    if len(seen.sizes) < 3:
        return [judged("CPU of a page more, as the crawl grows", 1.15, []), judged("peak memory", 200, [], ".0f", "MB")]
    small, middle, large = seen.sizes
    longest = of(seen.growing, who.GOSSAMER, large)
    # In a crawl of a few seconds the first quarter is the start.
    flat = [quarters[-1] / quarters[0] for quarters in map(quarters_mb, longest)] if large >= MEANT_FOR else []
    return [
        judged(
            f"CPU of a page more: {middle:,} → {large:,} pages ÷ {small:,} → {middle:,}", 1.15, growth(seen.growing, seen.sizes)
        ),
        judged(f"peak memory, {large:,} pages", 200, [run.peak_mb for run in longest], ".0f", "MB"),
        judged(f"flat: memory in the last quarter of the time ÷ in the first, {large:,} pages", FLAT, flat),
    ]


def _startup(startup: Startup | None) -> list[Line]:
    helps, one_page = ([startup.help_s], startup.ratios) if startup else ([], [])
    return [
        judged("CPU of `controller.py --help`", 0.1, helps, ".3f", "s"),
        judged("CPU of a crawl of one page ÷ that of importing its libraries", 1.3, one_page),
    ]


def _correctness(seen: Seen) -> Line:
    count = sum(run.crawler.startswith(who.GOSSAMER) for run in (*seen.runs, *seen.growing))
    wrong = len(seen.imperfect)
    verdict = (Verdict.MISSED if wrong else Verdict.MET) if count else Verdict.UNKNOWN
    return Line("Gossamer's runs with a page missed, forbidden, wrong or repeated", "0", f"{wrong} of {count}", verdict)
