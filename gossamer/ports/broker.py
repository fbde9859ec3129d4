"""The broker: bounded queues of hints.

A hint may be lost, doubled, late or refused, and nothing is lost with it: the ledger is the truth, and whoever is idle asks it.
So the broker never blocks a publisher, never delays a message on purpose, and is never asked whether the crawl is over.
Must not know: what is in a message.
"""

from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from gossamer.ids import WorkerId

URLS = "urls"


def band_queue(band: int) -> str:
    return f"band.{band}"


def worker_queue(worker: WorkerId) -> str:
    return f"worker.{worker}"


class Delivery(msgspec.Struct, frozen=True):
    """One message in a consumer's hands until it is acknowledged. `tag` means something to its own subscription alone."""

    queue: str
    tag: int
    body: bytes
    redelivered: bool  #: it was in somebody's hands before; never True for one that was not


class DeadLetter(msgspec.Struct, frozen=True):
    """A message that nobody could read. Its body is anybody's: not to be shown as it is."""

    queue: str  #: where it came from
    body: bytes


class Subscription(Protocol):
    """A consumer of several queues at once: the router reads all bands by one.

    What it took and did not acknowledge when it is closed, or when its process dies, is delivered again, to any subscriber.
    At most `prefetch` messages per queue are with it unacknowledged.
    """

    def ready(self, queue: str) -> int:
        """How many messages `take` could hand out from this queue right now, as far as is known here. Never waits."""
        ...

    def take(self, queue: str, most: int) -> list[Delivery]:
        """Up to `most` messages of one queue, the oldest first (what was given back may come later). Never waits."""
        ...

    async def wait(self, timeout_s: float) -> bool:
        """Returns True as soon as any of the queues has something to take, False when the time is over.

        Raises `BrokerUnavailable` when the subscription is over (closed, its connection lost, its queues removed): there is
        nothing to wait for, and who wants more subscribes anew.
        """
        ...

    async def ack(self, deliveries: Sequence[Delivery]) -> None:
        """These are done with. Doing it twice, or after the connection was lost, is harmless: they may just come again."""
        ...

    async def reject(self, deliveries: Sequence[Delivery]) -> None:
        """These can't be read: set aside as dead letters, and never delivered again. Else as `ack`."""
        ...

    async def close(self) -> None:
        """Gives back what was taken and not acknowledged. A second time does nothing."""
        ...


class Broker(Protocol):
    """Queues by name, of one crawl. Raises `BrokerUnavailable` when the server can't be had; a repeat is always safe."""

    async def declare(self, limits: Mapping[str, int]) -> None:
        """Makes sure that each of these queues exists. What exists is left as it is.

        A queue holds at most so many messages, not counting those in consumers' hands; what they give back may exceed it.
        """
        ...

    async def publish(self, queue: str, bodies: Sequence[bytes]) -> int:
        """Offers messages, in order, and returns how many were taken for certain.

        A full queue refuses, a queue that does not exist refuses: the caller drops the hint and counts it, since the URL's
        state is the record. Never waits for room. While the server is away nothing is taken for certain: 0.
        """
        ...

    async def subscribe(self, queues: Sequence[str], prefetch: int) -> Subscription:
        """Starts consuming. Several subscribers of one queue share its messages.

        Raises `BrokerUnavailable` for a queue that does not exist: the crawl's queues were removed, or not declared yet. Those
        that were declared by this very connection are made again, if the server has lost them.
        """
        ...

    async def depths(self) -> dict[str, int]:
        """Messages ready in each declared queue; those in consumers' hands are not counted. For display only."""
        ...

    async def dead_letters(self, most: int) -> list[DeadLetter]:
        """What was rejected, the oldest first; it stays where it is. The oldest are forgotten past a bound."""
        ...

    async def remove(self) -> None:
        """Deletes the crawl's queues with all that is in them, but for dead letters. For a crawl that has ended."""
        ...

    async def close(self) -> None:
        """Lets the connection go. Subscriptions end as if closed."""
        ...
