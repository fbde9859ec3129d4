"""The contract suites: what each port promises, said again as tests, and shipped so that anybody's adapter can be checked.

A suite is a class of async tests. Subclass it under a name that pytest collects, and provide its fixture:

    from gossamer.testing.broker import BrokerContract, Connect

    class TestMyBroker(BrokerContract):
        @pytest.fixture
        async def connect(self) -> AsyncIterator[Connect]: ...

Needs pytest, pytest-asyncio with `asyncio_mode = "auto"`, and hypothesis. The suites wait for conditions, with a bound, and so
may be run against a server; they never look behind the port.
"""

import pytest

# Without this a failed assertion in a suite would not show its values: pytest rewrites test files alone.
pytest.register_assert_rewrite(*(f"gossamer.testing.{suite}" for suite in ("blobs", "broker", "ledger", "ledger_machine")))
