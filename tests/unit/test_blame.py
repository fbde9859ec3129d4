"""Other people's errors, as they may be logged."""

import json

import pytest

from services.role.blame import blame, printable


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError


def caught(raising: BaseException) -> BaseException:
    try:
        raise raising
    except BaseException as error:
        return error


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("no price"), "ValueError: no price"),
        (ValueError(), "ValueError"),
        (SystemExit(3), "SystemExit: 3"),
        (
            ValueError("two\nlines, red \x1b[31m, reversed \u202e, half \ud800"),
            r"two\nlines, red \x1b[31m, reversed \u202e, half \ud800",
        ),
        (Mute(), "Mute"),
    ],
)
def test_an_error_is_one_line_that_steers_no_terminal(error: BaseException, text: str) -> None:
    told = blame(caught(error))

    assert text in told
    assert told.isprintable()


def test_fifty_megabytes_of_an_error_are_cut() -> None:
    assert len(blame(ValueError("x" * 50_000_000))) < 250


def test_the_place_is_where_they_were_entered_and_where_it_ended_up() -> None:
    with pytest.raises(ValueError, match="Expecting") as failed:
        json.loads("{")

    first, last = blame(failed.value).rpartition("(")[2].removesuffix(")").split(", ")

    assert first.startswith("test_blame.py:")
    assert last.startswith("decoder.py:")


def test_what_is_printable_stays_as_it_is() -> None:
    assert printable("Größe 東京 it's") == "Größe 東京 it's"
