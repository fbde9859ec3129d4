"""One run of a crawl: an engine at work, shown while it goes, summed up when it has ended, whatever the reason.

Knows: engines, signals, what is to be left behind. Must not know: what an engine does, or what the display looks like.
"""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

from msgspec.structs import asdict

from gossamer.errors import EngineUnavailable, SettingsError
from gossamer.outcomes import CrawlOutcome
from gossamer.racing import unless
from gossamer.records import Counts
from gossamer.settings import Log, Settings
from services.controller import crawls, report
from services.controller.crawls import Place
from services.controller.display import Display, News, logs_shown, open_display, told
from services.controller.engines import Ended, Snapshot, Stop
from services.controller.exits import Exit, exit_of
from services.controller.outside import Outside
from services.controller.report import Report
from services.controller.summary import summary


async def run(place: Place, settings: Settings, outside: Outside, *, resume: bool) -> Exit:
    """Runs the crawl, whose lock the caller holds, to an end. Raises what the engine raises, after the report is written."""
    began_s = outside.clock.monotonic()
    stop = Stop()

    def seconds() -> float:
        return outside.clock.monotonic() - began_s

    with open_display(settings.output.log, outside.stderr, outside.clock) as display, logs_shown(display):
        seen = _Seen(display)
        with _signals_told(stop, display):
            try:
                ended = await _run(place, settings, outside, seen, stop, resume=resume)
            except SettingsError:  # it did not begin
                raise
            except BaseException:
                outcome = CrawlOutcome.STOPPED if stop.gently.is_set() else CrawlOutcome.FAILED
                _leave_report(_report(place, outcome, seen.counts, settings, seconds()), settings, display)
                raise
        made = _report(place, ended.outcome, ended.counts, settings, seconds())
        told = _leave_report(made, settings, display)
        before = seen.stored_first(ended.counts) if resume else 0
        text = summary(place, ended, seconds=made.seconds, before=before)
        if settings.output.log is Log.JSON:
            display.tell(News("crawl.ended", text, _ending(made, ended)))
    if settings.output.log is not Log.JSON:
        outside.stdout.write(text)
        outside.stdout.flush()
    return exit_of(ended.outcome, seeds_failed=ended.seeds_failed, interrupted=stop.gently.is_set()) if told else Exit.INTERNAL


async def _run(place: Place, settings: Settings, outside: Outside, seen: "_Seen", stop: Stop, *, resume: bool) -> Ended:
    try:
        opening = outside.maker(place.engine).open_engine(settings, place.id, place.folder, resume=resume)
        engine = await unless(stop.impatiently(), opening)
        if engine is None:
            raise EngineUnavailable("stopped before it had begun" + ("; `resume` goes on from here" if resume else ""))
    except Exception:
        if not resume:
            crawls.remove(place)  # a crawl that could not begin is none
        raise
    event, verb = ("crawl.resumed", "Resuming") if resume else ("crawl.started", "Starting")
    seen.display.tell(News(event, f"{verb} crawl {place.id}, kept in {place.folder}", {"crawl": place.id, "folder": place.folder}))
    return await engine.run(seen.watch, stop)


class _Seen:
    """Hands snapshots on, and keeps the last one's counts for a run that dies, the first one's for one that goes on."""

    def __init__(self, display: Display) -> None:
        self.display = display
        self.counts: Counts | None = None
        self._first: Counts | None = None

    def watch(self, snapshot: Snapshot) -> None:
        self.counts = snapshot.counts
        self._first = self._first or snapshot.counts
        self.display.show(snapshot)

    def stored_first(self, ended: Counts) -> int:
        """Pages that were there when this run began. A run so short that nobody looked stored none."""
        return (self._first or ended).stored


@contextmanager
def _signals_told(stop: Stop, display: Display) -> Iterator[None]:
    """Ctrl-C once, or SIGTERM: gently. Ctrl-C twice: now. Three times: whatever Python does, for an engine that hangs."""
    loop = asyncio.get_running_loop()

    def terminated() -> None:
        if not stop.gently.is_set():
            stop.gently.set()
            text = "Stopping: no more is begun, what is in flight is finished. Ctrl-C again ends it at once."
            display.tell(News("crawl.stopping", text))

    def interrupted() -> None:
        if not stop.gently.is_set():
            terminated()
            return
        stop.now.set()
        display.tell(News("crawl.cut", "Ending at once."))
        loop.remove_signal_handler(signal.SIGINT)

    loop.add_signal_handler(signal.SIGINT, interrupted)
    loop.add_signal_handler(signal.SIGTERM, terminated)
    try:
        yield
    finally:
        loop.remove_signal_handler(signal.SIGINT)
        loop.remove_signal_handler(signal.SIGTERM)


def _report(place: Place, outcome: CrawlOutcome, counts: Counts | None, settings: Settings, seconds: float) -> Report:
    return report.report_of(place.id, outcome, counts, workers=settings.start.workers, seconds=seconds)


def _leave_report(made: Report, settings: Settings, display: Display) -> bool:
    """Whether it was written, if one was asked for. The crawl is what it is: that it could not be is said, and not raised."""
    if settings.output.report is None:
        return True
    try:
        report.write(made, settings.output.report)
    except OSError as error:
        fields = {"file": settings.output.report, "error": error.strerror}
        display.tell(News("report.failed", f"{settings.output.report} can't be written: {error.strerror}", fields, "error"))
        return False
    return True


def _ending(made: Report, ended: Ended) -> dict[str, object]:
    """What the summary says, for machines."""
    return {
        **asdict(made),
        "least_gap_s": dict(ended.least_gap_s),
        "modules": {name: asdict(each) for name, each in ended.modules.items()},
        "rank_api": told(ended.frontier.rank_api),
        "prioritizer": told(ended.frontier.prioritizer),
        "stalled_on": [record.url.url for record in ended.stalled_on],
        "outputs": list(ended.outputs),
        "kept_until": ended.record.kept_until,
    }
