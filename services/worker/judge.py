"""Judge: is a page that says the same stored already, or nearly the same? (step 12)

A page whose like is being fetched waits until that one is settled: it may yet fail.
"""

from collections.abc import Callable, Sequence

from gossamer.answers import Dropped, Fresh, Judgement, Twin, Wait
from gossamer.clock import Clock
from gossamer.crash import step
from gossamer.ids import UrlId
from gossamer.ports.ledger import Ledger
from gossamer.records import Content, Seat
from gossamer.together import Together
from services.worker.read import Reading
from services.worker.sketch import Sketch

GROUP = 32


class Judge:
    def __init__(self, ledger: Ledger, seat: Seat, clock: Clock, sketch: Callable[[str], Sketch] | None) -> None:
        """Without `sketch` pages are twins only if they are equal."""
        self._ledger, self._seat, self._clock, self._sketch = ledger, seat, clock, sketch
        self._judge = Together(self._judge_all, most=GROUP)

    @step("worker.judge")
    async def __call__(self, id: UrlId, page: Reading) -> Fresh | Twin | Dropped:
        sketch = Sketch() if self._sketch is None else self._sketch(page.parsed.main)
        content = Content(id=id, exact=page.sha256, signature=sketch.signature, bands=sketch.bands)
        while isinstance(judgement := await self._judge(content), Wait):
            await self._clock.sleep(judgement.seconds)
        return judgement

    async def _judge_all(self, contents: Sequence[Content]) -> Sequence[Judgement]:
        return await self._ledger.judge(self._seat, contents)
