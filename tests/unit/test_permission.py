"""A robots.txt that can't be decoded is not one that allows everything."""

import gzip

import pytest

from services.worker.download import Answer
from services.worker.permission import DECODED_BYTES_MAX, ORIGINS_KEPT, TEXTS_KEPT_LENGTH, _Memory, _plain
from services.worker.robotstxt import ALLOW_ALL

RULES = b"User-agent: *\nDisallow: /\n"


def answer(body: bytes, *headers: tuple[str, str]) -> Answer:
    return Answer(200, (("Content-Type", "text/plain"), *headers), body, "127.0.0.1", 0.0, 0.1, len(body))


PNG = b"\x89PNG\r\n\x1a\n" + bytes(99)
GZIP = ("Content-Encoding", "gzip")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        pytest.param(answer(RULES), RULES, id="as it came"),
        pytest.param(answer(gzip.compress(RULES), GZIP), RULES, id="compressed"),
        pytest.param(answer(b""), b"", id="empty: no rules"),
        pytest.param(answer(PNG), PNG, id="an image: no rules are in it"),
        pytest.param(answer(b"\0" + RULES), b"\0" + RULES, id="with a NUL: the rules are there"),
        pytest.param(answer(gzip.compress(b"\0" + RULES), GZIP), b"\0" + RULES, id="with a NUL, compressed"),
        pytest.param(answer(gzip.compress(RULES * 99)[:-20], GZIP), None, id="cut in the middle"),
        pytest.param(answer(gzip.compress(b"#" * (DECODED_BYTES_MAX + 1)), GZIP), None, id="a bomb"),
    ],
)
def test_what_cant_be_read_is_told_from_what_is_not_there(given: Answer, expected: bytes | None) -> None:
    assert _plain(given) == expected


def test_of_rules_no_more_is_remembered_than_there_is_room_for() -> None:
    memory = _Memory()
    long = TEXTS_KEPT_LENGTH // 4
    for number in range(ORIGINS_KEPT + 10):
        memory.keep(f"http://{number}.example", ALLOW_ALL, 1, until=9.0)
    for number in range(6):
        memory.keep(f"http://long{number}.example", ALLOW_ALL, long, until=9.0)
        memory.keep(f"http://long{number}.example", ALLOW_ALL, long, until=9.0)  # again: it counts once

    kept = [number for number in range(6) if memory.get(f"http://long{number}.example", now=0.0)]
    assert kept == [2, 3, 4, 5]
    assert memory.get(f"http://{ORIGINS_KEPT + 9}.example", now=0.0) is None, "the oldest go first"
    assert memory.get("http://long5.example", now=9.0) is None, "and what was kept for long enough"
