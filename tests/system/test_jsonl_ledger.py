"""The merge beside a real ledger: of all lines that were written, those of pages that the ledger has as stored."""

import json
from collections.abc import Sequence
from pathlib import Path

from adapters.embedded.ledger import SqliteLedger
from gossamer.answers import Go
from gossamer.clock import ManualClock
from gossamer.ids import UrlId
from gossamer.messages import Url
from gossamer.options import parse_spec
from gossamer.outcomes import Outcome
from gossamer.parts import merge
from gossamer.pauses import Pauses
from gossamer.ports.blobs import BlobRef
from gossamer.records import Closing, Facts, Rules, Seat
from services.worker.plugins import load
from services.worker.visit import Visitor
from tests.a_module import a_crawl, a_page, an_id

STORED, TWIN, UNFINISHED, UNKNOWN = range(1, 5)


async def fetching(ledger: SqliteLedger, numbers: Sequence[int]) -> Seat:
    """A worker that has these pages in flight."""
    await ledger.create(Rules(delay_s=0.0))
    seat = await ledger.register("test")
    await ledger.add([Url(an_id(number), f"http://host{number}/", f"host{number}") for number in numbers])
    await ledger.route([(an_id(number), 50) for number in numbers])
    answers = await ledger.begin(seat, [an_id(number) for number in numbers])
    assert all(isinstance(answer, Go) for answer in answers)
    return seat


async def test_the_output_has_exactly_the_pages_that_the_ledger_has_as_stored(tmp_path: Path) -> None:
    ledger = SqliteLedger(tmp_path / "ledger.sqlite", ManualClock())
    seat = await fetching(ledger, [STORED, TWIN, UNFINISHED])
    visitor = Visitor(load([parse_spec("jsonl")]), timeout_s=30, pauses=Pauses(ManualClock()))
    await visitor.open(a_crawl(tmp_path))
    for number in (STORED, TWIN, UNFINISHED, UNKNOWN):
        await visitor.visit(a_page(number))
    await visitor.close()
    blob = BlobRef("segment", 0, 1, bytes(32))
    await ledger.finish(seat, [Closing(id=an_id(STORED), outcome=Outcome.DONE, facts=Facts(blob=blob))])
    await ledger.finish(seat, [Closing(id=an_id(TWIN), outcome=Outcome.DUPLICATE, facts=Facts(twin=an_id(STORED)))])

    async def stored(ids: Sequence[UrlId]) -> list[bool]:
        records = await ledger.records(ids)
        return [record is not None and record.facts is not None and record.facts.blob is not None for record in records]

    assert await merge(tmp_path / "crawl.jsonl", stored) == 1
    await ledger.close()

    assert json.loads((tmp_path / "crawl.jsonl").read_text())["id"] == an_id(STORED).hex()
