"""The contract of the port `Broker`, for any adapter.

Provide `connect`: an async callable that returns one more connection to the same queues (those of one crawl, none at first),
closed by the fixture in the end. What a server is allowed to be weaker in is said by `allowance`; the default is nothing.
Must not know: any engine. Servers deliver ahead of `take`, so no test counts on what a subscription has not taken yet.
"""

import asyncio
import itertools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gossamer.clock import SystemClock
from gossamer.errors import BrokerUnavailable
from gossamer.ports.broker import Broker, DeadLetter, Delivery, Subscription

Connect = Callable[[], Awaitable[Broker]]

#: Within this everything that must happen has happened, on a busy machine and a slow server.
WITHIN_S: Final = 10.0
#: For this long nothing may happen, where nothing must. Short: it is really waited for.
QUIET_S: Final = 0.05

_numbers = itertools.count()


@dataclass(frozen=True, slots=True)
class Allowance:
    """What an engine may be weaker in than the port's words, known and lived with."""

    overshoot: int = 0  #: messages above its limit that a queue may hold (RabbitMQ's quorum queues: what is in flight)


async def eventually(condition: Callable[[], Awaitable[bool]]) -> bool:
    """Whether the condition comes true in time: for what a server knows a moment later."""
    clock = SystemClock()
    end = clock.monotonic() + WITHIN_S
    while not await condition():
        if clock.monotonic() > end:
            return False
        await clock.sleep(0.01)
    return True


async def settle() -> None:
    """Lets every task of this process run until it waits for something."""
    for _ in range(10):
        await SystemClock().sleep(0)


async def collect(subscription: Subscription, queue: str, count: int) -> list[Delivery]:
    """Takes until there are so many, or the time is over: then fewer."""
    taken: list[Delivery] = []
    clock = SystemClock()
    end = clock.monotonic() + WITHIN_S
    while len(taken) < count and (left_s := end - clock.monotonic()) > 0:
        if await subscription.wait(left_s):
            taken += subscription.take(queue, count - len(taken))
            await clock.sleep(0)  # what is there may be another queue's, and stay
    return taken


async def collect_all(subscription: Subscription, queue: str, expected: int) -> list[Delivery]:
    """Takes as many as are expected, and then whatever comes besides for a while."""
    taken = await collect(subscription, queue, expected)
    while await subscription.wait(QUIET_S):
        unexpected = subscription.take(queue, 100)
        assert unexpected  # or `wait` was wrong
        taken += unexpected
    return taken


async def dead_letters(broker: Broker, count: int) -> list[DeadLetter]:
    """All dead letters, once there are so many, or the time is over."""

    async def are_there() -> bool:
        return len(await broker.dead_letters(100)) >= count

    await eventually(are_there)
    return await broker.dead_letters(100)


def bodies(deliveries: Sequence[Delivery]) -> list[bytes]:
    return [delivery.body for delivery in deliveries]


def messages(count: int) -> list[bytes]:
    """So many bodies, none of which was made before."""
    return [b"message %d" % next(_numbers) for _ in range(count)]


async def fill(broker: Broker, queue: str, *, most: int) -> list[bytes]:
    """Publishes one by one until the queue refuses, and returns what it took; fails if it takes more than `most`."""
    accepted: list[bytes] = []
    async with asyncio.timeout(WITHIN_S):  # a full queue refuses; it does not keep its publisher waiting
        while await broker.publish(queue, [body := messages(1)[0]]) == 1:
            accepted.append(body)
            assert len(accepted) <= most
    return accepted


#: publish so many | subscriber n takes at most so many | n acknowledges every so-many-th it holds | n closes and comes anew
Step = tuple[str, int, int]
STEPS: Final = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.just(0), st.integers(1, 6)),
        st.tuples(st.just("take"), st.integers(0, 1), st.integers(0, 4)),
        st.tuples(st.just("ack"), st.integers(0, 1), st.integers(1, 3)),
        st.tuples(st.just("close"), st.integers(0, 1), st.just(0)),
    ),
    max_size=30,
)


