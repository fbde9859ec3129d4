"""What a frontier ranks by: the prioritizer that was chosen, guarded if it is not ours, with ranks from outside mixed in.

Its loops run beside the frontier's, and nobody waits for them.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec

from gossamer.clock import Clock
from gossamer.errors import GossamerError
from gossamer.messages import Url
from gossamer.notes import NOTHING_TO_SAY, FrontierNote, encode_frontier_note, frontier_note_name
from gossamer.ports.ledger import Ledger
from gossamer.prioritizer import Prioritizer
from gossamer.settings import Frontier
from services.frontier.outside.mixing import Outside, mix
from services.frontier.prioritizers import choose
from services.frontier.prioritizers.guarded import Guarded
from services.frontier.prioritizers.pagerank import Pagerank
from services.frontier.rank.owner import Owner

if TYPE_CHECKING:
    from services.frontier.outside.asking import Asking
    from services.frontier.outside.client import RankApi

#: How old a note may be at most.
NOTED_EVERY_S: Final = 1.0
#: A ledger that is away is not waited for at the end.
LAST_NOTE_S: Final = 2.0


class Ranking:
    """A priority for each URL, at once."""

    def __init__(self, settings: Frontier, ledger: Ledger, clock: Clock, name: str, *, lease_s: float) -> None:
        """`name` tells this frontier from others. Raises `SettingsError`."""
        self._ledger, self._clock, self._name, self._lease_s = ledger, clock, name, lease_s
        chosen = choose(settings.prioritizer)
        self.prioritizer: Prioritizer = chosen.make()
        self._guard = None if chosen.is_ours else Guarded(self.prioritizer, chosen.spec.name, clock)
        self._api: RankApi | None = None
        self._asking: Asking | None = None
        #: None: nobody outside is asked.
        self.outside: Outside | None = None
        if settings.rank_file is not None or settings.rank_api is not None:
            self._look_outside(settings)

    def _look_outside(self, settings: Frontier) -> None:
        from services.frontier.outside import file  # all of this is for the few crawls that are told to
        from services.frontier.outside.asking import Asking
        from services.frontier.outside.known import Known
        from services.frontier.outside.sources import Sources

        ranks = {} if settings.rank_file is None else file.read(settings.rank_file)
        known = Known(self._clock)
        if settings.rank_api is not None:
            self._api = _open(settings.rank_api, settings.rank_api_key)
            self._asking = Asking(self._api, known, self._ledger, self._clock)
        if ranks or self._api is not None:
            self.outside = Sources(ranks, known if self._api is not None else None)

    def __call__(self, urls: Sequence[Url]) -> Sequence[int]:
        own = (self._guard or self.prioritizer)(urls)
        return own if self.outside is None else mix(urls, own, self.outside)

    async def run(self) -> None:
        """For ever: keeps the live rank, asks for ranks outside, and tells who watches how that goes."""
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._note(), name="note")
                if self._asking is not None:
                    tasks.create_task(self._asking.run(), name="rank API")
                if isinstance(self.prioritizer, Pagerank):
                    owner = Owner(
                        self._ledger, self.prioritizer, self._clock, self._name, lease_s=self._lease_s, outside=self.outside
                    )
                    tasks.create_task(owner.run(), name="rank")
        finally:
            if self._api is not None:
                await self._api.close()

    async def _note(self) -> None:
        """What is in trouble is noted soon, and once more at the end: a crawl may be over in a second."""
        told = NOTHING_TO_SAY
        try:
            while True:
                told = await self._tell(told)
                await self._clock.sleep(NOTED_EVERY_S)
        finally:
            with suppress(TimeoutError, GossamerError):
                async with asyncio.timeout(LAST_NOTE_S):
                    await self._tell(told)

    async def _tell(self, told: FrontierNote) -> FrontierNote:
        """Leaves a note, unless it would say what was told."""
        note = FrontierNote(
            prioritizer=None if self._guard is None else self._guard.trouble(),
            rank_api=None if self._asking is None else self._asking.note(),
        )
        if note != told:
            noted = msgspec.structs.replace(note, noted_at=self._clock.now())
            await self._ledger.note(frontier_note_name(self._name), encode_frontier_note(noted))
        return note


def _open(url: str, key: str | None) -> "RankApi":
    from services.frontier.outside.client import RankApi  # httpx takes a tenth of a second, which most crawls don't need

    return RankApi(url, key)
