"""Bands and draws: tables and laws."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.errors import SettingsError
from gossamer.ids import UrlId
from gossamer.messages import Url
from gossamer.settings import Law
from services.frontier.bands import BandTable
from services.frontier.draw import Draw, nearest
from services.frontier.prioritizers import choose


@pytest.mark.parametrize(
    ("priority", "band"),
    [(0, 0), (9, 0), (10, 1), (89, 8), (90, 9), (99, 9), (100, 9)],
)
def test_ten_bands_are_ten_priorities_wide_and_the_last_has_the_hundred(priority: int, band: int) -> None:
    assert BandTable(10).band(priority) == band


@given(st.integers(1, 100))
def test_bands_cover_all_priorities_in_order(bands: int) -> None:
    table = BandTable(bands)
    order = [table.band(priority) for priority in range(101)]
    assert order == sorted(order)
    assert order[0] == 0
    assert order[-1] == bands - 1
    assert [first for first, _ in table.ranges()] == sorted({order.index(band) for band in order})


def shares(draws: int, seed: int = 1, law: Law = Law.SQUARE) -> list[float]:
    draw = Draw(BandTable(10), random.Random(seed), law)
    drawn = [draw.band([True] * 10) for _ in range(draws)]
    return [drawn.count(band) / draws for band in range(10)]


def test_a_better_band_is_read_more_often_than_the_next_worse_one() -> None:
    found = shares(100_000)
    law = [((band + 1) / 10) ** 0.5 - (band / 10) ** 0.5 for band in range(10)]
    assert found == sorted(found, reverse=True)
    assert all(abs(share - expected) < 0.01 for share, expected in zip(found, law, strict=True))


def test_by_the_even_law_all_bands_are_read_alike() -> None:
    assert all(abs(share - 0.1) < 0.01 for share in shares(100_000, law=Law.EVEN))


def test_by_the_strict_law_the_best_is_read_but_for_those_that_are_overdue() -> None:
    best, *others = shares(100_000, law=Law.STRICT)
    assert best > 0.98
    assert all(share >= 0.001 for share in others)


@pytest.mark.parametrize("law", Law)
@pytest.mark.parametrize("bands", [2, 10, 100])
def test_every_band_that_has_something_is_read_once_in_a_thousand_draws(law: Law, bands: int) -> None:
    draw = Draw(BandTable(bands), random.Random(1), law)
    drawn = [draw.band([True] * bands) for _ in range(5_000)]
    for start in range(0, 4_000, 50):
        assert set(drawn[start : start + 1_000]) == set(range(bands))


class Worst(random.Random):
    """Always draws the best band."""

    def random(self) -> float:
        return 0.0


def test_the_worst_band_is_read_once_in_a_thousand_draws_whatever_the_numbers() -> None:
    draw = Draw(BandTable(10), Worst())
    drawn = [draw.band([True] * 10) for _ in range(10_000)]
    for start in range(0, 9_000, 100):
        assert 9 in drawn[start : start + 1_000]


def test_an_empty_band_passes_the_draw_on_to_the_next_better_one() -> None:
    assert nearest(5, [False, True, True, False, False, False, True]) == 2
    assert nearest(1, [False, False, False, True, False]) == 3


def test_nothing_is_drawn_when_nothing_is_there() -> None:
    assert Draw(BandTable(3), random.Random(1)).band([False] * 3) is None


def test_the_same_seed_draws_the_same() -> None:
    assert shares(1_000, seed=5) == shares(1_000, seed=5)


def url(depth: int) -> Url:
    return Url(UrlId(bytes(16)), "http://a.example/", "a.example", depth)


def test_breadth_ranks_by_depth_and_never_leaves_the_range() -> None:
    assert choose("breadth").make()([url(depth) for depth in (0, 1, 3, 10, 500)]) == [0, 10, 30, 100, 100]


def test_an_unknown_prioritizer_is_refused_with_the_right_ones() -> None:
    with pytest.raises(SettingsError, match=r"did you mean breadth\? There are breadth, constant, pagerank"):
        choose("depth")
