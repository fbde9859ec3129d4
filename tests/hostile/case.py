"""A case: what a peer does, the outcome that is expected of us, and what it may cost.

Cases are data, so that the tests and the table of `make hostile` can't say different things. A file of this folder holds those of
one group and calls them `CASES`.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

MB: Final = 1_000_000


@dataclass(frozen=True, slots=True)
class Seen:
    """What a run of a case came to."""

    outcome: str  #: as docs/outcomes.md names it, or a word that the case explains
    note: str = ""  #: its reason, or what else is worth showing in the table


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    id: str  #: a number, a letter and, where one is not enough, a variant: 13a, 13d.2
    name: str  #: what the peer does, in a few words
    expected: frozenset[str]  #: outcomes that are right; more than one only where the transport decides
    run: Callable[[], Awaitable[Seen]]  #: asserts by itself what an outcome does not show
    memory_bytes: int = 2 * MB  #: peak above the idle process
    seconds: float = 1.0  #: of wall time
