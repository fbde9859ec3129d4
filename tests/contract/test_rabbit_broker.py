"""What the RabbitMQ broker must live through: servers that are killed, wiped, silent or full, and strangers at its queues."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import urlsplit

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel

from adapters.distributed import amqp_server
from adapters.distributed import broker as adapter
from adapters.distributed.amqp_server import Address, address
from adapters.distributed.broker import DEAD_MAX, WINDOW, RabbitBroker
from gossamer.errors import BrokerUnavailable, SettingsError
from gossamer.ids import CrawlId
from gossamer.ports.broker import Subscription
from gossamer.settings import QueueType
from gossamer.testing.broker import WITHIN_S, bodies, collect, dead_letters, eventually, messages
from tests.servers import Rabbitmq, rabbitmq_url

#: Of the brokers below: short, since some of these tests wait for it.
PUBLISH_S = 1.0
PREFETCH = 10
#: The server answers before a new queue is on its disk, and can't be asked when it is. Killed sooner, it may have forgotten the
#: queue (classic), or never find a leader for it again (quorum).
WRITTEN_DOWN_S = 3.0

Open = Callable[..., RabbitBroker]


@pytest.fixture
def crawl() -> CrawlId:
    return CrawlId(f"test-{secrets.token_hex(6)}")


@pytest.fixture
async def open_broker(crawl: CrawlId) -> AsyncIterator[Open]:
    """Brokers that are closed in the end. Their queues vanish by themselves."""
    opened: list[RabbitBroker] = []

    def open_one(url: str, queue_type: QueueType = QueueType.CLASSIC, expires_s: float = 300.0) -> RabbitBroker:
        opened.append(
            RabbitBroker(url, crawl, queue_type=queue_type, expires_s=expires_s, publish_timeout_s=PUBLISH_S),
        )
        return opened[-1]

    yield open_one
    for broker in opened:
        await broker.close()


@pytest.fixture
async def broker(open_broker: Open) -> RabbitBroker:
    return open_broker(rabbitmq_url())


@pytest.fixture(scope="module")
def own_server() -> Iterator[Rabbitmq]:
    """For tests that stop it, or take its memory away; they leave it running."""
    with Rabbitmq() as server:
        yield server


class Proxy:
    """Stands between a broker and its server, and can be cut, silent or gone."""

    def __init__(self, url: str) -> None:
        self._parts = urlsplit(url)
        self._listener: asyncio.Server | None = None
        self._port = 0
        self._writers: set[asyncio.StreamWriter] = set()
        self._serving: set[asyncio.Task[None]] = set()
        self._flowing = asyncio.Event()
        self._flowing.set()

    @property
    def url(self) -> str:
        return self._parts._replace(netloc=f"{self._parts.username}:{self._parts.password}@127.0.0.1:{self._port}").geturl()

    async def listen(self) -> None:
        self._listener = await asyncio.start_server(self._serve, "127.0.0.1", self._port)
        self._port = self._listener.sockets[0].getsockname()[1]

    async def vanish(self) -> None:
        """Connections are cut, and new ones refused."""
        self.speak()  # or nobody would notice
        assert self._listener is not None
        self._listener.close()
        self.cut()
        if self._serving:
            await asyncio.wait(self._serving)

    def cut(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def fall_silent(self) -> None:
        """Everything stays open, and nothing comes through."""
        self._flowing.clear()

    def speak(self) -> None:
        self._flowing.set()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        assert self._parts.hostname is not None
        self._serving.add(task)
        server_reader, server_writer = await asyncio.open_connection(self._parts.hostname, self._parts.port)
        self._writers |= {writer, server_writer}
        await asyncio.gather(self._pass_on(reader, server_writer), self._pass_on(server_reader, writer))
        self._writers -= {writer, server_writer}
        self._serving.discard(task)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while data := await reader.read(65_536):
                await self._flowing.wait()
                writer.write(data)
                await writer.drain()
        writer.close()


@pytest.fixture
async def proxy() -> AsyncIterator[Proxy]:
    between = Proxy(rabbitmq_url())
    await between.listen()
    yield between
    await between.vanish()


async def is_over(subscription: Subscription) -> bool:
    """Whether waiting on it says so."""
    try:
        async with asyncio.timeout(WITHIN_S):
            while True:
                await subscription.wait(WITHIN_S)
                await asyncio.sleep(0)
    except BrokerUnavailable:
        return True


async def resubscribed(broker: RabbitBroker, queue: str) -> Subscription:
    """As the roles do: again and again, until the server is there."""
    async with asyncio.timeout(6 * WITHIN_S):
        while True:
            try:
                return await broker.subscribe([queue], PREFETCH)
            except BrokerUnavailable:
                await asyncio.sleep(0.1)


def takes(broker: RabbitBroker, queue: str) -> Callable[[], Awaitable[bool]]:
    async def one() -> bool:
        return await broker.publish(queue, messages(1)) == 1

    return one


def took_s() -> Callable[[], float]:
    """Starts a stopwatch."""
    loop = asyncio.get_running_loop()
    started_at = loop.time()
    return lambda: loop.time() - started_at


@asynccontextmanager
async def stranger(url: str) -> AsyncIterator[BlockingChannel]:
    """Somebody else at the same server."""
    connection = pika.BlockingConnection(pika.URLParameters(url))
    try:
        yield connection.channel()
    finally:
        connection.close()


class TestOutages:
    @pytest.mark.parametrize("queue_type", QueueType)
    async def test_what_was_in_hand_when_the_server_was_killed_comes_again(
        self, own_server: Rabbitmq, open_broker: Open, queue_type: QueueType
    ) -> None:
        broker, publisher = open_broker(own_server.url, queue_type), open_broker(own_server.url, queue_type)
        await broker.declare({"q": 10})
        sent = messages(4)
        assert await publisher.publish("q", sent) == 4
        subscription = await broker.subscribe(["q"], PREFETCH)
        taken = await collect(subscription, "q", 3)

        await asyncio.sleep(WRITTEN_DOWN_S)
        await asyncio.to_thread(own_server.kill)
        assert await is_over(subscription)
        assert subscription.ready("q") == 0
        await subscription.ack(taken)  # too late, and harmless
        await subscription.reject(taken)
        await subscription.close()
        assert await publisher.publish("q", messages(1)) == 0
        await asyncio.to_thread(own_server.start)

        again = await resubscribed(broker, "q")
        assert sorted(bodies(await collect(again, "q", 4))) == sorted(sent)
        assert await eventually(takes(publisher, "q"))

    async def test_queues_are_back_when_the_server_has_lost_its_disk(self, own_server: Rabbitmq, open_broker: Open) -> None:
        broker, publisher = open_broker(own_server.url), open_broker(own_server.url)
        await broker.declare({"q": 10, "other": 10})
        subscription = await broker.subscribe(["q"], PREFETCH)

        await asyncio.to_thread(own_server.stop)
        await asyncio.to_thread(own_server.wipe)
        assert await is_over(subscription)
        await asyncio.to_thread(own_server.start)

        again = await resubscribed(broker, "q")
        assert await eventually(takes(publisher, "q"))
        assert await publisher.publish("other", messages(1)) == 1
        await again.reject(await collect(again, "q", 1))
        assert len(await dead_letters(publisher, 1)) == 1

    async def test_publishing_while_the_server_is_away_takes_nothing_and_no_time(self, proxy: Proxy, open_broker: Open) -> None:
        broker = open_broker(proxy.url)
        await broker.declare({"q": 1000})
        assert await broker.publish("q", messages(1)) == 1

        await proxy.vanish()
        elapsed_s = took_s()
        for _ in range(200):
            assert await broker.publish("q", messages(1)) == 0
        assert elapsed_s() < PUBLISH_S

        await proxy.listen()
        assert await eventually(takes(broker, "q"))

    async def test_people_are_told_once_that_the_server_is_away_and_once_that_it_is_back(
        self, proxy: Proxy, open_broker: Open, caplog: pytest.LogCaptureFixture
    ) -> None:
        broker = open_broker(proxy.url)
        await broker.declare({"q": 1000})
        subscription = await broker.subscribe(["q"], PREFETCH)
        await broker.publish("q", messages(1))
        caplog.set_level(logging.DEBUG)

        await proxy.vanish()
        assert await is_over(subscription)
        for _ in range(20):
            await broker.publish("q", messages(1))
            with pytest.raises(BrokerUnavailable):
                await broker.check()
            await asyncio.sleep(0.01)
        await proxy.listen()
        assert await eventually(takes(broker, "q"))
        await resubscribed(broker, "q")

        told = [record.message for record in caplog.records if record.name != "asyncio"]
        assert told == ["broker.away", "broker.back"]

    async def test_a_cut_connection_ends_what_waits_on_it_and_the_next_call_opens_another(
        self, proxy: Proxy, open_broker: Open
    ) -> None:
        broker = open_broker(proxy.url)
        await broker.declare({"q": 10})
        sent = messages(2)
        assert await broker.publish("q", sent) == 2
        subscription = await broker.subscribe(["q"], PREFETCH)
        await collect(subscription, "q", 1)

        proxy.cut()

        assert await is_over(subscription)
        again = await resubscribed(broker, "q")
        came = await collect(again, "q", 2)
        assert sorted(bodies(came)) == sorted(sent)
        assert came[0].redelivered
        assert await eventually(takes(broker, "q"))

    async def test_what_was_not_confirmed_when_the_connection_was_cut_is_not_called_taken(
        self, proxy: Proxy, open_broker: Open
    ) -> None:
        broker = open_broker(proxy.url)
        await broker.declare({"q": 1000})
        assert await broker.publish("q", messages(1)) == 1
        proxy.fall_silent()

        async with asyncio.TaskGroup() as tasks:
            publishing = [tasks.create_task(broker.publish("q", messages(3))) for _ in range(5)]
            await asyncio.sleep(0.05)
            elapsed_s = took_s()
            proxy.cut()

        assert [task.result() for task in publishing] == [0] * 5
        assert elapsed_s() < PUBLISH_S / 2
        proxy.speak()
        assert await eventually(takes(broker, "q"))

    async def test_a_connection_that_says_nothing_is_given_up(self, proxy: Proxy, open_broker: Open) -> None:
        broker = open_broker(proxy.url)
        await broker.declare({"q": 1000})
        assert await broker.publish("q", messages(1)) == 1

        proxy.fall_silent()
        elapsed_s = took_s()
        async with asyncio.TaskGroup() as tasks:  # more than are let out at once
            publishing = [tasks.create_task(broker.publish("q", messages(1))) for _ in range(2 * WINDOW)]
        assert {task.result() for task in publishing} == {0}
        assert elapsed_s() < 2 * PUBLISH_S

        proxy.speak()
        assert await eventually(takes(broker, "q"))

    async def test_closing_does_not_hang_on_a_connection_that_says_nothing(self, proxy: Proxy, open_broker: Open) -> None:
        broker = open_broker(proxy.url)
        await broker.declare({"q": 10})
        await broker.publish("q", messages(1))
        subscription = await broker.subscribe(["q"], PREFETCH)

        proxy.fall_silent()

        async with asyncio.timeout(WITHIN_S):
            await broker.close()
        assert await is_over(subscription)


class TestShortOfMemory:
    async def test_publishing_takes_nothing_while_consuming_goes_on(self, own_server: Rabbitmq, open_broker: Open) -> None:
        broker = open_broker(own_server.url)
        await broker.declare({"q": 1000})
        sent = messages(20)
        assert await broker.publish("q", sent) == 20
        subscription = await broker.subscribe(["q"], prefetch=2)

        with own_server.short_of_memory():
            for _ in range(3):
                elapsed_s = took_s()
                assert await broker.publish("q", messages(1)) == 0
                assert elapsed_s() < 2 * PUBLISH_S
            came: list[bytes] = []
            while len(came) < len(sent):  # ten times the prefetch: acknowledgements get through
                taken = await collect(subscription, "q", 2)
                assert taken
                came += bodies(taken)
                await subscription.ack(taken)
            assert came == sent
            await broker.check()

        assert await eventually(takes(broker, "q"))

    async def test_closing_does_not_hang(self, own_server: Rabbitmq, open_broker: Open) -> None:
        broker = open_broker(own_server.url)
        await broker.declare({"q": 1000})
        with own_server.short_of_memory():
            assert await broker.publish("q", messages(1)) == 0
            async with asyncio.timeout(WITHIN_S):
                await broker.close()


class TestStrangers:
    async def test_a_queue_that_was_deleted_behind_our_back_refuses(self, broker: RabbitBroker, crawl: CrawlId) -> None:
        await broker.declare({"q": 10, "other": 10})
        assert await broker.publish("q", messages(1)) == 1
        async with stranger(rabbitmq_url()) as channel:
            channel.queue_delete(f"gossamer.{crawl}.q")

        assert await broker.publish("q", messages(3)) == 0
        assert await broker.publish("other", messages(1)) == 1

    async def test_who_consumes_a_queue_that_is_deleted_is_told_and_gives_back_the_others(
        self, broker: RabbitBroker, crawl: CrawlId
    ) -> None:
        await broker.declare({"q": 10, "other": 10})
        sent = messages(1)
        await broker.publish("other", sent)
        subscription = await broker.subscribe(["q", "other"], PREFETCH)
        assert len(await collect(subscription, "other", 1)) == 1

        async with stranger(rabbitmq_url()) as channel:
            channel.queue_delete(f"gossamer.{crawl}.q")

        assert await is_over(subscription)
        again = await broker.subscribe(["q", "other"], PREFETCH)  # declared by this broker, so it is made again
        assert bodies(await collect(again, "other", 1)) == sent

    async def test_a_queue_of_another_type_is_left_as_it_is(self, open_broker: Open) -> None:
        url = rabbitmq_url()
        await open_broker(url, QueueType.QUORUM).declare({"q": 10})
        broker = open_broker(url, QueueType.CLASSIC)

        await broker.declare({"before": 10, "q": 10, "after": 10})

        assert await broker.depths() == {"before": 0, "q": 0, "after": 0}
        assert await broker.publish("q", messages(1)) == 1

    async def test_a_message_without_a_history_is_shown_among_the_dead_letters(self, broker: RabbitBroker, crawl: CrawlId) -> None:
        await broker.declare({"q": 10})
        async with stranger(rabbitmq_url()) as channel:
            channel.basic_publish("", f"gossamer.{crawl}.dead", b"by hand")

        (letter,) = await dead_letters(broker, 1)

        assert (letter.queue, letter.body) == ("", b"by hand")

    async def test_a_message_that_is_too_large_for_the_server_hurts_only_itself(self, broker: RabbitBroker) -> None:
        await broker.declare({"q": 10})

        assert await broker.publish("q", [b"x" * 140_000_000]) == 0

        assert await eventually(takes(broker, "q"))


class TestTheCrawlsQueues:
    async def test_who_has_declared_nothing_sees_them_and_removes_them(self, broker: RabbitBroker, open_broker: Open) -> None:
        await broker.declare({"urls": 10, "band.0": 10, "band.1": 10})
        await open_broker(rabbitmq_url()).declare({"worker.0": 10})
        await open_broker(rabbitmq_url()).declare({"worker.1": 10})
        await broker.publish("band.1", messages(2))
        await broker.publish("worker.1", messages(3))
        looking = open_broker(rabbitmq_url())

        async def all_are_there() -> bool:
            return await looking.depths() == {"urls": 0, "band.0": 0, "band.1": 2, "worker.0": 0, "worker.1": 3}

        assert await eventually(all_are_there)
        await looking.remove()
        assert await looking.depths() == {}
        assert await broker.publish("worker.1", messages(1)) == 0

    async def test_removing_leaves_nothing_at_the_server(self, broker: RabbitBroker, crawl: CrawlId) -> None:
        await broker.declare({"q": 10})

        await broker.remove()

        async with stranger(rabbitmq_url()) as channel:
            for name in ("q", "dead"):
                with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="NOT_FOUND"):
                    channel.connection.channel().queue_declare(f"gossamer.{crawl}.{name}", passive=True)

    async def test_removing_twice_or_before_anything_was_declared_is_harmless(self, broker: RabbitBroker) -> None:
        await broker.remove()
        await broker.declare({"q": 10})
        await broker.remove()
        await broker.remove()

    async def test_a_queue_that_nobody_uses_vanishes(self, open_broker: Open, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(adapter, "EXPIRES_MS_MIN", 1)
        broker = open_broker(rabbitmq_url(), expires_s=0.5)
        await broker.declare({"q": 10_000})

        async def is_gone() -> bool:
            return await broker.publish("q", messages(1)) == 0  # which is no use of a queue; looking at its depth is

        assert await eventually(is_gone)

    async def test_a_crawl_that_is_to_be_forgotten_at_once_has_queues_while_it_runs(self, open_broker: Open) -> None:
        broker = open_broker(rabbitmq_url(), expires_s=0.0)

        await broker.declare({"q": 10})

        assert await broker.publish("q", messages(1)) == 1

    async def test_the_oldest_dead_letters_are_forgotten(self, broker: RabbitBroker) -> None:
        await broker.declare({"q": 2 * DEAD_MAX})
        sent = messages(DEAD_MAX + 5)
        assert await broker.publish("q", sent) == len(sent)
        subscription = await broker.subscribe(["q"], prefetch=len(sent))

        await subscription.reject(await collect(subscription, "q", len(sent)))

        async def the_last_has_come() -> bool:
            letters = await broker.dead_letters(2 * DEAD_MAX)
            return [letter.body for letter in letters] == sent[-DEAD_MAX:]

        assert await eventually(the_last_has_come)

    async def test_many_publish_at_once_and_each_learns_about_its_own(self, broker: RabbitBroker) -> None:
        await broker.declare({"q": 10_000})

        async with asyncio.TaskGroup() as tasks:
            there = [tasks.create_task(broker.publish("q", messages(number % 5))) for number in range(200)]
            nowhere = [tasks.create_task(broker.publish("nowhere", messages(3))) for _ in range(50)]

        assert [task.result() for task in there] == [number % 5 for number in range(200)]
        assert {task.result() for task in nowhere} == {0}

    async def test_a_publisher_that_is_cancelled_leaves_no_gap_in_the_window(self, broker: RabbitBroker) -> None:
        await broker.declare({"q": 100_000})
        for _ in range(5):
            publishing = asyncio.create_task(broker.publish("q", messages(3 * WINDOW)))
            await asyncio.sleep(0.001)
            publishing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await publishing

        assert await broker.publish("q", messages(3 * WINDOW)) == 3 * WINDOW


class TestWhatPeopleAreTold:
    async def test_the_server_that_answers_passes_the_check(self, broker: RabbitBroker) -> None:
        await broker.check()

    async def test_a_wrong_password_is_said_without_showing_it(self, open_broker: Open) -> None:
        parts = urlsplit(rabbitmq_url())
        url = parts._replace(netloc=f"{parts.username}:s3cret-and-wrong@{parts.hostname}:{parts.port}").geturl()

        text = await why_unavailable(open_broker(url))

        assert text == f"RabbitMQ at {parts.hostname}:{parts.port}: the user or the password was refused"

    async def test_a_virtual_host_that_is_not_there_is_said(self, open_broker: Open) -> None:
        parts = urlsplit(rabbitmq_url())

        text = await why_unavailable(open_broker(parts._replace(path="/no%2Fsuch").geturl()))

        assert text == f"RabbitMQ at {parts.hostname}:{parts.port}: the virtual host does not exist, or the user may not use it"

    async def test_a_port_where_nobody_listens_is_said(self, open_broker: Open, proxy: Proxy) -> None:
        await proxy.vanish()

        text = await why_unavailable(open_broker(proxy.url))

        assert text.endswith(": Connection refused")
        assert str(urlsplit(rabbitmq_url()).password) not in text.replace("guest", "")

    async def test_a_name_that_nobody_has_is_said(self, open_broker: Open) -> None:
        text = await why_unavailable(open_broker("amqp://u:s3cret@nowhere.invalid:5672"))

        assert text.startswith("RabbitMQ at nowhere.invalid:5672: ")
        assert "s3cret" not in text

    async def test_a_server_that_hangs_up_is_said_to_be_starting(self, open_broker: Open) -> None:
        async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.close()

        async with await asyncio.start_server(hang_up, "127.0.0.1", 0) as listener:
            port = listener.sockets[0].getsockname()[1]
            text = await why_unavailable(open_broker(f"amqp://u:s3cret@127.0.0.1:{port}"))

        assert text == f"RabbitMQ at 127.0.0.1:{port}: it took the connection and closed it: still starting, or no AMQP server"

    async def test_a_server_that_says_nothing_is_not_waited_for_long(
        self, open_broker: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(amqp_server, "CONNECT_S", 1.0)
        held: list[asyncio.StreamWriter] = []

        async def say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            held.append(writer)

        async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as listener:
            port = listener.sockets[0].getsockname()[1]
            elapsed_s = took_s()
            text = await why_unavailable(open_broker(f"amqp://u:s3cret@127.0.0.1:{port}"))
            assert elapsed_s() < 2.0
            for writer in held:
                writer.close()

        assert text == f"RabbitMQ at 127.0.0.1:{port}: no answer within 1 s"

    async def test_nobody_queues_up_behind_an_attempt_while_the_server_is_away(
        self, proxy: Proxy, open_broker: Open, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(amqp_server, "CONNECT_S", 1.0)
        proxy.fall_silent()  # an attempt takes its full time
        broker = open_broker(proxy.url)
        await why_unavailable(broker)
        trying = asyncio.create_task(why_unavailable(broker))
        while not await is_busy(trying):  # it was too early for the next attempt
            trying = asyncio.create_task(why_unavailable(broker))

        elapsed_s = took_s()
        assert await broker.publish("q", messages(1)) == 0
        assert elapsed_s() < PUBLISH_S / 2
        assert not trying.done()
        await trying

    @pytest.mark.parametrize(
        ("url", "expected"),
        [
            ("amqp://h", Address("h", 5672, "guest", "guest", "/", tls=False)),
            ("amqps://h", Address("h", 5671, "guest", "guest", "/", tls=True)),
            ("amqp://u%40x:p%2F%3A%25@h:1/v%2Fw", Address("h", 1, "u@x", "p/:%", "v/w", tls=False)),
            ("amqp://u:p@[::1]:5673/%2F", Address("::1", 5673, "u", "p", "/", tls=False)),
            ("amqp://u:@h/", Address("h", 5672, "u", "", "/", tls=False)),
        ],
    )
    def test_a_url_is_read_part_by_part(self, url: str, expected: Address) -> None:
        assert address(url) == expected
        assert "p/:%" not in f"{address(url)} {address(url)!r}"

    @pytest.mark.parametrize("url", ["", "http://h", "amqp://u:s3cret/x@h:5672", "amqp://u:s3cret@[h"])
    def test_a_url_that_is_none_is_refused_without_showing_it(self, url: str) -> None:
        with pytest.raises(SettingsError) as caught:
            address(url)

        assert "s3cret" not in str(caught.value)
        assert caught.value.__suppress_context__


async def is_busy(task: asyncio.Task[str]) -> bool:
    return not (await asyncio.wait([task], timeout=0.05))[0]


async def why_unavailable(broker: RabbitBroker) -> str:
    with pytest.raises(BrokerUnavailable) as caught:
        await broker.check()
    text = str(caught.value)
    assert "\n" not in text
    assert "s3cret" not in text
    return text
