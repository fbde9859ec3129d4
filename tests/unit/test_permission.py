"""A robots.txt that can't be decoded is not one that allows everything."""

import gzip

import pytest

from services.worker.download import Answer
from services.worker.permission import DECODED_BYTES_MAX, _plain

RULES = b"User-agent: *\nDisallow: /\n"


def answer(body: bytes, *headers: tuple[str, str]) -> Answer:
    return Answer(200, (("Content-Type", "text/plain"), *headers), body, "127.0.0.1", 0.0, 0.1, len(body))


GZIP = ("Content-Encoding", "gzip")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(answer(RULES), RULES, id="as it came"),
        pytest.param(answer(gzip.compress(RULES), GZIP), RULES, id="compressed"),
        pytest.param(answer(b""), b"", id="empty: no rules"),
        pytest.param(answer(b"\x89PNG\r\n\x1a\n" + bytes(99)), b"", id="an image: no rules"),
        pytest.param(answer(gzip.compress(RULES * 99)[:-20], GZIP), None, id="cut in the middle"),
        pytest.param(answer(gzip.compress(b"#" * (DECODED_BYTES_MAX + 1)), GZIP), None, id="a bomb"),
    ],
)
def test_what_cant_be_read_is_told_from_what_is_not_there(given: Answer, expected: bytes | None) -> None:
    assert _plain(given) == expected
