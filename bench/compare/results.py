"""The results as a page of Markdown: in short, then all tables, our own aims, and what was run and on what."""

import os
import statistics
from collections.abc import Callable, Sequence
from typing import Final

from bench.compare import crawlers as who
from bench.compare.figures import QUARTERS, cost_ratios, growth, marginals_ms, of, quarters_mb, spread, whole_cost_ratios
from bench.compare.measure import Run
from bench.compare.surroundings import surroundings
from bench.compare.targets import MEANT_FOR, Seen, lines
from tests.system.web import PERFECT

COMPARED_WITH: Final = (who.SCRAPY_TUNED, who.SCRAPY, who.CRAWLEE, who.SCRAPY_REDIS, who.SPIDER_RS)

Cell = Callable[[Sequence[Run]], str]
Ratios = Callable[[Sequence[Run], Sequence[Run]], list[float]]


def page(seen: Seen, peers: who.Peers) -> str:
    parts = [
        "# What a crawl costs, beside others",
        "Written by `make bench`; [docs/performance.md](../docs/performance.md) tells how to read it. CPU time is user + system of "
        "all processes of a crawler, servers and web apart. Medians, and in brackets the range; a ratio is taken in each round.",
        summary(seen),
        f"## {seen.size:,} pages of {seen.sites} sites; rounds: {len({run.round for run in seen.runs})}",
        costs(seen),
        "CPU time is divided by the pages that were to be found, each once, so who missed some has a larger figure. `pages/s` "
        "leaves out start and end; `fixed loop` is what a loop that is always the same took just before: how fast the machine was.",
        "What each asked the web for, against what a correct crawler asks for:",
        scores(seen),
        "*wrong*: URLs that no correct reading of a link gives; *repeats*: pages asked for again, under the same URL; *repeats "
        "tracking* and *repeats order*: under one with tracking parameters, or with its parameters in another order, which is a "
        "matter of choice; *in vain*: files that are no pages; *hung*: crawls that had to be ended.",
        "CPU of the one in the row, divided by that of the one in the column, per correct page:",
        cost_table(seen),
        *external(seen),
        *grown(seen),
        *started(seen),
        *floors(seen),
        "## Our own aims",
        "Set beforehand, and not by what was seen here.",
        targets(seen),
        f"They are meant for {MEANT_FOR:,} pages: on this smaller web start-up weighs more." if seen.size < MEANT_FOR else "",
        "## What was run, and on what",
        surroundings(seen, peers),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def summary(seen: Seen) -> str:
    def against(ours: str, peer: str, ratios: Ratios = cost_ratios) -> str:
        found = ratios(seen.of(ours), seen.of(peer))
        return f"**{statistics.median(found):.2f} ×** that of {peer}" if found else ""

    embedded = [said for peer in (who.SCRAPY_TUNED, who.SCRAPY, who.CRAWLEE) if (said := against(who.GOSSAMER, peer))]
    told = [f"- In one process, with everything on, a page takes this CPU time: {', '.join(embedded)}."] if embedded else []
    if servers := against(who.EXTERNAL_2, who.SCRAPY_REDIS):
        whole = against(who.EXTERNAL_2, who.SCRAPY_REDIS, whole_cost_ratios)
        told.append(f"- On servers, with two workers: {servers}; with the servers' own time on both sides {whole}.")
    told += cheaper(seen)
    if runs := [run for run in (*seen.runs, *seen.growing) if run.crawler.startswith(who.GOSSAMER)]:
        right = len(runs) - len(seen.imperfect)
        told.append(f"- {right} of its {len(runs)} crawls found every page, and asked for nothing that a correct crawler does not.")
    return "\n".join(told)


def cheaper(seen: Seen) -> list[str]:
    """Peers that take less, and what they do for it."""
    told = []
    for peer in who.CRAWLERS:
        ratios = [] if peer.is_ours else cost_ratios(seen.of(peer.name), seen.of(who.GOSSAMER))
        if ratios and (ratio := statistics.median(ratios)) < 1:
            mistakes = statistics.median(run.mistakes for run in seen.of(peer.name))
            told.append(f"{peer.name} {ratio:.2f} × ({mistakes:,.0f} URLs missed, forbidden or not to be found)")
    return [f"- Less than Gossamer takes, for less work: {', '.join(told)}."] if told else []


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    ruler = "|---|" + "--:|" * (len(head) - 1)
    return "\n".join([f"| {' | '.join(head)} |", ruler, *(f"| {' | '.join(row)} |" for row in rows)])


def targets(seen: Seen) -> str:
    return table(
        ("measure", "target", "seen", ""),
        [(line.measure, line.target, line.seen, line.verdict.value) for line in lines(seen)],
    )


def costs(seen: Seen) -> str:
    columns: dict[str, Cell] = {
        "CPU-s per 1,000 correct pages": lambda runs: spread([run.cpu_ms_a_page for run in runs], ".2f"),
        "servers' CPU-s, besides": _servers,
        "peak MB": lambda runs: spread([run.peak_mb for run in runs], ".0f"),
        "pages/s": lambda runs: spread([run.pages_a_second for run in runs], ".0f"),
        "fixed loop, ms": lambda runs: spread([run.spin_s * 1000 for run in runs], ".0f"),
    }
    return _by_crawler(seen, columns)


def _servers(runs: Sequence[Run]) -> str:
    """Per 1,000 correct pages, too."""

    def median(name: str) -> float:
        return statistics.median(run.servers_s[name] * 1000 / max(run.score["pages"], 1) for run in runs)

    return ", ".join(f"{name} {median(name):.2f}" for name in runs[0].servers_s)


def scores(seen: Seen) -> str:
    def cell(key: str) -> Cell:
        return lambda runs: f"{statistics.median(run.score[key] for run in runs):,.0f}"

    columns = {key.replace("_", " "): cell(key) for key in ("pages", *PERFECT)}
    return _by_crawler(seen, columns | {"hung": lambda runs: str(sum(run.hung for run in runs))})


def _by_crawler(seen: Seen, columns: dict[str, Cell]) -> str:
    rows = []
    for crawler in who.CRAWLERS:
        if runs := seen.of(crawler.name):
            rows.append((crawler.name, *(cell(runs) for cell in columns.values())))
        elif crawler.name in seen.absent:
            rows.append((f"{crawler.name}: absent, {seen.absent[crawler.name]}", *("-" for _ in columns)))
    return table(("", *columns), rows)


def cost_table(seen: Seen) -> str:
    there = [peer for peer in COMPARED_WITH if seen.of(peer)]
    ours = [crawler.name for crawler in who.CRAWLERS if crawler.is_ours and seen.of(crawler.name)]
    rows = [(name, *(spread(cost_ratios(seen.of(name), seen.of(peer)), ".2f") for peer in there)) for name in ours]
    return table(("", *there), rows) if there else "No peer is there."


def external(seen: Seen) -> list[str]:
    """Where the cores' time went while servers, roles and web shared them; what limits a crawl is what leaves none."""
    crawlers = [name for name in (who.EXTERNAL_1, who.EXTERNAL_2) if seen.of(name)]
    if not crawlers:
        return []
    shares = {name: _shares(seen.of(name)) for name in crawlers}
    parts = dict.fromkeys(part for each in shares.values() for part in each)
    rows = [(part, *(f"{shares[name].get(part, 0):.0%}" for name in crawlers)) for part in parts]
    rows.append(("pages/s", *(spread([run.pages_a_second for run in seen.of(name)], ".0f") for name in crawlers)))
    cores = os.cpu_count()
    return [
        "## On servers: where the cores' time goes",
        f"In % of the time of all {cores} cores, from start to end; the servers, the web and the crawl share them.",
        table(("", *(name.removeprefix("Gossamer, ") for name in crawlers)), rows),
    ]


def _shares(runs: Sequence[Run]) -> dict[str, float]:
    def share(part: str) -> float:
        return statistics.median(_spent(run).get(part, 0.0) / (run.took_s * (os.cpu_count() or 1)) for run in runs)

    shares = {part: share(part) for part in _spent(runs[0])}
    return shares | {"nobody, or what else ran": max(1 - sum(shares.values()), 0.0)}


def _spent(run: Run) -> dict[str, float]:
    controller_s = run.cpu_s - sum(run.roles_s.values())
    return {"controller": controller_s, **run.roles_s, **run.servers_s, "the web": run.web_s}


def grown(seen: Seen) -> list[str]:
    if not seen.growing:
        return []
    rows = []
    for number, size in enumerate(seen.sizes):
        runs = of(seen.growing, who.GOSSAMER, size)
        more = spread(marginals_ms(seen.growing, seen.sizes[number - 1], size), ".3f") if number else ""
        quarters = [statistics.median(quarter) for quarter in zip(*map(quarters_mb, runs), strict=True)]
        rows.append(
            (
                f"{size:,}",
                spread([run.cpu_ms_a_page for run in runs], ".3f"),
                more,
                spread([run.pages_a_second for run in runs], ".0f"),
                " / ".join(f"{mb:.0f}" for mb in quarters),
                spread([run.peak_mb for run in runs], ".0f"),
            )
        )
    head = ("pages", "CPU-ms a page", "a page more", "pages/s", f"MB in quarter 1 / … / {QUARTERS} of the time", "peak MB")
    last = f"A page more at the end, against one in the middle: {spread(growth(seen.growing, seen.sizes), '.2f')} ×."
    return ["## As the crawl grows", table(head, rows), last if len(seen.sizes) == 3 else ""]


def started(seen: Seen) -> list[str]:
    if seen.startup is None:
        return []
    rows = [
        ("`controller.py --help`", f"{seen.startup.help_s:.3f}"),
        ("a crawl of one page", f"{seen.startup.one_page_s:.3f}"),
        ("importing the libraries that it uses, alone", f"{seen.startup.imports_s:.3f}"),
    ]
    return ["## Start-up", table(("", "CPU-s"), rows)]


def floors(seen: Seen) -> list[str]:
    if not seen.steps:
        return []
    rows = [
        (name, f"{step['ms']:.3f}", f"{step['floor_ms']:.3f}" if step.get("floor_ms") is not None else "-")
        for name, step in seen.steps["steps"].items()
    ]
    rows.append(("**sum**", f"{seen.steps['sum_ms']:.3f}", f"{seen.steps['floor_sum_ms']:.3f}"))
    told = (
        "Of an embedded crawl's pages, each step alone over all of them, in the same run as the rest. What a page costs more than "
        "this sum is what holds the steps together, and that a step which is taken alone finds its code and its tables at hand."
    )
    return ["## Step by step", told, table(("", "ours, CPU-ms a page", "floor"), rows)]
