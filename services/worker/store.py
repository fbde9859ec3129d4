"""Store: pages become records of a segment, several to a segment.

A page waits a moment for company, since a segment costs as much as many pages in it; its domain does not wait with it. All workers
of a process share one, so that there is company.
"""

from typing import Final

from gossamer.clock import Clock
from gossamer.crash import step
from gossamer.messages import Url
from gossamer.ports.blobs import BlobRef, Blobs, Capture
from gossamer.together import Together
from services.worker.download import Answer

SEGMENT_BYTES: Final = 1_000_000
SEGMENT_PAGES: Final = 256
LINGER_S: Final = 0.05


class Store:
    def __init__(self, blobs: Blobs, clock: Clock) -> None:
        self._clock = clock
        self._put = Together(
            blobs.put,
            most=SEGMENT_PAGES,
            linger_s=LINGER_S,
            clock=clock,
            weight=lambda capture: len(capture.body),
            most_weight=SEGMENT_BYTES,
        )
        self.one_comes, self.one_came = self._put.one_comes, self._put.one_came

    @step("worker.store")
    async def __call__(self, url: Url, answer: Answer) -> BlobRef:
        """Where the page lies, once it is safely there. A store that is away is waited for (by the port)."""
        # When the request went out, by the clock on the wall.
        fetched_at = self._clock.now() - (self._clock.monotonic() - answer.started_at)
        return await self._put(Capture(url.url, fetched_at, answer.status, answer.headers, answer.body, answer.address))
