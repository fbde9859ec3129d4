"""Every hostile case ends as it should, and costs no more than it may."""

from dataclasses import replace

import pytest

from tests.hostile.case import MB, Case, Seen
from tests.hostile.groups import all_cases, number_of
from tests.hostile.measure import LAG_S, NOISE_BYTES, Measured, measured
from tests.hostile.playing import warm_up

#: Times are for the table, on a machine with nothing else to do. Here they only tell a bound from none.
PATIENCE = 10.0
#: Noise only ever adds to what a case costs, so the least of several plays is nearest to the truth.
PLAYS = 4

_warm: list[bool] = []


@pytest.mark.parametrize("case", [pytest.param(case, id=f"{case.id} {case.name}") for case in all_cases()])
async def test_a_case_ends_as_it_should_and_within_its_bounds(case: Case) -> None:
    if not _warm:
        await warm_up()
        _warm.append(True)
    for _ in range(PLAYS):
        seen = await measured(case)
        if seen.outcome not in case.expected or not seen.flaws(patience=PATIENCE):
            break  # another outcome is final; a bound that is broken is broken every time

    assert not seen.flaws(patience=PATIENCE), seen.note


#: The last letter of each number of transport, encodings and content; every one before it is there too.
LAST_LETTERS = "degfffhgheie" + "deehcfehfh" + "hjfgdjdhgi"
#: From 41 on: URLs and addresses, robots and politeness.
LAST_LETTERS_FROM_41 = "dfgbbbhhej" + "ehhfiihfgf"


@pytest.mark.parametrize(("number", "last"), [*enumerate(LAST_LETTERS, 1), *enumerate(LAST_LETTERS_FROM_41, 41)])
def test_no_case_of_a_page_is_missing(number: int, last: str) -> None:
    letters = {letter for each, letter in map(number_of, all_cases()) if each == number}

    assert letters == {chr(code) for code in range(ord("a"), ord(last) + 1)}


async def _never() -> Seen:
    raise ZeroDivisionError("on purpose")


CASE = Case(id="1a", name="x", expected=frozenset({"done"}), run=_never)
WELL = Measured(CASE, "done", seconds=0.9, peak_bytes=2 * MB, lag_s=0.01)


@pytest.mark.parametrize(
    ("seen", "flaws"),
    [
        pytest.param(WELL, 0, id="nothing"),
        pytest.param(replace(WELL, outcome="timeout"), 1, id="another outcome"),
        pytest.param(replace(WELL, seconds=1.1), 1, id="too slow"),
        pytest.param(replace(WELL, peak_bytes=2 * MB + NOISE_BYTES + 1), 1, id="too large"),
        pytest.param(replace(WELL, lag_s=LAG_S + 0.1), 1, id="in the way of others"),
        pytest.param(replace(WELL, left_open=1), 1, id="a socket is left"),
    ],
)
def test_whatever_is_not_as_it_should_be_is_a_flaw(seen: Measured, flaws: int) -> None:
    assert len(seen.flaws()) == flaws


async def test_a_case_that_raises_is_no_page_that_is_done() -> None:
    seen = await measured(CASE)

    assert (seen.outcome, seen.note) == ("ZeroDivisionError", "on purpose")
    assert seen.flaws()


async def test_memory_that_a_case_takes_is_seen() -> None:
    async def greedy() -> Seen:
        return Seen("done", str(len(bytearray(30 * MB))))

    assert (await measured(replace(CASE, run=greedy))).peak_bytes > 25 * MB
