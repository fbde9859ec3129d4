"""The ledger's contract, over every adapter."""

from collections.abc import AsyncIterator

import pytest

from gossamer.testing.harness import LedgerHarness
from gossamer.testing.ledger import LedgerContract
from tests.contract.harnesses import LEDGERS


@pytest.mark.parametrize("ledger_kind", LEDGERS)
class TestLedger(LedgerContract):
    @pytest.fixture
    async def harness(self, ledger_kind: str) -> AsyncIterator[LedgerHarness]:
        made = LEDGERS[ledger_kind]()
        yield made
        await made.close()
