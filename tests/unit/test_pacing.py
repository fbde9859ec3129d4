"""The pace of a domain, and what Retry-After means."""

import pytest

from services.worker.pacing import CEILING_S, Pace, retry_after_s

NOW = 1_700_000_000.0  # Tue, 14 Nov 2023 22:13:20 GMT


def test_a_quick_and_healthy_site_gets_the_delay_that_we_want() -> None:
    pace = Pace(1.0)
    for _ in range(20):
        pace = pace.after(took_s=0.1, well=True)
    assert pace.delay_s == 1.0


def test_a_slow_site_gets_twice_its_usual_response_time() -> None:
    pace = Pace(1.0)
    for _ in range(40):
        pace = pace.after(took_s=3.0, well=True)
    assert pace.delay_s == pytest.approx(6.0)


def test_each_sign_of_trouble_doubles_the_pause_up_to_a_ceiling() -> None:
    pace, delays = Pace(1.0), []
    for _ in range(8):
        pace = pace.after(took_s=None, well=False)
        delays.append(pace.delay_s)
    assert delays[:4] == [2.0, 4.0, 8.0, 16.0]
    assert delays[-1] == CEILING_S


def test_ten_good_answers_halve_it_until_it_is_forgotten() -> None:
    pace = Pace(1.0)
    for _ in range(3):
        pace = pace.after(took_s=None, well=False)
    delays = []
    for _ in range(3):
        for _ in range(10):
            pace = pace.after(took_s=0.1, well=True)
        delays.append(pace.delay_s)
    assert delays == [4.0, 2.0, 1.0]


def test_a_crawl_delay_is_the_least_and_the_largest_of_several_counts() -> None:
    assert Pace(1.0).at_least(3.0).at_least(2.0).delay_s == 3.0
    assert Pace(0.0).at_least(3.0).delay_s == 3.0


def test_a_delay_of_nothing_does_not_adapt() -> None:
    pace = Pace(0.0).after(took_s=9.0, well=False)
    assert pace.delay_s == 0.0


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        pytest.param("3", 3.0, id="seconds"),
        pytest.param(" 120 ", 120.0, id="with blanks around"),
        pytest.param("Tue, 14 Nov 2023 22:14:20 GMT", 60.0, id="a date"),
        pytest.param("Tue, 14 Nov 2023 22:12:20 GMT", None, id="a date that is past"),
        pytest.param("-1", None, id="less than nothing"),
        pytest.param("0", None, id="nothing"),
        pytest.param("soon", None, id="a word"),
        pytest.param("", None, id="empty"),
        pytest.param(None, None, id="no header"),
        pytest.param("9" * 400, 999_999_999_999.0, id="more digits than a number has"),
    ],
)
def test_retry_after_is_a_pause_or_no_pause(value: str | None, seconds: float | None) -> None:
    assert retry_after_s(value, NOW) == seconds
