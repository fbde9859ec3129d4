"""Engines: what runs a crawl. Here is all that the controller knows of one; each file beside this one is one.

The controller asks an engine to run, is shown how it goes, and is told how it ended. Everything that a person sees is made of
the values below, so that display, report and exit code are the same whatever the crawl stands on.
Must not know: who watches, or what is done with what they see.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import msgspec
from msgspec import field

from gossamer.ids import CrawlId, WorkerId
from gossamer.notes import NOTHING_TO_SAY, FrontierNote
from gossamer.outcomes import CrawlOutcome, Outcome
from gossamer.records import Counts, CrawlRecord, DomainRecord, UrlRecord, WorkerRecord
from gossamer.settings import Settings

#: Whoever wants everything to end does not wait longer for a server that is away, or a disk that is full.
CUT_S: Final = 10.0


class ModuleTrouble(msgspec.Struct, frozen=True):
    """What a module did not manage, summed over all workers."""

    failures: int
    last: str  #: the newest, in words; may hold text from the web
    switched_off: bool


class Snapshot(msgspec.Struct, frozen=True, kw_only=True):
    """How a crawl stands at one moment."""

    status: CrawlRecord
    counts: Counts
    workers: Sequence[WorkerRecord]
    domains: Sequence[DomainRecord]  #: a sample of those with work
    queues: Mapping[str, int]  #: depths of `urls`, `band.N` and `worker.N`
    domains_owned: Mapping[WorkerId, int]
    modules: Mapping[str, ModuleTrouble]  #: those that are in trouble
    now: float  #: by the ledger's clock
    frontier: FrontierNote = NOTHING_TO_SAY  #: what frontiers say of prioritizer and rank API
    paused: Sequence[str] = ()  #: what is waited for, in words, where it is known


class Ended(msgspec.Struct, frozen=True, kw_only=True):
    """How a run ended. The crawl may go on in another one."""

    record: CrawlRecord
    counts: Counts
    least_gap_s: Mapping[str, float]  #: by domain: the least time seen between the starts of two requests in this run
    modules: Mapping[str, ModuleTrouble]
    seeds_failed: bool  #: no seed, nor anything that one redirects to, could be had
    stalled_on: Sequence[UrlRecord]  #: some of those that are open, if the crawl stalled
    outputs: Sequence[Path]  #: the files that were merged
    frontier: FrontierNote = NOTHING_TO_SAY

    @property
    def outcome(self) -> CrawlOutcome:
        """The ledger's, with what it can't know: that a crawl which closed all it had never got anywhere, or was cut off."""
        if self.seeds_failed and self.record.outcome is CrawlOutcome.COMPLETE:
            return CrawlOutcome.FAILED
        return self.record.outcome or CrawlOutcome.STOPPED


def nothing_was_had(counts: Counts) -> bool:
    """No URL is open any more, and none of them was a page."""
    had = (Outcome.DONE, Outcome.DUPLICATE, Outcome.NO_CONTENT)
    return not counts.open and not any(counts.outcomes.get(outcome) for outcome in had)


def ended_as(record: CrawlRecord, counts: Counts) -> CrawlOutcome | None:
    """How a crawl ended, for whoever looks later: the same that its last run was told. None: it has not."""
    return CrawlOutcome.FAILED if record.outcome is CrawlOutcome.COMPLETE and nothing_was_had(counts) else record.outcome


class Stop(msgspec.Struct, frozen=True):
    """The operator's wish that a run should end. Set by signals, at any moment; never cleared."""

    gently: asyncio.Event = field(default_factory=asyncio.Event)  #: take no more, finish what is in flight
    now: asyncio.Event = field(default_factory=asyncio.Event)  #: let everything go; comes after `gently`

    async def impatiently(self) -> None:
        """Returns when what may be away, or full, is not waited for any more: at `now`, or some seconds after `gently`."""
        await self.gently.wait()
        with suppress(TimeoutError):
            async with asyncio.timeout(CUT_S):
                await self.now.wait()


class Engine(Protocol):
    """One run of one crawl."""

    async def run(self, watch: Callable[[Snapshot], None], stop: Stop) -> Ended:
        """Crawls to the end: of the work, of a budget, or by `stop` (also by another process, through the ledger).

        `watch` is called about four times a second; it returns at once. Seeds are added again, whether new or resumed: a run
        may have died before it had added them all. On a crawl that is complete it asks for nothing and returns at once, after
        it has merged what a killed run left unmerged. Closes what it opened, however it ends.
        Raises `EngineUnavailable` when the crawl can't go on.
        """
        ...


class Maker(Protocol):
    """One kind of engine: the modules in this folder are such, `engines.embedded` for one."""

    def check(self, settings: Settings) -> None:
        """Raises `SettingsError` for what only the engine can tell: unknown modules, their options, a seed's address.

        Called before anything is made. All seeds are in `settings.start.seeds`, in the form that is requested.
        """
        ...

    async def open_engine(self, settings: Settings, crawl: CrawlId, folder: Path, *, resume: bool) -> Engine:
        """Makes the crawl in its folder, whose lock the caller holds, or takes up the one that is there.

        Keeps `kept.to_text(settings)` with it. Raises `SettingsError` if it can't begin; a new crawl is then removed.
        """
        ...
