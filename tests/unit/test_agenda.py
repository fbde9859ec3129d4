"""The agenda: a hand that is a set, one URL of a domain at a time, the soonest first."""

from gossamer.ids import UrlId
from gossamer.messages import Routed, Url, encode
from gossamer.ports.broker import Delivery
from services.worker.agenda import Agenda, take


def url(number: int, domain: str = "a.example") -> Url:
    return Url(UrlId(number.to_bytes(16)), f"http://{domain}/{number}", domain)


def test_a_hint_for_a_url_in_hand_is_dropped() -> None:
    agenda = Agenda()
    agenda.add([url(1), url(1)])
    assert agenda.next(0, 10) == [url(1)]
    agenda.add([url(1)])
    agenda.disengage("a.example", 0)
    assert agenda.next(0, 10) == []
    assert len(agenda) == 1


def test_of_a_domain_one_url_is_under_way_at_a_time() -> None:
    agenda = Agenda()
    agenda.add([url(1), url(2), url(3, "b.example")])
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
    agenda.add([url(1), url(2)])
    (first,) = agenda.next(0, 1)

    agenda.later(first, 3.0)

    assert agenda.next(2.0, 10) == []
    assert agenda.next(3.0, 10) == [url(1)]


def test_a_url_that_was_let_go_may_come_again() -> None:
    agenda = Agenda()
    agenda.add([url(1)])
    agenda.next(0, 1)
    agenda.drop(url(1).id)
    agenda.disengage("a.example", 0)
    assert len(agenda) == 0
    assert agenda.ready_at() is None

    agenda.add([url(1)])

    assert agenda.next(0, 1) == [url(1)]


def test_no_more_are_taken_up_than_there_are_slots() -> None:
    agenda = Agenda()
    agenda.add([url(n, f"{n}.example") for n in range(10)])
    assert len(agenda.next(0, 3)) == 3
    assert len(agenda.next(0, 100)) == 7


def test_a_hint_that_cant_be_read_is_told_apart_and_costs_no_other() -> None:
    good = Delivery("worker.0", 1, encode(Routed((url(1),))), redelivered=False)
    bad = Delivery("worker.0", 2, b"\xff{", redelivered=False)
    urls, errors = take([bad, good])
    assert urls == [url(1)]
    assert len(errors) == 1
