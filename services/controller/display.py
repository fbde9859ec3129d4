"""What is seen of a crawl while it runs: a board on a terminal, a line every few seconds elsewhere, JSON lines for machines.

Everything goes to stderr; stdout is for results. What is shown is made of snapshots by pure functions; the classes only know
when to show it, and where. Texts from the web pass `wording.safe`.
Must not know: how a crawl is run. Never waits, never raises because of what it is shown.
"""

import json
import logging
import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from types import TracebackType
from typing import Final, Protocol, Self, TextIO

import msgspec
from msgspec import field

from gossamer.clock import Clock
from gossamer.notes import ModuleNote, RankApiNote
from gossamer.outcomes import Outcome
from gossamer.records import CrawlStatus, DomainRecord
from gossamer.settings import Log
from services.controller.engines import Snapshot
from services.controller.wording import moment, safe, several, size, span, tallies

LINE_EVERY_S: Final = 5.0
RATE_OVER_S: Final = 10.0

#: Ends that are no trouble.
_FINE: Final = frozenset({Outcome.DONE, Outcome.REDIRECT, Outcome.DUPLICATE, Outcome.NO_CONTENT})


class News(msgspec.Struct, frozen=True):
    """Something that happened once: an event for machines, with its fields; a sentence for people."""

    event: str
    text: str
    fields: Mapping[str, object] = field(default_factory=dict)
    level: str = "info"


class Display(Protocol):
    """Where a crawl is shown while it runs."""

    def __enter__(self) -> Self: ...

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None: ...

    def show(self, snapshot: Snapshot) -> None: ...

    def tell(self, news: News) -> None: ...


def open_display(log: Log, stderr: TextIO, clock: Clock) -> Display:
    """The one that suits the reader."""
    if log is Log.JSON:
        return Lines(stderr, clock, as_json)
    if stderr.isatty() and os.environ.get("TERM") != "dumb":
        from services.controller.board import Board  # rich takes a while to import, and here it is needed

        return Board(stderr)
    return Lines(stderr, clock, for_people)


class Lines:
    """A line every few seconds, and one for each piece of news; `form` makes it of a moment and the news."""

    def __init__(self, stderr: TextIO, clock: Clock, form: "Form") -> None:
        self._stderr, self._clock, self._form = stderr, clock, form
        self._pace = Pace()
        self._next_at = float("-inf")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        pass

    def show(self, snapshot: Snapshot) -> None:
        rate = self._pace.rate(snapshot)
        if snapshot.now >= self._next_at:
            self._next_at = snapshot.now + LINE_EVERY_S
            self._write(snapshot.now, News("crawl.progress", line(snapshot, rate), progress(snapshot, rate)))

    def tell(self, news: News) -> None:
        self._write(self._clock.now(), news)

    def _write(self, now: float, news: News) -> None:
        self._stderr.write(self._form(datetime.fromtimestamp(now, UTC), news) + "\n")
        self._stderr.flush()


Form = Callable[[datetime, News], str]


def for_people(at: datetime, news: News) -> str:
    return f"{at:%H:%M:%S} {news.text}"


def as_json(at: datetime, news: News) -> str:
    time = at.isoformat(timespec="milliseconds")
    return json.dumps({"time": time, "level": news.level, "event": news.event, **news.fields}, default=str)


class Pace:
    """Pages a second, over the last few of them."""

    def __init__(self) -> None:
        self._seen: deque[tuple[float, int]] = deque()

    def rate(self, snapshot: Snapshot) -> float:
        self._seen.append((snapshot.now, snapshot.counts.stored))
        while snapshot.now - self._seen[0][0] > RATE_OVER_S:
            self._seen.popleft()
        then, stored = self._seen[0]
        return (snapshot.counts.stored - stored) / (snapshot.now - then) if snapshot.now > then else 0.0


