"""The board: a crawl on a terminal, drawn anew with each snapshot.

`board` is a pure function from a snapshot to a text with styles; `Board` puts it on the screen. Nothing in it is read as rich's
markup: a page could name a colour, or a link. And it is one text rather than tables, which cost ten times as much to draw.
"""

import sys
from collections.abc import Iterator, Sequence
from types import TracebackType
from typing import Final, Self, TextIO

from rich.console import Console
from rich.live import Live
from rich.text import Text

from gossamer.ports.broker import URLS, band_queue, worker_queue
from gossamer.records import CrawlStatus
from gossamer.states import State
from services.controller.display import News, Pace, trouble, waiting, why
from services.controller.engines import Snapshot
from services.controller.summary import modules, ranking
from services.controller.wording import safe, several, size, span, tallies

WORKERS_SHOWN: Final = 8
DOMAINS_SHOWN: Final = 8
BAR_CELLS: Final = 30
DRAWN_EVERY_S: Final = 0.4


class Board:
    """A `Display` that stays in its place."""

    def __init__(self, stderr: TextIO) -> None:
        console = Console(file=stderr, highlight=False, markup=False, emoji=False)
        # What modules print goes above the board if it would go to this terminal; a stdout that leads elsewhere is left alone.
        self._live = Live(console=console, auto_refresh=False, redirect_stdout=sys.stdout.isatty())
        self._pace = Pace()
        self._first_at: float | None = None
        self._next_at = float("-inf")

    def __enter__(self) -> Self:
        self._live.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self._live.stop()

    def show(self, snapshot: Snapshot) -> None:
        if self._first_at is None:
            self._first_at = snapshot.now
        rate = self._pace.rate(snapshot)
        if snapshot.now >= self._next_at:
            self._next_at = snapshot.now + DRAWN_EVERY_S
            self._live.update(board(snapshot, rate, snapshot.now - self._first_at), refresh=True)

    def tell(self, news: News) -> None:
        self._live.console.print(Text(news.text))


def board(snapshot: Snapshot, rate: float, seconds: float) -> Text:
    """All that an operator wants to see at a glance."""
    text = Text(no_wrap=True, overflow="ellipsis")
    for label, shown, style in _lines(snapshot, rate, seconds):
        text.append(f"{label:<9}", "bold").append(f"{shown}\n", style)
    text.right_crop(1)
    return text


#: Label, text, style.
_Line = tuple[str, str, str]


def _lines(snapshot: Snapshot, rate: float, seconds: float) -> Iterator[_Line]:
    counts, rules = snapshot.counts, snapshot.status.rules
    ending = snapshot.status.status is not CrawlStatus.RUNNING
    yield "time", f"{span(seconds)}   {'ending: what is in flight is finished' if ending else 'Ctrl-C ends it gently'}", ""
    yield "pages", f"{bar(counts.stored, rules.max_pages)} {counts.stored:,} of {rules.max_pages:,}   {rate:.1f}/s", ""
    spent = counts.used_bytes + counts.charged_bytes
    yield "bytes", f"{bar(spent, rules.max_bytes)} {size(spent)} of {size(rules.max_bytes)}", ""
    states = ", ".join(f"{state.name.lower()} {counts.states[state]:,}" for state in State if state is not State.CLOSED)
    yield "URLs", f"{states}   {several(counts.requests, 'request')}, {several(counts.domains, 'domain')}", ""
    yield "queues", f"urls {snapshot.queues.get(URLS, 0):,}   bands, best first: {_bands(snapshot)}", ""
    yield from _table("workers", ("id", "domains", "URLs held", "hints"), _workers(snapshot), len(snapshot.workers))
    if idle := waiting(snapshot.domains, snapshot.now):
        rows = [(safe(each.name, 50), f"{each.out + each.parked:,}", why(each, snapshot.now)) for each in idle[:DOMAINS_SHOWN]]
        yield from _table("waiting", ("domain", "URLs", "for"), rows, len(idle))
    for reason in snapshot.paused:
        yield "paused", safe(reason), "red"
    if errors := trouble(snapshot):
        yield "errors", tallies(errors), "yellow"
    for label, shown in modules(snapshot.modules):
        yield label, shown, "red"
    api = snapshot.frontier.rank_api
    for label, shown in ranking(snapshot.frontier):
        yield label, shown, "" if api is not None and api.away_since is None else "yellow"


def bar(part: int, whole: int) -> str:
    """How much of a budget is used. Full only when it is."""
    cells = min(part * BAR_CELLS // whole, BAR_CELLS)
    return "━" * cells + "╌" * (BAR_CELLS - cells)


def _bands(snapshot: Snapshot) -> str:
    depths: list[str] = []
    while (name := band_queue(len(depths))) in snapshot.queues:
        depths.append(f"{snapshot.queues[name]:,}")
    return " ".join(depths) or "none"


def _workers(snapshot: Snapshot) -> list[tuple[str, ...]]:
    return [
        (
            str(each.id),
            f"{snapshot.domains_owned.get(each.id, 0):,}",
            f"{each.load:,}",
            f"{snapshot.queues.get(worker_queue(each.id), 0):,}",
        )
        for each in snapshot.workers[:WORKERS_SHOWN]
    ]


def _table(label: str, head: tuple[str, ...], rows: Sequence[tuple[str, ...]], all_of_them: int) -> Iterator[_Line]:
    """Rows in columns; how many more there are; one word if there are none."""
    if not rows:
        yield label, "none yet", ""
        return
    widths = [max(len(row[column]) for row in (head, *rows)) for column in range(len(head))]
    for number, row in enumerate((head, *rows)):
        cells = "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield ("" if number else label), cells.rstrip(), ("" if number else "dim")
    if all_of_them > len(rows):
        yield "", f"and {all_of_them - len(rows):,} more", "dim"
