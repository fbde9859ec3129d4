"""The adapters under test: a new engine joins these lists and nothing else."""

import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

from adapters.embedded.ledger import SqliteLedger
from gossamer.clock import ManualClock
from gossamer.ports.ledger import Ledger
from gossamer.testing.harness import LedgerHarness


class SqliteHarness:
    """A ledger in a file of its own, and its clock."""

    def __init__(self) -> None:
        self._folder = Path(tempfile.mkdtemp(prefix="gossamer-ledger-"))
        self._clock = ManualClock()
        self.ledger: Ledger = SqliteLedger(self._folder / "ledger.sqlite", self._clock)

    def now(self) -> float:
        return self._clock.now()

    async def advance(self, seconds: float) -> None:
        self._clock.advance(seconds)

    async def close(self) -> None:
        await self.ledger.close()
        shutil.rmtree(self._folder)


LEDGERS: dict[str, Callable[[], LedgerHarness]] = {"sqlite": SqliteHarness}
