"""Taking hints: a subscription that outlives its connections, and what becomes of bytes that are no hint.

A broker that restarts, or was wiped, costs its consumers a pause and nothing else: queues are declared again, and whatever was lost
with them is found by asking the ledger.
Must not know: what is done with a hint.
"""

import logging
from collections.abc import Iterable, Mapping, Sequence

from gossamer.clock import Clock
from gossamer.errors import BrokerUnavailable, MessageError
from gossamer.messages import M, decode
from gossamer.ports.broker import Broker, Delivery, Subscription

log = logging.getLogger("gossamer.hints")

FIRST_PAUSE_S = 0.1
LONGEST_PAUSE_S = 5.0


class Hints:
    """A `Subscription` that comes back: while the broker is away there is nothing to take."""

    def __init__(self, broker: Broker, limits: Mapping[str, int], prefetch: int, clock: Clock) -> None:
        self._broker, self._limits, self._prefetch, self._clock = broker, limits, prefetch, clock
        self._subscription: Subscription | None = None
        self._pause_s = FIRST_PAUSE_S

    def ready(self, queue: str) -> int:
        return 0 if self._subscription is None else self._subscription.ready(queue)

    def take(self, queue: str, most: int) -> list[Delivery]:
        return [] if self._subscription is None else self._subscription.take(queue, most)

    async def wait(self, timeout_s: float) -> bool:
        try:
            if self._subscription is None:
                await self._broker.declare(self._limits)
                self._subscription = await self._broker.subscribe(list(self._limits), self._prefetch)
                self._pause_s = FIRST_PAUSE_S
            return await self._subscription.wait(timeout_s)
        except BrokerUnavailable as error:
            log.info("broker.away", extra={"error": str(error)})
            await self.close()
            await self._clock.sleep(min(self._pause_s, timeout_s))
            self._pause_s = min(self._pause_s * 2, LONGEST_PAUSE_S)
            return False

    async def done(self, deliveries: Sequence[Delivery], unreadable: Sequence[Delivery] = ()) -> None:
        """Acknowledges these, but sets aside those that could not be read."""
        if self._subscription is not None:
            if unreadable:
                await self._subscription.reject(unreadable)
            await self._subscription.ack([each for each in deliveries if each not in unreadable] if unreadable else deliveries)

    async def close(self) -> None:
        subscription, self._subscription = self._subscription, None
        if subscription is not None:
            await subscription.close()


def read(deliveries: Iterable[Delivery], kind: type[M]) -> tuple[list[M], list[Delivery]]:
    """The messages of this kind, and the deliveries that hold none."""
    messages: list[M] = []
    unreadable: list[Delivery] = []
    for delivery in deliveries:
        try:
            messages.append(decode(delivery.body, kind))
        except MessageError as error:
            unreadable.append(delivery)
            log.warning("hint.unreadable", extra={"queue": delivery.queue, "error": str(error)})
    return messages, unreadable
