"""The table of states, its drawing in the docs, and what it must not allow."""

from pathlib import Path

from gossamer.states import OPEN, STEPS, State, drawing, legal

DOCS = Path(__file__).parents[2] / "docs"


def test_the_docs_show_the_drawing_that_the_table_makes() -> None:
    assert f"```mermaid\n{drawing()}\n```" in (DOCS / "protocol.md").read_text()


def test_a_closed_url_is_closed_for_good() -> None:
    assert not any(before is State.CLOSED for before, _ in STEPS)


def test_every_open_state_can_be_reached_and_left() -> None:
    reached = {after for afters in STEPS.values() for after in afters}
    left = {before for before, _ in STEPS}
    assert reached >= OPEN
    assert left >= OPEN


def test_staying_where_it_is_is_always_legal() -> None:
    for state in State:
        for _, verb in STEPS:
            assert legal(state, verb, state)