def line(snapshot: Snapshot, rate: float) -> str:
    """A snapshot in one line."""
    counts, rules = snapshot.counts, snapshot.status.rules
    parts = [
        f"{several(counts.stored, 'page')} ({rate:.1f}/s)",
        f"{size(counts.used_bytes)} of {size(rules.max_bytes)}",
        f"{counts.open:,} open ({counts.fetching:,} in flight)",
        several(counts.domains, "domain"),
    ]
    if errors := trouble(snapshot):
        parts.append(f"errors: {tallies(errors)}")
    parts += [f"module {safe(name)}: {several(each.failures, 'failure')}" for name, each in snapshot.modules.items()]
    if (plugin := snapshot.frontier.prioritizer) is not None:
        parts.append(f"prioritizer: {several(plugin.failures, 'failure')}")
    if (api := snapshot.frontier.rank_api) is not None and api.away_since is not None:
        parts.append(f"rank API: away since {moment(api.away_since)}, asked {several(api.asked, 'time')}")
    parts += [f"paused: {safe(reason)}" for reason in snapshot.paused]
    if snapshot.status.status is CrawlStatus.DRAINING:
        parts.append("ending")
    return ", ".join(parts)


def progress(snapshot: Snapshot, rate: float) -> dict[str, object]:
    """A snapshot as the fields of an event."""
    counts = snapshot.counts
    return {
        "status": snapshot.status.status,
        "pages": counts.stored,
        "pages_per_s": round(rate, 2),
        "bytes": counts.used_bytes,
        "bytes_charged": counts.charged_bytes,
        "requests": counts.requests,
        "domains": counts.domains,
        "states": {state.name.lower(): count for state, count in counts.states.items()},
        "outcomes": dict(counts.outcomes),
        "queues": dict(snapshot.queues),
        "workers": [
            {"id": each.id, "load": each.load, "domains": snapshot.domains_owned.get(each.id, 0)} for each in snapshot.workers
        ],
        "modules": {name: {"failures": each.failures, "off": each.switched_off} for name, each in snapshot.modules.items()},
        "rank_api": told(snapshot.frontier.rank_api),
        "prioritizer": told(snapshot.frontier.prioritizer),
        "paused": list(snapshot.paused),
    }


def told(note: RankApiNote | ModuleNote | None) -> dict[str, object] | None:
    """A note of a frontier's as fields; None if there is nothing to be said."""
    return None if note is None else {name: getattr(note, name) for name in note.__struct_fields__}


def trouble(snapshot: Snapshot) -> dict[str, int]:
    """The outcomes that are errors, and how many of each."""
    return {outcome: count for outcome, count in snapshot.counts.outcomes.items() if count and outcome not in _FINE}


def why(domain: DomainRecord, now: float) -> str:
    """What a domain with work waits for, as its record tells."""
    if domain.closed is not None:
        return f"given up: {domain.closed}"
    if domain.busy is not None:
        return "a request is in flight"
    if now < domain.not_before:
        reason = f"rests after failures (rest {domain.rests})" if domain.rests else "asked to be left alone"
        return f"{reason}, {span(domain.not_before - now)} more"
    if now < domain.next_at:
        return f"its delay of {span(domain.delay_s)}, {span(domain.next_at - now)} more"
    return "its worker's next free hand" if domain.out else "room in a worker's queue"


def waiting(domains: Iterable[DomainRecord], now: float) -> list[DomainRecord]:
    """Those that nothing is in flight for; first those that will wait longest, since a slow crawl waits for them."""
    idle = (domain for domain in domains if domain.busy is None)
    return sorted(idle, key=lambda each: (-max(each.not_before, each.next_at, now), each.name))


# --- What the parts log -----------------------------------------------------------------------------------------------


@contextmanager
def logs_shown(display: Display) -> Iterator[None]:
    """While it lasts, what is logged under `gossamer` is told to the display, and not written across it."""
    logger = logging.getLogger("gossamer")
    handler = _Teller(display)
    before = logger.level, logger.propagate
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    logger.propagate = False
    try:
        yield
    finally:
        logger.removeHandler(handler)
        logger.level, logger.propagate = before


class _Teller(logging.Handler):
    def __init__(self, display: Display) -> None:
        super().__init__()
        self._display = display

    def emit(self, record: logging.LogRecord) -> None:
        self._display.tell(news_of(record))


def news_of(record: logging.LogRecord) -> News:
    """A log record: its text is the event, what was given as `extra` its fields."""
    fields = {key: value for key, value in vars(record).items() if key not in _NO_FIELDS}
    said = " ".join((record.getMessage(), *(f"{key}={value}" for key, value in fields.items())))
    level = record.levelname.lower()
    # A message with arguments is a sentence, not an event's name: machines find its words in `message`.
    event, more = (record.name, {"message": record.getMessage()}) if record.args else (record.getMessage(), {})
    return News(event, f"{level}: {safe(said, 300)}", {**more, **fields}, level)


_NO_FIELDS: Final = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName"}
