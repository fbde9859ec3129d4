"""Roles that others run: they are told which crawl to serve, and asked for nothing else."""

import asyncio
from typing import Final

from adapters.wiring import Announcements
from gossamer.clock import Clock
from gossamer.errors import LedgerUnavailable
from gossamer.ids import CrawlId

#: The announcement is kept for a day; a role that starts anew during a crawl of a week has to find it.
AGAIN_S: Final = 600.0


class Elsewhere:
    """In the place of a crew."""

    def __init__(self, announcements: Announcements, crawl: CrawlId, clock: Clock) -> None:
        self._announcements, self._crawl, self._clock = announcements, crawl, clock
        self._announcing: asyncio.Task[None] | None = None

    def start(self, tasks: asyncio.TaskGroup) -> None:
        self._announcing = tasks.create_task(self._announce(), name="announcing")

    async def end(self, *, now: bool) -> None:
        """They see for themselves that the crawl has ended. One that was cut off goes on: `resume` or `stop` looks after it."""
        assert self._announcing is not None
        self._announcing.cancel()
        await self._announcements.close()

    def had(self, process: str) -> bool:
        return False

    def kill(self) -> None:
        """They are not ours to end."""

    async def _announce(self) -> None:
        pause_s = 1.0
        while True:
            try:
                await self._announcements.announce(self._crawl)
                pause_s = AGAIN_S
            except LedgerUnavailable:
                pause_s = 1.0
            await self._clock.sleep(pause_s)
