"""`stop`: ends a crawl that another process runs, gently, by a word in its ledger; and waits until that process is through."""

import os
import signal
from contextlib import suppress
from typing import Final

from gossamer.errors import LedgerUnavailable
from gossamer.outcomes import CrawlOutcome
from gossamer.records import CrawlStatus
from gossamer.settings import Engine
from services.controller.crawls import Place, runner
from services.controller.exits import Exit
from services.controller.outside import Outside
from services.controller.reading import glance, ledger_of
from services.controller.status import status_text
from services.controller.wording import span

#: Two attempts at a page and a module's deadline, twice over: what is in flight is through by then.
PATIENCE_S: Final = 180.0
LOOK_EVERY_S: Final = 0.25
TELL_EVERY_S: Final = 5.0


async def stop(place: Place, outside: Outside) -> Exit:
    """Returns when the run has ended, or when that takes too long."""
    if runner(place.folder) is None and not await _stands_open(place, outside):
        outside.stdout.write(f"There is nothing to stop.\n{status_text(place, await glance(place, outside))}")
        return Exit.DONE
    await _tell(place, outside)
    outside.stderr.write(f"Stopping crawl {place.id}: what is in flight is finished ...\n")
    if not await _ended(place, outside):
        outside.stderr.write(f"Crawl {place.id} is still ending, after {span(PATIENCE_S)}; it goes on by itself.\n")
        return Exit.INTERNAL
    outside.stdout.write(status_text(place, await glance(place, outside)))
    return Exit.DONE


async def _tell(place: Place, outside: Outside) -> None:
    """By its ledger; or, where that is a file on a disk that is full, by a signal to the process."""
    try:
        async with ledger_of(place, outside) as ledger:
            await ledger.stop(CrawlOutcome.STOPPED)
    except LedgerUnavailable as error:
        process = runner(place.folder) if place.engine is Engine.EMBEDDED else None
        if not process:
            raise
        outside.stderr.write(f"{error}: process {process} is told by a signal.\n")
        with suppress(ProcessLookupError):  # it has just ended
            os.kill(process, signal.SIGTERM)


async def _ended(place: Place, outside: Outside) -> bool:
    clock = outside.clock
    began_s = told_s = clock.monotonic()
    while runner(place.folder) is not None or await _stands_open(place, outside):
        now_s = clock.monotonic()
        if now_s - began_s > PATIENCE_S:
            return False
        if now_s - told_s >= TELL_EVERY_S:
            told_s = now_s
            outside.stderr.write(f"{(await glance(place, outside)).counts.fetching:,} in flight ...\n")
        await clock.sleep(LOOK_EVERY_S)
    return True


async def _stands_open(place: Place, outside: Outside) -> bool:
    """Whether roles elsewhere may be at work on it though no controller looks after it; then it is ended from here."""
    if place.engine is Engine.EMBEDDED or runner(place.folder) is not None:
        return False
    async with ledger_of(place, outside) as ledger:
        record = await ledger.crawl()
        if record.status is CrawlStatus.DRAINING:
            await ledger.reap()  # whoever died with a page in hand must not hold the end up
            record = await ledger.end()
        return record.status is not CrawlStatus.ENDED