class BrokerContract:
    """Every promise of `Broker` and `Subscription`."""

    @pytest.fixture
    async def broker(self, connect: Connect) -> Broker:
        return await connect()

    @pytest.fixture
    def allowance(self) -> Allowance:
        return Allowance()

    # --- queues

    async def test_messages_come_out_in_the_order_in_which_they_went_in(self, broker: Broker) -> None:
        await broker.declare({"q": 100})
        sent = messages(30)
        assert await broker.publish("q", sent[:7]) == 7
        assert await broker.publish("q", sent[7:]) == 23

        subscription = await broker.subscribe(["q"], prefetch=50)

        assert bodies(await collect(subscription, "q", 30)) == sent

    async def test_a_message_is_any_bytes(self, broker: Broker) -> None:
        sent = [b"", b"\x00", bytes(range(256)), b"{not json", b"x" * 200_000]
        await broker.declare({"q": 10})
        await broker.publish("q", sent)

        subscription = await broker.subscribe(["q"], prefetch=10)

        assert bodies(await collect(subscription, "q", len(sent))) == sent

    async def test_a_message_goes_to_its_own_queue_alone(self, broker: Broker) -> None:
        await broker.declare({"a": 10, "b": 10})
        to_a, to_b = messages(2), messages(3)
        await broker.publish("a", to_a)
        await broker.publish("b", to_b)

        subscription = await broker.subscribe(["a", "b"], prefetch=10)

        assert bodies(await collect(subscription, "a", 2)) == to_a
        from_b = await collect(subscription, "b", 3)
        assert bodies(from_b) == to_b
        assert {delivery.queue for delivery in from_b} == {"b"}

    async def test_a_full_queue_refuses_at_once(self, broker: Broker, allowance: Allowance) -> None:
        await broker.declare({"q": 5})

        accepted = await fill(broker, "q", most=5 + allowance.overshoot)

        assert len(accepted) >= 5
        subscription = await broker.subscribe(["q"], prefetch=100)
        assert bodies(await collect_all(subscription, "q", len(accepted))) == accepted

    async def test_a_group_that_does_not_fit_is_taken_in_part_and_counted(self, broker: Broker, allowance: Allowance) -> None:
        await broker.declare({"q": 5})
        sent = messages(12)

        taken = await broker.publish("q", sent)

        assert 5 <= taken <= 5 + allowance.overshoot
        subscription = await broker.subscribe(["q"], prefetch=100)
        came = bodies(await collect_all(subscription, "q", taken))
        assert len(came) == taken
        assert came == [body for body in sent if body in came]  # in order, whichever they are

    async def test_publishing_nothing_takes_nothing(self, broker: Broker) -> None:
        await broker.declare({"q": 5})
        assert await broker.publish("q", []) == 0

    async def test_a_queue_that_does_not_exist_refuses(self, broker: Broker) -> None:
        await broker.declare({"q": 5})

        async with asyncio.timeout(WITHIN_S):
            assert await broker.publish("nowhere", messages(2)) == 0

        assert await broker.publish("q", messages(1)) == 1  # and the connection has not suffered

    async def test_a_full_queue_has_room_again_for_what_is_done_with(self, broker: Broker, allowance: Allowance) -> None:
        await broker.declare({"q": 3})
        accepted = await fill(broker, "q", most=3 + allowance.overshoot)
        subscription = await broker.subscribe(["q"], prefetch=1000)

        await subscription.ack(await collect(subscription, "q", len(accepted)))

        async def has_room() -> bool:
            return await broker.publish("q", messages(1)) == 1

        assert await eventually(has_room)

    async def test_declaring_again_changes_neither_limit_nor_messages(
        self, broker: Broker, connect: Connect, allowance: Allowance
    ) -> None:
        await broker.declare({"q": 3})
        sent = messages(2)
        await broker.publish("q", sent)

        await broker.declare({"q": 1000})
        await (await connect()).declare({"q": 1})

        more = await fill(broker, "q", most=1 + allowance.overshoot)
        assert len(more) >= 1
        subscription = await broker.subscribe(["q"], prefetch=1000)
        assert bodies(await collect_all(subscription, "q", 2 + len(more))) == sent + more

    async def test_depths_count_what_nobody_has_taken(self, broker: Broker) -> None:
        await broker.declare({"full": 10, "empty": 10})
        await broker.publish("full", messages(4))

        async def all_are_ready() -> bool:
            return await broker.depths() == {"full": 4, "empty": 0}

        assert await eventually(all_are_ready)

        subscription = await broker.subscribe(["full"], prefetch=1)
        assert len(await collect(subscription, "full", 1)) == 1

        async def one_is_in_hand() -> bool:
            return await broker.depths() == {"full": 3, "empty": 0}

        assert await eventually(one_is_in_hand)

    async def test_a_removed_queue_is_gone_with_all_that_was_in_it(self, broker: Broker, connect: Connect) -> None:
        await broker.declare({"q": 10})
        await broker.publish("q", messages(4))
        old = await (await connect()).subscribe(["q"], prefetch=2)
        assert len(await collect(old, "q", 1)) == 1
        closed = await broker.subscribe(["q"], prefetch=2)
        await closed.close()

        await broker.remove()

        async def old_one_has_nothing() -> bool:
            return old.ready("q") == 0

        assert await eventually(old_one_has_nothing)
        assert await broker.depths() == {}
        assert await broker.publish("q", messages(1)) == 0
        await broker.declare({"q": 10})
        sent = messages(1)
        await broker.publish("q", sent)
        await old.close()  # gives nothing back: what it had taken was in the queue that is gone
        subscription = await broker.subscribe(["q"], prefetch=10)
        assert bodies(await collect_all(subscription, "q", 1)) == sent

    # --- taking and acknowledging

    async def test_take_hands_out_the_oldest_and_at_most_what_was_asked_for(self, broker: Broker) -> None:
        await broker.declare({"q": 10})
        sent = messages(5)
        await broker.publish("q", sent)
        subscription = await broker.subscribe(["q"], prefetch=10)

        async def all_are_here() -> bool:
            return subscription.ready("q") == 5

        assert await eventually(all_are_here)
        assert subscription.take("q", 0) == []
        assert bodies(subscription.take("q", 2)) == sent[:2]
        assert subscription.ready("q") == 3
        assert bodies(subscription.take("q", 100)) == sent[2:]
        assert subscription.ready("q") == 0
        assert subscription.take("q", 100) == []

    async def test_what_nobody_can_have_seen_is_not_called_redelivered(self, broker: Broker) -> None:
        await broker.declare({"q": 10})
        await broker.publish("q", messages(2))
        subscription = await broker.subscribe(["q"], prefetch=10)

        assert [delivery.redelivered for delivery in await collect(subscription, "q", 2)] == [False, False]

    async def test_at_most_prefetch_messages_of_each_queue_are_in_hand(self, broker: Broker) -> None:
        await broker.declare({"a": 10, "b": 10})
        to_a, to_b = messages(5), messages(5)
        await broker.publish("a", to_a)
        await broker.publish("b", to_b)
        subscription = await broker.subscribe(["a", "b"], prefetch=2)

        in_hand = await collect(subscription, "a", 2)
        assert bodies(in_hand) == to_a[:2]
        assert bodies(await collect(subscription, "b", 2)) == to_b[:2]  # counted queue by queue
        assert not await subscription.wait(QUIET_S)
        assert subscription.ready("a") == 0
        assert subscription.take("a", 10) == []

        await subscription.ack(in_hand[:1])
        assert bodies(await collect(subscription, "a", 1)) == to_a[2:3]
        assert not await subscription.wait(QUIET_S)

    async def test_what_was_acknowledged_never_comes_again(self, broker: Broker, connect: Connect) -> None:
        await broker.declare({"q": 10})
        await broker.publish("q", messages(3))
        subscription = await broker.subscribe(["q"], prefetch=10)

        await subscription.ack(await collect(subscription, "q", 3))
        await subscription.close()

        other = await (await connect()).subscribe(["q"], prefetch=10)
        assert await collect_all(other, "q", 0) == []

    async def test_what_was_not_acknowledged_comes_again_to_another_subscriber(self, broker: Broker, connect: Connect) -> None:
        await broker.declare({"q": 10})
        sent = messages(4)
        await broker.publish("q", sent)
        subscription = await broker.subscribe(["q"], prefetch=10)
        taken = await collect(subscription, "q", 4)

        await subscription.ack([taken[1]])
        await subscription.close()

        other = await (await connect()).subscribe(["q"], prefetch=10)
        again = await collect(other, "q", 3)
        assert sorted(bodies(again)) == sorted([sent[0], sent[2], sent[3]])

    async def test_acknowledging_twice_is_harmless(self, broker: Broker) -> None:
        await broker.declare({"q": 10})
        sent = messages(3)
        await broker.publish("q", sent)
        subscription = await broker.subscribe(["q"], prefetch=2)
        first = await collect(subscription, "q", 1)

        await subscription.ack(first)
        await subscription.ack(first)
        await subscription.ack([])

        # Neither is a message lost nor the count in hand wrong.
        assert bodies(await collect(subscription, "q", 2)) == sent[1:]

    async def test_acknowledging_too_late_is_harmless(self, broker: Broker, connect: Connect) -> None:
        await broker.declare({"q": 10})
        sent = messages(2)
        await broker.publish("q", sent)
        going = await connect()
        subscription = await going.subscribe(["q"], prefetch=10)
        taken = await collect(subscription, "q", 2)

        await subscription.close()
        await subscription.ack(taken[:1])
        await going.close()
        await subscription.ack(taken[1:])

        other = await broker.subscribe(["q"], prefetch=10)
        assert sorted(bodies(await collect(other, "q", 2))) == sorted(sent)

    async def test_closing_a_subscription_twice_gives_back_once(self, broker: Broker) -> None:
        await broker.declare({"q": 10})
        sent = messages(2)
        await broker.publish("q", sent)
        subscription = await broker.subscribe(["q"], prefetch=10)
        await collect(subscription, "q", 2)

        await subscription.close()
        await subscription.close()

        other = await broker.subscribe(["q"], prefetch=10)
        assert sorted(bodies(await collect_all(other, "q", 2))) == sorted(sent)

    async def test_a_message_that_is_given_back_over_and_over_is_still_there(self, broker: Broker) -> None:
        await broker.declare({"q": 10})
        sent = messages(1)
        await broker.publish("q", sent)

        for _ in range(25):
            subscription = await broker.subscribe(["q"], prefetch=1)
            assert bodies(await collect(subscription, "q", 1)) == sent
            await subscription.close()

        assert await broker.dead_letters(1) == []

    async def test_a_closed_subscription_hands_out_nothing(self, broker: Broker) -> None:
        await broker.declare({"q": 10})
        await broker.publish("q", messages(2))
        subscription = await broker.subscribe(["q"], prefetch=10)
        assert await subscription.wait(WITHIN_S)

        await subscription.close()

        assert subscription.ready("q") == 0
        assert subscription.take("q", 10) == []

    async def test_closing_a_connection_gives_back_what_its_subscriptions_took(self, broker: Broker, connect: Connect) -> None:
        await broker.declare({"q": 10})
        sent = messages(3)
        await broker.publish("q", sent)
        going = await connect()
        leaving = await going.subscribe(["q"], prefetch=10)
        assert len(await collect(leaving, "q", 2)) == 2

        await going.close()

        assert leaving.take("q", 10) == []
        staying = await broker.subscribe(["q"], prefetch=10)
        assert sorted(bodies(await collect(staying, "q", 3))) == sorted(sent)

    async def test_closing_a_connection_leaves_the_others_alone(self, broker: Broker, connect: Connect) -> None:
        await broker.declare({"q": 10})
        staying = await broker.subscribe(["q"], prefetch=10)

        await (await connect()).close()

        sent = messages(1)
        assert await broker.publish("q", sent) == 1
        assert bodies(await collect(staying, "q", 1)) == sent

    async def test_subscribers_of_one_queue_share_its_messages(self, broker: Broker, connect: Connect) -> None:
        await broker.declare({"q": 100})
        sent = messages(20)
        one = await broker.subscribe(["q"], prefetch=1)
        two = await (await connect()).subscribe(["q"], prefetch=1)
        await broker.publish("q", sent)

        # With one message in the hands of each, neither can have had all of them.
        came: list[bytes] = []
        for _ in range(10):
            by_one, by_two = await collect(one, "q", 1), await collect(two, "q", 1)
            came += bodies(by_one) + bodies(by_two)
            await one.ack(by_one)
            await two.ack(by_two)

        assert sorted(came) == sorted(sent)

    # --- rejecting

    async def test_what_was_rejected_is_set_aside_and_never_comes_again(self, broker: Broker, connect: Connect) -> None:
        await broker.declare({"q": 10, "other": 10})
        sent, to_other = messages(3), messages(1)
        await broker.publish("q", sent)
        await broker.publish("other", to_other)
        subscription = await broker.subscribe(["q", "other"], prefetch=10)
        taken = await collect(subscription, "q", 3)

        await subscription.reject(taken[:2])
        await subscription.reject(await collect(subscription, "other", 1))
        await subscription.close()

        rest = await (await connect()).subscribe(["q", "other"], prefetch=10)
        assert bodies(await collect(rest, "q", 1)) == sent[2:]
        assert not await rest.wait(QUIET_S)
        letters = await dead_letters(await connect(), 3)
        assert [letter.body for letter in letters if letter.queue == "q"] == sent[:2]
        assert [letter.body for letter in letters if letter.queue == "other"] == to_other

    async def test_dead_letters_stay_when_they_are_read(self, broker: Broker) -> None:
        assert await broker.dead_letters(10) == []
        await broker.declare({"q": 10})
        sent = messages(3)
        await broker.publish("q", sent)
        subscription = await broker.subscribe(["q"], prefetch=10)
        await subscription.reject(await collect(subscription, "q", 3))

        letters = await dead_letters(broker, 3)

        assert letters == [DeadLetter("q", body) for body in sent]
        assert await dead_letters(broker, 3) == letters
        assert await broker.dead_letters(2) == letters[:2]
        assert await broker.dead_letters(0) == []

    async def test_dead_letters_outlive_their_queue(self, broker: Broker, connect: Connect) -> None:
        await broker.declare({"q": 10})
        sent = messages(1)
        await broker.publish("q", sent)
        subscription = await broker.subscribe(["q"], prefetch=10)
        await subscription.reject(await collect(subscription, "q", 1))
        assert len(await dead_letters(broker, 1)) == 1

        await broker.remove()

        assert await dead_letters(await connect(), 1) == [DeadLetter("q", sent[0])]
        assert await broker.depths() == {}

    async def test_a_dead_letter_takes_no_room_and_is_not_counted(self, broker: Broker, allowance: Allowance) -> None:
        await broker.declare({"q": 3})
        accepted = await fill(broker, "q", most=3 + allowance.overshoot)
        subscription = await broker.subscribe(["q"], prefetch=1000)

        await subscription.reject(await collect(subscription, "q", len(accepted)))
        await subscription.close()

        async def is_empty() -> bool:
            return await broker.depths() == {"q": 0}

        assert await eventually(is_empty)
        assert await broker.publish("q", messages(1)) == 1

    async def test_rejecting_lets_the_next_message_come(self, broker: Broker) -> None:
        await broker.declare({"q": 10})
        sent = messages(2)
        await broker.publish("q", sent)
        subscription = await broker.subscribe(["q"], prefetch=1)
        first = await collect(subscription, "q", 1)

        async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(subscription.wait(100 * WITHIN_S))
            await settle()
            await subscription.reject(first)

        assert waiting.result()
        assert bodies(subscription.take("q", 10)) == sent[1:]

    async def test_rejecting_what_is_not_in_hand_is_harmless(self, broker: Broker) -> None:
        await broker.declare({"q": 10})
        sent = messages(4)
        await broker.publish("q", sent)
        subscription = await broker.subscribe(["q"], prefetch=10)
        taken = await collect(subscription, "q", 3)

        await subscription.ack(taken[:1])
        await subscription.reject(taken[:2])
        await subscription.reject(taken[1:2])
        await subscription.ack(taken[1:2])
        await subscription.reject([])
        await subscription.close()
        await subscription.reject(taken[2:])

        rest = await broker.subscribe(["q"], prefetch=10)
        assert sorted(bodies(await collect(rest, "q", 2))) == sorted(sent[2:])
        assert await dead_letters(broker, 1) == [DeadLetter("q", sent[1])]

    # --- waiting

    async def test_wait_returns_at_once_when_something_is_there(self, broker: Broker) -> None:
        await broker.declare({"a": 10, "b": 10})
        await broker.publish("b", messages(1))
        subscription = await broker.subscribe(["a", "b"], prefetch=10)

        async with asyncio.timeout(WITHIN_S):
            assert await subscription.wait(100 * WITHIN_S)
            assert await subscription.wait(100 * WITHIN_S)  # still there
        assert subscription.ready("b") == 1

    async def test_wait_says_so_when_the_time_is_over(self, broker: Broker) -> None:
        await broker.declare({"q": 10, "other": 10})
        subscription = await broker.subscribe(["q"], prefetch=10)
        await broker.publish("other", messages(1))  # not one of its queues

        async with asyncio.timeout(WITHIN_S):
            assert not await subscription.wait(QUIET_S)
            assert not await subscription.wait(0)

    async def test_who_waits_on_a_subscription_that_ends_is_told(self, broker: Broker) -> None:
        await broker.declare({"q": 10})
        subscription = await broker.subscribe(["q"], prefetch=10)
        waiter = asyncio.create_task(subscription.wait(WITHIN_S))
        await asyncio.sleep(0)

        await subscription.close()

        with pytest.raises(BrokerUnavailable):
            await waiter
        with pytest.raises(BrokerUnavailable):
            await subscription.wait(WITHIN_S)

    @pytest.mark.parametrize("queue", ["a", "b"])
    async def test_a_message_wakes_whoever_waits_for_any_of_its_queues(self, broker: Broker, connect: Connect, queue: str) -> None:
        await broker.declare({"a": 10, "b": 10})
        subscription = await broker.subscribe(["a", "b"], prefetch=10)
        publisher = await connect()

        async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(subscription.wait(100 * WITHIN_S))
            await settle()
            await publisher.publish(queue, messages(1))

        assert waiting.result()

    async def test_a_message_wakes_all_who_wait_on_one_subscription(self, broker: Broker) -> None:
        await broker.declare({"q": 10})
        subscription = await broker.subscribe(["q"], prefetch=10)

        async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
            waiting = [tasks.create_task(subscription.wait(100 * WITHIN_S)) for _ in range(3)]
            await settle()
            await broker.publish("q", messages(1))

        assert all(task.result() for task in waiting)

    async def test_a_message_passes_by_a_subscriber_whose_hands_are_full(self, broker: Broker, connect: Connect) -> None:
        await broker.declare({"q": 10})
        busy = await broker.subscribe(["q"], prefetch=1)
        await broker.publish("q", messages(1))
        assert len(await collect(busy, "q", 1)) == 1
        free = await (await connect()).subscribe(["q"], prefetch=1)

        async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(free.wait(100 * WITHIN_S))
            await settle()
            await broker.publish("q", messages(1))

        assert waiting.result()

    async def test_an_acknowledgement_wakes_whoever_had_its_hands_full(self, broker: Broker) -> None:
        await broker.declare({"q": 10})
        await broker.publish("q", messages(2))
        subscription = await broker.subscribe(["q"], prefetch=1)
        taken = await collect(subscription, "q", 1)

        async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(subscription.wait(100 * WITHIN_S))
            await settle()
            await subscription.ack(taken)

        assert waiting.result()

    async def test_what_another_subscriber_gives_back_wakes_whoever_waits(self, broker: Broker, connect: Connect) -> None:
        await broker.declare({"q": 10})
        leaving = await broker.subscribe(["q"], prefetch=10)
        await broker.publish("q", messages(1))
        assert len(await collect(leaving, "q", 1)) == 1
        staying = await (await connect()).subscribe(["q"], prefetch=10)

        async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
            waiting = tasks.create_task(staying.wait(100 * WITHIN_S))
            await settle()
            await leaving.close()

        assert waiting.result()

    async def test_no_wake_up_is_lost_in_a_long_stream(self, broker: Broker, connect: Connect) -> None:
        sent = messages(300)
        await broker.declare({"q": 1000})
        publisher = await connect()
        subscriptions = [await broker.subscribe(["q"], prefetch=2) for _ in range(2)]
        came: list[bytes] = []
        all_came = asyncio.Event()

        async def consume(subscription: Subscription) -> None:
            while await subscription.wait(100 * WITHIN_S):  # a wake-up that got lost would leave it here
                taken = subscription.take("q", 2)
                came.extend(bodies(taken))
                await settle()
                await subscription.ack(taken)
                if len(came) == len(sent):
                    all_came.set()

        async with asyncio.timeout(WITHIN_S), asyncio.TaskGroup() as tasks:
            consumers = [tasks.create_task(consume(subscription)) for subscription in subscriptions]
            for body in sent:
                assert await publisher.publish("q", [body]) == 1
                await SystemClock().sleep(0)
            await all_came.wait()
            for consumer in consumers:
                consumer.cancel()

        assert sorted(came) == sorted(sent)

    async def test_a_waiter_who_gives_up_takes_nothing_along(self, broker: Broker) -> None:
        await broker.declare({"q": 10})
        subscription = await broker.subscribe(["q"], prefetch=10)
        waiting = asyncio.create_task(subscription.wait(100 * WITHIN_S))
        await settle()

        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting

        sent = messages(1)
        await broker.publish("q", sent)
        assert bodies(await collect(subscription, "q", 1)) == sent

    # --- the law

    @settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(steps=STEPS, prefetch=st.integers(1, 4))
    async def test_whatever_happens_each_message_stays_until_it_is_acknowledged(
        self, broker: Broker, steps: list[Step], prefetch: int
    ) -> None:
        """Nothing that was taken in is lost, nothing comes to two at once, nothing comes after it was acknowledged."""
        queue, limit = f"law.{next(_numbers)}", 8
        await broker.declare({queue: limit})
        subscribers = [await broker.subscribe([queue], prefetch) for _ in range(2)]
        in_hand: list[list[Delivery]] = [[], []]
        open_messages: set[bytes] = set()

        for verb, who, number in steps:
            held = in_hand[who]
            match verb:
                case "publish":
                    for body in messages(number):
                        # Whether or not those in hand count, with fewer open messages than the limit there is room.
                        room = limit - len(open_messages)
                        accepted = await broker.publish(queue, [body])
                        assert accepted == 1 or room <= 0
                        open_messages |= {body} if accepted else set()
                case "take":
                    for delivery in subscribers[who].take(queue, number):
                        assert delivery.body in open_messages
                        assert delivery.body not in bodies(in_hand[0] + in_hand[1])
                        held.append(delivery)
                    assert len(held) <= prefetch
                case "ack":
                    done, in_hand[who] = held[::number], [one for at, one in enumerate(held) if at % number]
                    await subscribers[who].ack(done)
                    open_messages -= set(bodies(done))
                case "close":
                    await subscribers[who].close()
                    in_hand[who] = []
                    subscribers[who] = await broker.subscribe([queue], prefetch)

        for subscriber in subscribers:
            await subscriber.close()
        rest = await broker.subscribe([queue], prefetch=1000)
        came = bodies(await collect(rest, queue, len(open_messages)))
        await rest.close()
        assert sorted(came) == sorted(open_messages)
