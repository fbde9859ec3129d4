"""The pace of a domain, and what to do when a server says "not now"."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from services.worker.pace import CEILING_S, Defer, GiveUp, Pace, Retry, after_failure, retry_after_s


def after(pace: Pace, *answers: tuple[float | None, bool]) -> Pace:
    for took_s, well in answers:
        pace = pace.after(took_s=took_s, well=well)
    return pace


GOOD, BUSY = (0.01, True), (0.01, False)


@pytest.mark.parametrize(
    ("pace", "delay_s"),
    [
        pytest.param(Pace(1.0), 1.0, id="what we want"),
        pytest.param(Pace(1.0).at_least(5.0), 5.0, id="what robots.txt asks for, if it is longer"),
        pytest.param(Pace(1.0).at_least(0.5), 1.0, id="not if it is shorter"),
        pytest.param(after(Pace(1.0), (2.0, True)), 4.0, id="twice the response time, if it is longer"),
        pytest.param(after(Pace(1.0), (2.0, True), (7.0, True)), 6.0, id="smoothed"),
        pytest.param(after(Pace(1.0), (300.0, True)), CEILING_S, id="a minute at most"),
        pytest.param(after(Pace(1.0).at_least(90.0), (300.0, True)), 90.0, id="but what robots.txt asks for"),
        pytest.param(after(Pace(1.0), BUSY), 2.0, id="twice as long after a refusal"),
        pytest.param(after(Pace(1.0), BUSY, BUSY, (None, False)), 8.0, id="and so on, also after timeouts"),
        pytest.param(after(Pace(1.0), *[BUSY] * 20), CEILING_S, id="up to a minute"),
        pytest.param(after(Pace(1.0), BUSY, BUSY, *[GOOD] * 9), 4.0, id="nine good answers change nothing"),
        pytest.param(after(Pace(1.0), BUSY, BUSY, *[GOOD] * 10), 2.0, id="ten halve it"),
        pytest.param(after(Pace(1.0), BUSY, BUSY, *[GOOD] * 20), 1.0, id="down to what we want"),
        pytest.param(after(Pace(1.0), BUSY, BUSY, *[GOOD] * 9, BUSY, GOOD), 8.0, id="a refusal starts the count again"),
        pytest.param(after(Pace(0.0).at_least(3.0), BUSY, (9.0, True)), 3.0, id="a delay of zero adapts to nothing"),
        pytest.param(after(Pace(0.0), BUSY), 0.0, id="and waits for nothing"),
    ],
)
def test_the_delay_follows_the_answers(pace: Pace, delay_s: float) -> None:
    assert pace.delay_s == pytest.approx(delay_s)


ANSWERS = st.lists(st.tuples(st.none() | st.floats(0, 1e6), st.booleans()), max_size=40)


@settings(deadline=None)
@given(ANSWERS, st.floats(0, 1e6), st.floats(0, 1e6))
def test_no_answer_makes_us_faster_than_asked(answers: list[tuple[float | None, bool]], wanted_s: float, asked_s: float) -> None:
    pace = after(Pace(wanted_s).at_least(asked_s), *answers)

    assert max(wanted_s, asked_s) <= pace.delay_s <= max(wanted_s, asked_s, CEILING_S)


@settings(deadline=None)
@given(ANSWERS)
def test_good_answers_always_bring_the_delay_down_again(answers: list[tuple[float | None, bool]]) -> None:
    pace = after(after(Pace(1.0), *answers), *[GOOD] * 200)

    assert pace.delay_s == 1.0


NOW = 1_800_000_000.0  # Fri, 15 Jan 2027 08:00:00 GMT


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        pytest.param("3", 3.0, id="seconds"),
        pytest.param(" 120 ", 120.0, id="blanks"),
        pytest.param("0", 0.0, id="at once"),
        pytest.param("1000000000000", 1e12, id="for ever"),
        pytest.param("Fri, 15 Jan 2027 08:01:00 GMT", 60.0, id="a moment"),
        pytest.param("Fri, 31 Dec 2099 23:59:59 GMT", 2302444799.0, id="a moment far away"),
        pytest.param("Thu, 14 Jan 2027 08:01:00 GMT", None, id="a moment that has passed"),
        pytest.param("Friday, 15-Jan-27 08:01:00 GMT", None, id="a year of two digits"),
        pytest.param("Fri, 31 Feb 2027 08:01:00 GMT", None, id="no such day"),
        pytest.param("Fri, 15 Jan 2027 08:61:00 GMT", None, id="no such minute"),
        pytest.param("-1", None, id="negative"),
        pytest.param("1.5", None, id="a fraction"),
        pytest.param("٣", None, id="digits of another script"),
        pytest.param("soon", None, id="a word"),
        pytest.param("", None, id="empty"),
        pytest.param(None, None, id="no header"),
    ],
)
def test_a_pause_is_taken_from_what_makes_sense(header: str | None, expected: float | None) -> None:
    assert retry_after_s(header, NOW) == expected


@settings(deadline=None)
@given(st.text() | st.from_regex(r"[A-Z][a-z]{2}, [0-9]{2} [A-Z][a-z]{2} [0-9]{4} [0-9]{2}:[0-9]{2}:[0-9]{2} GMT", fullmatch=True))
def test_no_header_makes_it_fail(header: str) -> None:
    pause_s = retry_after_s(header, NOW)

    assert pause_s is None or pause_s >= 0


@pytest.mark.parametrize(
    ("status", "asked_s", "retried", "deferrals", "expected"),
    [
        pytest.param(500, None, False, 0, Retry(0.0), id="a broken page is tried once more"),
        pytest.param(None, None, False, 0, Retry(0.0), id="and so is one that did not come"),
        pytest.param(429, 3.0, False, 0, Retry(3.0), id="after the pause that was asked for"),
        pytest.param(503, 60.0, False, 0, Retry(60.0), id="up to a minute"),
        pytest.param(503, 61.0, False, 0, Defer(61.0), id="beyond that it is put off"),
        pytest.param(500, None, True, 0, GiveUp("status 500, twice"), id="what is broken twice is broken"),
        pytest.param(None, None, True, 0, GiveUp("no answer, twice"), id="what does not come twice won't"),
        pytest.param(429, None, True, 0, Defer(60.0), id="a server that is busy twice is left alone"),
        pytest.param(429, None, False, 1, Defer(120.0), id="twice as long the second time, without a retry"),
        pytest.param(503, None, False, 2, Defer(240.0), id="and again"),
        pytest.param(503, 10.0, False, 2, Defer(10.0), id="or as long as it asks"),
        pytest.param(503, None, False, 3, GiveUp("status 503, and put off 3 times"), id="a fourth time is too much"),
        pytest.param(429, 3601.0, False, 0, GiveUp("status 429, and 3601 s to wait"), id="so is more than an hour"),
        pytest.param(503, 1e12, True, 0, GiveUp("status 503, and 1e+12 s to wait"), id="or for ever"),
        pytest.param(429, 3600.0, True, 0, Defer(3600.0), id="an hour is not"),
    ],
)
def test_what_is_done_about_a_failure(
    status: int | None, asked_s: float | None, retried: bool, deferrals: int, expected: Retry | Defer | GiveUp
) -> None:
    assert after_failure(status, asked_s, retried=retried, deferrals=deferrals, max_deferrals=3) == expected
