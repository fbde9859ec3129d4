"""What an answer means."""

import pytest

from gossamer.outcomes import Outcome
from services.worker.meaning import IsEnd, IsNotNow, IsPage, IsRedirect, Meaning, meaning

LOCATION = ("Location", "/there")


@pytest.mark.parametrize(
    ("status", "headers", "expected"),
    [
        pytest.param(200, (), IsPage(), id="200 is a page"),
        pytest.param(203, (), IsPage(), id="so is another success"),
        pytest.param(204, (), IsEnd(Outcome.NO_CONTENT, "status 204"), id="204 has no body"),
        pytest.param(206, (), IsEnd(Outcome.MALFORMED, "a part of a page, which nobody asked for"), id="206 was not asked for"),
        pytest.param(301, (LOCATION,), IsRedirect("/there"), id="a redirect has a target"),
        pytest.param(308, (("LOCATION", " /there "),), IsRedirect("/there"), id="whatever its spelling"),
        pytest.param(302, (("Location", "/\xc3\xa9"),), IsRedirect("/%C3%A9"), id="in raw UTF-8"),
        pytest.param(302, (("Location", "/\xe9"),), IsRedirect("/%E9"), id="in raw Latin-1"),
        pytest.param(302, (), IsEnd(Outcome.HTTP_ERROR, "status 302 with no target"), id="or it is an error"),
        pytest.param(302, (("Location", ""),), IsEnd(Outcome.HTTP_ERROR, "status 302 with no target"), id="an empty one"),
        pytest.param(302, (LOCATION, LOCATION), IsRedirect("/there"), id="the same twice is one"),
        pytest.param(
            302,
            (LOCATION, ("Location", "/x")),
            IsEnd(Outcome.HTTP_ERROR, "status 302 with more than one target"),
            id="two are not",
        ),
        pytest.param(304, (), IsEnd(Outcome.HTTP_ERROR, "status 304"), id="304 without a validator"),
        pytest.param(404, (), IsEnd(Outcome.GONE, "status 404"), id="404 is gone"),
        pytest.param(410, (), IsEnd(Outcome.GONE, "status 410"), id="so is 410"),
        pytest.param(403, (), IsEnd(Outcome.HTTP_ERROR, "status 403"), id="another 4xx is final"),
        pytest.param(503, (), IsNotNow("status 503", None), id="503 is not now"),
        pytest.param(429, (("retry-after", "7"),), IsNotNow("status 429", "7"), id="429 says for how long"),
        pytest.param(501, (), IsEnd(Outcome.HTTP_ERROR, "status 501"), id="501 will stay so"),
        pytest.param(999, (), IsEnd(Outcome.HTTP_ERROR, "status 999"), id="a senseless status"),
    ],
)
def test_a_status_means_one_thing(status: int, headers: tuple[tuple[str, str], ...], expected: Meaning) -> None:
    assert meaning(status, headers) == expected
