"""Finish: how many links are entered at once."""

import pytest

from gossamer.ids import UrlId
from gossamer.messages import Link
from gossamer.outcomes import Outcome
from gossamer.records import Closing
from services.worker.finish import LINKS_AT_ONCE, portions

LINK = Link(UrlId(bytes(16)), "http://a.test/", "a.test")
HALF = LINKS_AT_ONCE // 2


@pytest.mark.parametrize(
    ("links", "expected"),
    [
        pytest.param([5, 0, 7], [[5, 0, 7]], id="pages go together"),
        pytest.param([HALF, HALF, 0, 1], [[HALF, HALF, 0], [1]], id="up to the bound"),
        pytest.param([3, LINKS_AT_ONCE, 4, 5], [[3], [LINKS_AT_ONCE], [4, 5]], id="a large sitemap goes alone"),
        pytest.param([LINKS_AT_ONCE + 1, LINKS_AT_ONCE + 1], [[LINKS_AT_ONCE + 1], [LINKS_AT_ONCE + 1]], id="nothing is split"),
    ],
)
def test_no_more_links_are_entered_at_once_than_an_engine_can_stand(links: list[int], expected: list[list[int]]) -> None:
    closings = [Closing(id=LINK.id, outcome=Outcome.DONE, links=[LINK] * count) for count in links]

    assert [[len(closing.links) for closing in some] for some in portions(closings)] == expected
