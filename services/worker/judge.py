"""Judge: is a page that says the same stored already, or nearly the same? (step 12)

A page whose like is being fetched waits until that one is settled: it may yet fail.
"""

from collections.abc import Sequence

from gossamer.answers import Dropped, Fresh, Judgement, Twin, Wait
from gossamer.clock import Clock
from gossamer.crash import step
from gossamer.ids import UrlId
from gossamer.ports.ledger import Ledger
from gossamer.records import Content, Seat
from gossamer.together import Together
from services.worker.read import Reading

GROUP = 32


class Judge:
    def __init__(self, ledger: Ledger, seat: Seat, clock: Clock) -> None:
        self._ledger, self._seat, self._clock = ledger, seat, clock
        self._judge = Together(self._judge_all, most=GROUP)

    @step("worker.judge")
    async def __call__(self, id: UrlId, page: Reading) -> Fresh | Twin | Dropped:
        content = Content(id=id, exact=page.sha256, signature=page.sketch.signature, bands=page.sketch.bands)
        while isinstance(judgement := await self._judge(content), Wait):
            await self._clock.sleep(judgement.seconds)
        return judgement

    async def _judge_all(self, contents: Sequence[Content]) -> Sequence[Judgement]:
        return await self._ledger.judge(self._seat, contents)
