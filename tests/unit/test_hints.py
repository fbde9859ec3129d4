"""Hints that outlive their connections, and bytes that are none."""

from collections.abc import Mapping, Sequence

from adapters.embedded.broker import MemoryBroker
from gossamer.clock import SystemClock
from gossamer.errors import BrokerUnavailable
from gossamer.hints import Hints, read
from gossamer.ids import UrlId
from gossamer.messages import HINT_URLS, Found, Ranked, Url, encode, in_hints
from gossamer.ports.broker import Delivery, Subscription
from services.frontier.bands import BandTable, publish

URL = Url(UrlId(bytes(16)), "http://a.example/", "a.example")


class Restarting(MemoryBroker):
    """A broker that is away for its next few declarations."""

    away = 0

    async def declare(self, limits: Mapping[str, int]) -> None:
        if self.away:
            self.away -= 1
            raise BrokerUnavailable("refused")
        await super().declare(limits)

    async def subscribe(self, queues: Sequence[str], prefetch: int) -> Subscription:  # type: ignore[override]
        return await super().subscribe(queues, prefetch)


class QuickClock(SystemClock):
    async def sleep(self, seconds: float) -> None:
        assert seconds <= 5


async def test_while_the_broker_is_away_there_is_nothing_to_take() -> None:
    broker = Restarting()
    broker.away = 3
    hints = Hints(broker, {"urls": 10}, 5, QuickClock())

    assert [await hints.wait(0.01) for _ in range(3)] == [False] * 3
    assert (hints.ready("urls"), hints.take("urls", 1)) == (0, [])
    await hints.done([])

    assert not await hints.wait(0)  # it is there, and its queue is declared
    await broker.publish("urls", [b"x"])
    assert await hints.wait(1)


async def test_queues_that_were_lost_are_declared_again() -> None:
    broker = MemoryBroker()
    hints = Hints(broker, {"urls": 10}, 5, QuickClock())
    await hints.wait(0)

    await broker.remove()

    assert not await hints.wait(0.01)  # told that its subscription is over
    assert not await hints.wait(0.01)  # and back
    assert await broker.publish("urls", [b"x"]) == 1
    assert await hints.wait(1)
    await hints.close()


def test_what_holds_no_message_of_the_kind_is_told_apart() -> None:
    good = Delivery("urls", 1, encode(Found((URL,))), redelivered=False)
    others = [
        Delivery("urls", 2, b"", redelivered=False),
        Delivery("urls", 3, encode(Ranked(((URL, 50),))), redelivered=False),
        Delivery("urls", 4, b'{"kind":"found","urls":[],"v":99}', redelivered=False),
    ]

    assert read([others[0], good, *others[1:]], Found) == ([Found((URL,))], others)


async def test_what_can_not_be_read_is_set_aside_and_the_rest_acknowledged() -> None:
    broker = MemoryBroker()
    hints = Hints(broker, {"urls": 10}, 5, QuickClock())
    await hints.wait(0)
    await broker.publish("urls", [b"\xff", encode(Found((URL,)))])
    deliveries = hints.take("urls", 5)

    await hints.done(deliveries, read(deliveries, Found)[1])
    await hints.close()

    assert await broker.depths() == {"urls": 0}
    assert [(letter.queue, letter.body) for letter in await broker.dead_letters(5)] == [("urls", b"\xff")]


def test_a_hint_names_no_more_urls_than_one_may() -> None:
    urls = [Url(UrlId(number.to_bytes(16)), f"http://a.example/{number}", "a.example") for number in range(2 * HINT_URLS + 1)]

    portions = list(in_hints(urls))

    assert [len(portion) for portion in portions] == [HINT_URLS, HINT_URLS, 1]
    assert [url for portion in portions for url in portion] == urls
    assert list(in_hints(urls[:0])) == []


async def test_of_a_full_band_only_what_it_refused_is_given_back() -> None:
    broker, table = MemoryBroker(), BandTable(10)
    await broker.declare({"band.5": 1})
    urls = [(Url(UrlId(number.to_bytes(16)), f"http://a.example/{number}", "a.example"), 50) for number in range(HINT_URLS + 3)]

    assert await publish(broker, table, urls) == urls[HINT_URLS:]
