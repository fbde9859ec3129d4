"""The broker's contract over every adapter, and what the memory broker promises beyond it."""

import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from adapters.distributed.broker import WINDOW, RabbitBroker
from adapters.embedded.broker import MemoryBroker
from gossamer.errors import BrokerUnavailable
from gossamer.ids import CrawlId
from gossamer.ports.broker import Broker, Delivery
from gossamer.settings import QueueType
from gossamer.testing.broker import STEPS, Allowance, BrokerContract, Connect, Step
from tests.servers import rabbitmq_url


@asynccontextmanager
async def memory() -> AsyncIterator[Connect]:
    queues = MemoryBroker()

    async def connect() -> Broker:
        return queues.connect()

    yield connect


@asynccontextmanager
async def rabbitmq(queue_type: QueueType) -> AsyncIterator[Connect]:
    url, crawl = rabbitmq_url(), CrawlId(f"contract-{secrets.token_hex(6)}")
    opened: list[RabbitBroker] = []

    async def connect() -> Broker:
        opened.append(RabbitBroker(url, crawl, queue_type=queue_type, expires_s=300))
        return opened[-1]

    yield connect
    for broker in opened:
        with suppress(BrokerUnavailable):  # the test has closed it
            await broker.remove()
        await broker.close()


@dataclass(frozen=True, slots=True)
class Adapter:
    open: Callable[[], AbstractAsyncContextManager[Connect]]
    allowance: Allowance


class TestBroker(BrokerContract):
    @pytest.fixture(
        params=[
            pytest.param(Adapter(memory, Allowance()), id="memory"),
            pytest.param(Adapter(partial(rabbitmq, QueueType.CLASSIC), Allowance()), id="rabbitmq-classic"),
            pytest.param(Adapter(partial(rabbitmq, QueueType.QUORUM), Allowance(overshoot=WINDOW)), id="rabbitmq-quorum"),
        ]
    )
    def adapter(self, request: pytest.FixtureRequest) -> Adapter:
        chosen: Adapter = request.param
        return chosen

    @pytest.fixture
    async def connect(self, adapter: Adapter) -> AsyncIterator[Connect]:
        async with adapter.open() as connect:
            yield connect

    @pytest.fixture
    def allowance(self, adapter: Adapter) -> Allowance:
        return adapter.allowance


class TestMemoryBroker:
    """Stricter than the port: what is given back keeps its place, nothing is approximate, every answer is foretold."""

    @given(steps=STEPS, prefetch=st.integers(1, 4))
    async def test_it_does_what_a_plain_list_would(self, steps: list[Step], prefetch: int) -> None:
        limit = 8
        broker = MemoryBroker()
        await broker.declare({"q": limit})
        subscriptions = [await broker.subscribe(["q"], prefetch) for _ in range(2)]
        # The model: numbers in a sorted list, those that each subscriber holds, and those that were held before.
        numbers, waiting, held, given_back = iter(range(1000)), list[int](), ([list[int](), list[int]()]), set[int]()
        in_hand: list[list[Delivery]] = [[], []]

        for verb, who, number in steps:
            match verb:
                case "publish":
                    offered = [next(numbers) for _ in range(number)]
                    fitting = offered[: max(limit - len(waiting), 0)]
                    waiting += fitting
                    assert await broker.publish("q", [b"%d" % one for one in offered]) == len(fitting)
                case "take":
                    count = min(number, prefetch - len(held[who]), len(waiting))
                    expected, waiting = waiting[:count], waiting[count:]
                    taken = subscriptions[who].take("q", number)
                    assert [(int(one.body), one.redelivered) for one in taken] == [(one, one in given_back) for one in expected]
                    held[who] += expected
                    in_hand[who] += taken
                case "ack":
                    await subscriptions[who].ack(in_hand[who][::number])
                    held[who] = [one for at, one in enumerate(held[who]) if at % number]
                    in_hand[who] = [one for at, one in enumerate(in_hand[who]) if at % number]
                case "close":
                    await subscriptions[who].close()
                    given_back |= set(held[who])
                    waiting, held[who], in_hand[who] = sorted(waiting + held[who]), [], []
                    subscriptions[who] = await broker.subscribe(["q"], prefetch)

            assert await broker.depths() == {"q": len(waiting)}
            for one, its in zip(subscriptions, held, strict=True):
                assert one.ready("q") == min(len(waiting), prefetch - len(its))
                assert await one.wait(0) == (one.ready("q") > 0)

    async def test_what_several_give_back_keeps_its_place(self) -> None:
        broker = MemoryBroker()
        await broker.declare({"q": 10})
        await broker.publish("q", [b"1", b"2", b"3"])
        one, two = [await broker.subscribe(["q"], prefetch=1) for _ in range(2)]
        one.take("q", 1)
        two.take("q", 1)

        await one.close()
        await two.close()

        again = (await broker.subscribe(["q"], prefetch=10)).take("q", 10)
        assert [(one.body, one.redelivered) for one in again] == [(b"1", True), (b"2", True), (b"3", False)]

    async def test_a_closed_connection_is_unavailable(self) -> None:
        broker = MemoryBroker()
        await broker.declare({"q": 1})

        await broker.close()
        await broker.close()

        with pytest.raises(BrokerUnavailable):
            await broker.publish("q", [b"one"])
        assert await broker.connect().publish("q", [b"one"]) == 1

    async def test_a_queue_that_does_not_exist_can_not_be_subscribed_to(self) -> None:
        with pytest.raises(BrokerUnavailable, match="nowhere"):
            await MemoryBroker().subscribe(["nowhere"], prefetch=1)
