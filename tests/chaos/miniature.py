"""A crawl in miniature, to be killed: the real ledger and the real blob store, and a web that is a formula.

`python -m tests.chaos.miniature FOLDER` crawls on from whatever an earlier run left in FOLDER, until the crawl is complete. It
takes the walk's steps in the walk's order, each marked as the services mark theirs, so that it dies at crash points too. A dot on
standard output for each step lets a test choose the moment of a kill without a clock.
"""

import asyncio
import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from adapters.embedded.blobs import DirectoryBlobs
from adapters.embedded.ledger import SqliteLedger
from gossamer.answers import Fresh, Go, Judgement, Twin
from gossamer.clock import SystemClock
from gossamer.crash import step
from gossamer.ids import CrawlId, UrlId, WorkerId
from gossamer.messages import Link, Url
from gossamer.outcomes import Outcome
from gossamer.ports.blobs import BlobRef, Capture
from gossamer.records import Closing, Content, CrawlStatus, Facts, Rules, Seat, Visit

PAGES = 400
DOMAINS = 10
CRAWL = CrawlId("miniature")
RULES = Rules(max_bytes=10**9, delay_s=0.0, lease_s=60.0, queue_size=12)


# --- The web ---


def link(number: int) -> Link:
    domain = f"site{number % DOMAINS}.example"
    return Link(UrlId(hashlib.blake2b(b"%d" % number, digest_size=16).digest()), f"http://{domain}/{number}", domain)


NUMBERS = {link(number).id: number for number in range(PAGES)}


def content(number: int) -> int:
    """Every tenth page says what the one before it says."""
    return number - 1 if number % 10 == 7 else number


def body(number: int) -> bytes:
    return f"<p>This is what page {content(number)} says.</p>".encode() * 20


def links(number: int) -> list[Link]:
    """A chain, so that a lost link is a lost page, and some cross links, so that most links are known."""
    return [link(other) for other in (number + 1, (number * 7) % PAGES, (number * 13) % PAGES) if other < PAGES]


# --- The walk ---


@dataclass
class Miniature:
    ledger: SqliteLedger
    blobs: DirectoryBlobs
    seat: Seat
    fetched: list[UrlId] = field(default_factory=list)
    judged: list[tuple[UrlId, Judgement]] = field(default_factory=list)
    refs: dict[UrlId, BlobRef] = field(default_factory=dict)

    async def crawl(self) -> None:
        dot()
        while (await self.ledger.end()).status is not CrawlStatus.ENDED:
            await self.promote()
            await self.route()
            await self.take()
            await self.judge()
            await self.store()
            await self.finish()

    @step("frontier.promote")
    async def promote(self) -> None:
        await self.ledger.promote(20)
        dot()

    @step("frontier.route")
    async def route(self) -> None:
        waiting = await self.ledger.waiting(20, idle=True)
        dot()
        await self.ledger.route([(url.id, priority) for url, priority in waiting])
        dot()

    async def take(self) -> None:
        self.fetched = [url.id for url in await self.ledger.held(self.seat)]
        dot()
        answers = await self.begin()
        self.fetched = [id for id, answer in zip(self.fetched, answers, strict=True) if answer]

    @step("worker.begin")
    async def begin(self) -> list[bool]:
        answers = await self.ledger.begin(self.seat, self.fetched)
        dot()
        return [isinstance(answer, Go) for answer in answers]

    @step("worker.judge")
    async def judge(self) -> None:
        contents = [Content(id=id, exact=hashlib.sha256(body(NUMBERS[id])).digest()) for id in self.fetched]
        self.judged = list(zip(self.fetched, await self.ledger.judge(self.seat, contents), strict=True))
        dot()

    @step("worker.store")
    async def store(self) -> None:
        fresh = [id for id, judgement in self.judged if isinstance(judgement, Fresh)]
        captures = [Capture(link(NUMBERS[id]).url, 1_700_000_000.0, 200, (), body(NUMBERS[id])) for id in fresh]
        self.refs = dict(zip(fresh, await self.blobs.put(captures), strict=True))
        dot()

    @step("worker.finish")
    async def finish(self) -> None:
        await self.ledger.finish(self.seat, list(self.closings()))
        dot()

    def closings(self) -> Iterator[Closing]:
        for id, judgement in self.judged:
            number = NUMBERS[id]
            visit = Visit(received_bytes=len(body(number)), answered=True)
            if isinstance(judgement, Fresh):
                facts = Facts(status=200, blob=self.refs[id])
                yield Closing(id=id, outcome=Outcome.DONE, facts=facts, visit=visit, links=links(number))
            elif isinstance(judgement, Twin):
                facts = Facts(status=200, twin=judgement.id, similarity=judgement.similarity)
                yield Closing(id=id, outcome=Outcome.DUPLICATE, facts=facts, visit=visit, links=links(number))


def dot() -> None:
    os.write(1, b".")


def seeds() -> Sequence[Url]:
    return [link(0).found()]


async def main(folder: Path) -> None:
    ledger = SqliteLedger(folder / "ledger.sqlite", SystemClock())
    blobs = DirectoryBlobs(folder, CRAWL)
    await blobs.remove_leftovers()
    await ledger.create(RULES)
    dot()
    await ledger.resume(RULES, nobody_lives=True)
    dot()
    await ledger.add(seeds())
    seat = await ledger.register(f"process {os.getpid()}")
    assert seat.worker == WorkerId(0)
    await Miniature(ledger, blobs, seat).crawl()
    await ledger.close()
    await blobs.close()


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
