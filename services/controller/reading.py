"""A crawl looked at from outside the process that runs it, through its ledger."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress

import msgspec

from gossamer.errors import MessageError, NoCrawl, SettingsError
from gossamer.notes import NOTHING_TO_SAY, FrontierNote, decode_frontier_note, is_frontiers, together
from gossamer.ports.ledger import Ledger
from gossamer.records import Counts, CrawlRecord, DomainRecord, WorkerRecord
from services.controller.crawls import Place, runner
from services.controller.outside import Outside

DOMAINS_READ = 100


class Glance(msgspec.Struct, frozen=True, kw_only=True):
    """How a crawl stands."""

    process: int | None  #: that runs it; None: nobody does
    record: CrawlRecord
    counts: Counts
    workers: list[WorkerRecord]
    domains: list[DomainRecord]  #: a sample of those with work
    now: float
    frontier: FrontierNote = NOTHING_TO_SAY


async def glance(place: Place, outside: Outside) -> Glance:
    """Raises `SettingsError` if the crawl had not begun, `LedgerUnavailable` if it can't be read."""
    async with ledger_of(place, outside) as ledger:
        return Glance(
            process=runner(place.folder),
            record=await ledger.crawl(),
            counts=await ledger.counts(),
            workers=await ledger.workers(),
            domains=await ledger.domains(DOMAINS_READ),
            now=outside.clock.now(),
            frontier=_frontier(await ledger.notes()),
        )


def _frontier(notes: Mapping[str, str]) -> FrontierNote:
    """A note that another version left is none."""
    found = []
    for name, text in notes.items():
        if is_frontiers(name):
            with suppress(MessageError):
                found.append(decode_frontier_note(text))
    return together(found)


async def begun(place: Place, outside: Outside) -> CrawlRecord | None:
    """The crawl's own record; None if it was killed before it had one, so that nothing was asked for or kept."""
    ledger = outside.open_ledger(place, outside.clock)
    try:
        return await ledger.crawl()
    except NoCrawl:
        return None
    finally:
        await ledger.close()


@asynccontextmanager
async def ledger_of(place: Place, outside: Outside) -> AsyncIterator[Ledger]:
    ledger = outside.open_ledger(place, outside.clock)
    try:
        yield ledger
    except NoCrawl:
        raise SettingsError(f"crawl {place.id} has not begun") from None
    finally:
        await ledger.close()
