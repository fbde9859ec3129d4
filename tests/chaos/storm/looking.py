"""How a crawl stands, read off its ledger past all relays, while that may be away."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from adapters.distributed.ledger import RedisLedger
from gossamer.errors import GossamerError
from gossamer.ids import CrawlId
from gossamer.records import Counts, UrlRecord
from gossamer.states import State

#: Who is frozen does not answer.
ASK_S: Final = 2.0
NAMED: Final = 20


@asynccontextmanager
async def ledger_of(redis_url: str, crawl: CrawlId) -> AsyncIterator[RedisLedger]:
    """For a question or two. Raises `GossamerError` or `TimeoutError` if nobody answers in time."""
    ledger = RedisLedger(redis_url, crawl)
    try:
        async with asyncio.timeout(ASK_S):
            yield ledger
    finally:
        await ledger.close()


async def counts(redis_url: str, crawl: CrawlId) -> Counts | None:
    """None: it is away, or not yet there."""
    try:
        async with ledger_of(redis_url, crawl) as ledger:
            return await ledger.counts()
    except (GossamerError, TimeoutError):
        return None


async def standing(redis_url: str, crawl: CrawlId) -> Sequence[str]:
    """What is open, in which state, with whom: for a crawl that does not end."""
    try:
        async with ledger_of(redis_url, crawl) as ledger:
            crawl_record, seen = await ledger.crawl(), await ledger.counts()
            workers, urls = await ledger.workers(), await ledger.unfinished(NAMED)
            domains = await ledger.domains(NAMED)
    except (GossamerError, TimeoutError) as error:
        return [f"the ledger is away: {error}"]
    return [
        f"crawl {crawl} is {crawl_record.status}; {shown(seen)}",
        *(f"worker {each.id} is {each.process}, holds {each.load}" for each in workers),
        *(
            f"{each.name}: {each.out} out, {each.parked} parked, busy {each.busy is not None}, due {each.due_at}"
            for each in domains
        ),
        *map(_named, urls),
    ]


def shown(seen: Counts) -> str:
    states = ", ".join(f"{state.name.lower()} {seen.states[state]}" for state in State)
    return f"stored {seen.stored}; {states}"


def _named(record: UrlRecord) -> str:
    whose = "" if record.worker is None else f" with worker {record.worker}"
    return f"{record.url.url} is {record.state.name}{whose}"
