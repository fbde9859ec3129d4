"""Every ledger, driven at random beside the plain one."""

from hypothesis import HealthCheck, settings

from gossamer.testing.ledger_machine import ledger_machine
from tests.contract.harnesses import LEDGERS

TestSqliteLedger = ledger_machine(LEDGERS["sqlite"]).TestCase
TestRedisLedger = ledger_machine(LEDGERS["redis"]).TestCase
TestSqliteLedger.settings = TestRedisLedger.settings = settings(
    max_examples=150, stateful_step_count=50, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
