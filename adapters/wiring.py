"""Wiring: settings → an engine. The only place that chooses between adapters; services know ports alone."""

from dataclasses import dataclass
from pathlib import Path

from adapters.embedded.blobs import DirectoryBlobs
from adapters.embedded.broker import MemoryBroker
from adapters.embedded.ledger import SqliteLedger
from gossamer.clock import Clock
from gossamer.ids import CrawlId
from gossamer.ports.blobs import Blobs
from gossamer.ports.broker import Broker
from gossamer.ports.ledger import Ledger

LEDGER_FILE = "ledger.sqlite"


@dataclass(frozen=True, slots=True)
class Ports:
    """What one crawl stands on."""

    broker: Broker
    ledger: Ledger
    blobs: Blobs

    async def close(self) -> None:
        await self.broker.close()
        await self.ledger.close()
        await self.blobs.close()


async def open_embedded(folder: Path, crawl: CrawlId, clock: Clock) -> Ports:
    """Of the crawl whose folder this is: for its owner, who holds the folder's lock."""
    root = folder.parent if folder.name == crawl else folder  # a folder of the operator's own choice has any name
    blobs = DirectoryBlobs(root, crawl, clock)
    await blobs.remove_leftovers()
    return Ports(MemoryBroker(), open_ledger(folder, clock), blobs)


def open_ledger(folder: Path, clock: Clock) -> Ledger:
    """For reading, and for `stop`: beside the process that crawls, or after it."""
    return SqliteLedger(folder / LEDGER_FILE, clock)
