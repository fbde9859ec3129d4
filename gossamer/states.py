"""The states of a URL, and the steps that are legal: the one table that docs, tests and both ledgers are held against.

What is not in `STEPS` is illegal. `python -m gossamer.states` draws it (the drawing in docs/protocol.md is its output).
Must not know: how a ledger keeps any of it.
"""

from collections.abc import Iterator, Mapping
from enum import Enum, IntEnum
from typing import Final


class State(IntEnum):
    """Where a URL stands. *Open* is every state but CLOSED, *held* is ROUTED or FETCHING."""

    WAITING = 0  #: known, and nobody's yet
    PARKED = 1  #: its domain has enough on its plate, or may not be asked yet
    ROUTED = 2  #: a worker is to fetch it
    FETCHING = 3  #: its worker passed the gate: budget is reserved
    CLOSED = 4  #: it has its outcome, for good


OPEN: Final = frozenset({State.WAITING, State.PARKED, State.ROUTED, State.FETCHING})
HELD: Final = frozenset({State.ROUTED, State.FETCHING})


class Verb(Enum):
    """The ledger's verbs that can change a URL's state."""

    ADD = "add"
    ROUTE = "route"
    PROMOTE = "promote"
    BEGIN = "begin"
    KNOCK = "knock"
    FINISH = "finish"
    DEFER = "defer"
    PASS_UP = "pass_up"
    REAP = "reap"
    RELEASE = "release"
    RESUME = "resume"
    SHED = "shed"


#: (state, verb) → the states that the verb may lead to, besides leaving it alone. None is the URL that isn't known yet.
STEPS: Final[Mapping[tuple[State | None, Verb], frozenset[State]]] = {
    (None, Verb.ADD): frozenset({State.WAITING}),
    (None, Verb.FINISH): frozenset({State.WAITING}),  # a link of the page that is finished
    (State.WAITING, Verb.ROUTE): frozenset({State.ROUTED, State.PARKED, State.CLOSED}),  # closed: its domain was given up
    (State.PARKED, Verb.PROMOTE): frozenset({State.ROUTED, State.CLOSED}),
    (State.ROUTED, Verb.BEGIN): frozenset({State.FETCHING, State.PARKED, State.CLOSED}),  # parked: before `not_before`
    (State.ROUTED, Verb.KNOCK): frozenset({State.PARKED, State.CLOSED}),
    (State.ROUTED, Verb.PASS_UP): frozenset({State.CLOSED}),
    (State.FETCHING, Verb.FINISH): frozenset({State.CLOSED}),
    (State.FETCHING, Verb.DEFER): frozenset({State.PARKED}),
    (State.WAITING, Verb.SHED): frozenset({State.CLOSED}),
    (State.PARKED, Verb.SHED): frozenset({State.CLOSED}),
    # A worker's lease is over: reap (alone, and first thing in route, promote and register), release, resume.
    (State.ROUTED, Verb.REAP): frozenset({State.WAITING}),
    (State.FETCHING, Verb.REAP): frozenset({State.WAITING, State.CLOSED}),  # closed: poison
    (State.ROUTED, Verb.RELEASE): frozenset({State.WAITING}),
    (State.FETCHING, Verb.RELEASE): frozenset({State.WAITING}),
    (State.ROUTED, Verb.RESUME): frozenset({State.WAITING}),
    (State.FETCHING, Verb.RESUME): frozenset({State.WAITING}),
}


def legal(before: State | None, verb: Verb, after: State | None) -> bool:
    """Whether `verb` may take a URL from `before` to `after`; leaving it where it is always is."""
    return before == after or after in STEPS.get((before, verb), frozenset())


def drawing() -> str:
    """The table as a Mermaid state diagram, one line a step."""
    return "\n".join(("stateDiagram-v2", *_arrows()))


def _arrows() -> Iterator[str]:
    merged: dict[tuple[str, str], list[str]] = {}
    for (before, verb), afters in STEPS.items():
        for after in sorted(afters):
            merged.setdefault((before.name if before is not None else "[*]", after.name), []).append(verb.value)
    for (source, target), verbs in merged.items():
        yield f"    {source} --> {target}: {', '.join(verbs)}"
    yield f"    {State.CLOSED.name} --> [*]"


if __name__ == "__main__":
    import sys

    sys.stdout.write(drawing() + "\n")
