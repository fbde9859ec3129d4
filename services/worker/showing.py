"""Showing: a page that was stored is made into what modules see, if any of them wants to see it."""

from gossamer.clock import Clock
from gossamer.messages import Url
from gossamer.outcomes import Flag
from gossamer.page import Page
from services.worker.download import Answer
from services.worker.read import Reading
from services.worker.visit import Visitor


class Showing:
    def __init__(self, visitor: Visitor, clock: Clock) -> None:
        self._visitor, self._clock = visitor, clock

    async def __call__(self, url: Url, answer: Answer, page: Reading, links: tuple[str, ...]) -> frozenset[Flag]:
        """What is to be noted of the page."""
        if not self._visitor.wants_pages:
            return frozenset()
        return await self._visitor.visit(
            Page(
                id=url.id,
                url=url.url,
                status=answer.status,
                headers=answer.headers,
                fetched_at=self._clock.now() - (self._clock.monotonic() - answer.started_at),
                depth=url.depth,
                domain=url.domain,
                html=page.html,
                text=page.parsed.text,
                title=page.parsed.title,
                links=links,
                sha256=page.sha256,
                size=page.size,
            )
        )
