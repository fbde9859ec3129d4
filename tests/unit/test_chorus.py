"""What several roles say at once is told once: when it begins for the first, and when it is over for the last."""

from services.controller.engines.chorus import Chorus

FULL = "paused: Redis is out of memory (command not allowed; tried again until it works)"
OVER = "goes on after 1.0 s, was paused: Redis is out of memory"


def told(*said: tuple[str, str]) -> list[tuple[str, str]]:
    chorus = Chorus()
    return [(role, text) for role, text in said if chorus.is_news(role, text)]


def test_the_first_to_pause_is_told_and_the_last_to_go_on() -> None:
    said = [("a", FULL), ("b", FULL), ("a", OVER), ("c", FULL), ("b", OVER), ("c", OVER)]

    assert told(*said) == [("a", FULL), ("c", OVER)]


def test_the_next_pause_is_told_again() -> None:
    assert told(("a", FULL), ("a", OVER), ("b", FULL)) == [("a", FULL), ("a", OVER), ("b", FULL)]


def test_pauses_for_different_reasons_are_different_news() -> None:
    other = "paused: S3 has no room (507; tried again until it works)"

    assert told(("a", FULL), ("a", other), ("b", other)) == [("a", FULL), ("a", other)]


def test_what_a_role_waited_for_when_it_died_is_not_waited_for_any_more() -> None:
    chorus = Chorus()
    assert chorus.is_news("a", FULL)
    chorus.has_died("a")

    assert chorus.is_news("b", FULL)


def test_a_broker_that_is_blocked_or_away_is_told_once_whatever_else_each_role_says_of_it() -> None:
    away = [(role, f"broker.away server=h:1 reason={role}") for role in "ab"]
    back = [(role, "broker.back server=h:1") for role in "ab"]
    blocked = [(role, "broker.blocked server=h:1 meaning=short of memory") for role in "ab"]

    assert told(*away, *blocked, *back) == [away[0], blocked[0], back[1]]


def test_everything_else_is_always_told() -> None:
    said = [("a", "worker.fenced worker=0"), ("b", "worker.fenced worker=0")]

    assert told(*said) == said
