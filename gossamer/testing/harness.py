"""What a ledger's suites need besides the ledger: its clock in their hands."""

from typing import Protocol

from gossamer.ports.ledger import Ledger


class LedgerHarness(Protocol):
    """A fresh, empty ledger and its time.

    `advance` moves the ledger's own clock without waiting. A server whose clock can't be moved may keep an offset that its
    verbs add; what passes between two calls in real time must stay well below the tenth of a second that the suites use.
    """

    @property
    def ledger(self) -> Ledger: ...

    def now(self) -> float:
        """The ledger's time, in seconds since 1970."""
        ...

    async def advance(self, seconds: float) -> None: ...

    async def close(self) -> None: ...
