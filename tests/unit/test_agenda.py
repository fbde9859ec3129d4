"""The agenda: a hand that is a set, one URL of a domain at a time, the soonest first."""

from adapters.embedded.broker import MemoryBroker
from gossamer.clock import SystemClock
from gossamer.hints import Hints
from gossamer.ids import UrlId
from gossamer.messages import Routed, Url, encode
from services.worker.agenda import COURTESY_S, Agenda, take
from services.worker.errands import errand


def url(number: int, domain: str = "a.example") -> Url:
    return Url(UrlId(number.to_bytes(16)), f"http://{domain}/{number}", domain)


def alike(urls: list[Url]) -> list[tuple[Url, int]]:
    return [(each, 50) for each in urls]


def test_a_hint_for_a_url_in_hand_is_dropped() -> None:
    agenda = Agenda()
    agenda.add(alike([url(1), url(1)]))
    assert agenda.next(0, 10) == [url(1)]
    agenda.add(alike([url(1)]))
    agenda.disengage("a.example", 0)
    assert agenda.next(0, 10) == []
    assert len(agenda) == 1


def test_of_a_domain_one_url_is_under_way_at_a_time() -> None:
    agenda = Agenda()
    agenda.add(alike([url(1), url(2), url(3, "b.example")]))
    assert agenda.next(0, 10) == [url(1), url(3, "b.example")]
    assert agenda.next(0, 10) == []
    assert agenda.waits_for("a.example")
    assert not agenda.waits_for("b.example")

    agenda.disengage("a.example", 5.0)

    assert agenda.ready_at() == 5.0
    assert agenda.next(4.9, 10) == []
    assert agenda.next(5.0, 10) == [url(2)]


def test_a_url_that_is_put_back_is_its_domains_next() -> None:
    agenda = Agenda()
    agenda.add(alike([url(1), url(2)]))
    (first,) = agenda.next(0, 1)

    agenda.later(first, 3.0)

    assert agenda.next(2.0, 10) == []
    assert agenda.next(3.0, 10) == [url(1)]


def test_an_errand_goes_before_what_may_be_waiting_for_it() -> None:
    agenda = Agenda()
    page, sent = url(1), Url(UrlId(bytes(16)), errand("http://a.example/robots.txt", 1, 0.0), "a.example")
    agenda.add(alike([page]))
    (taken,) = agenda.next(0.0, 1)
    agenda.add(alike([sent]))  # while the page is under way

    agenda.later(taken, 1.0)

    assert agenda.next(1.0, 1) == [sent]
    agenda.disengage(sent.domain, 2.0)
    assert agenda.next(2.0, 1) == [page]


def test_a_url_that_was_let_go_may_come_again() -> None:
    agenda = Agenda()
    agenda.add(alike([url(1)]))
    agenda.next(0, 1)
    agenda.drop(url(1).id)
    agenda.disengage("a.example", 0)
    assert len(agenda) == 0
    assert agenda.ready_at() is None

    agenda.add(alike([url(1)]))

    assert agenda.next(0, 1) == [url(1)]


def test_no_more_are_taken_up_than_there_are_slots() -> None:
    agenda = Agenda()
    agenda.add(alike([url(n, f"{n}.example") for n in range(10)]))
    assert len(agenda.next(0, 3)) == 3
    assert len(agenda.next(0, 100)) == 7


def test_with_few_slots_the_best_domains_are_first() -> None:
    agenda = Agenda()
    agenda.add([(url(1, "a.example"), 90), (url(2, "b.example"), 3), (url(3, "c.example"), 10)])
    assert agenda.next(0, 2) == [url(2, "b.example"), url(3, "c.example")]


def test_the_worst_domain_lets_others_go_ahead_for_so_long_and_no_longer() -> None:
    agenda = Agenda()
    agenda.add([(url(0, "worst.example"), 100)])
    for now in range(60):
        agenda.add([(url(1 + now, "best.example"), 0)])
        (chosen,) = agenda.next(float(now), 1)
        if chosen == url(0, "worst.example"):
            break
        agenda.disengage("best.example", float(now))
    assert now == int(100 * COURTESY_S) + 1


def test_a_url_that_is_put_back_keeps_its_priority() -> None:
    agenda = Agenda()
    agenda.add([(url(1, "a.example"), 5), (url(2, "b.example"), 40)])
    (first,) = agenda.next(0, 1)
    agenda.later(first, 1.0)
    assert agenda.next(1.0, 1) == [url(1, "a.example")]


async def test_a_hint_that_cant_be_read_is_set_aside_and_costs_no_other() -> None:
    broker = MemoryBroker()
    hints = Hints(broker, {"worker.0": 10}, 10, SystemClock())
    assert not await hints.wait(0)
    await broker.publish("worker.0", [b"\xff{", encode(Routed(((url(1), 7),)))])

    urls, deliveries, unreadable = take(hints, "worker.0", 10)
    await hints.done(deliveries, unreadable)

    assert urls == [(url(1), 7)]
    assert [letter.body for letter in await broker.dead_letters(10)] == [b"\xff{"]
    await hints.close()
    assert await broker.depths() == {"worker.0": 0}
