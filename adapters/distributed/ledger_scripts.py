"""The ledger's Lua: one file a verb (lua/), what several verbs share (lua/shared/), and what Python says first.

A verb's header names what it uses. Those files are put before it, each once, so that a script holds what its verb needs and no
more: all of it is run through with each call. States, outcomes and codes are written into the script from the enums that the
rest of the crawler reads, so there is no second list of them.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum, IntEnum
from functools import cache
from hashlib import sha1
from importlib.resources import files
from typing import Final

from gossamer.budgets import Budget
from gossamer.ids import URL_ID_BYTES
from gossamer.outcomes import CrawlOutcome, Outcome
from gossamer.records import UNRANKED, CrawlStatus
from gossamer.states import State

#: Keys over which each of the crawl's big hashes is spread.
SHARDS: Final = 16
#: In the place of a priority.
UNKNOWN_RANK: Final = 255


class Gate(IntEnum):
    """What the gate says."""

    GO = 0
    BUSY = 1
    DELAY = 2
    NOT_BEFORE = 3
    ALONE = 4
    BUDGET = 5
    CLOSED = 6
    BUDGET_SPENT = 7


class Judged(IntEnum):
    """What the content index says."""

    FRESH = 0
    TWIN = 1
    LIKE = 2
    CLOSED = 3


class Route(IntEnum):
    """What `route` says of a URL that it gave to no worker: below every worker's id."""

    PARKED = -1
    CLOSED = -2
    NO_ROOM = -3


class Family(IntEnum):
    """What stands before a link's family."""

    NONE = 0  #: it has none
    ALONE = 1  #: its query is one parameter
    COMBINES = 2


#: Each is a table in Lua.
_CODES: Final[tuple[type[Enum], ...]] = (Gate, Judged, Route, Family, Budget)


@dataclass(frozen=True, slots=True)
class Script:
    text: str
    sha: str


@cache
def script(verb: str) -> Script:
    """The whole of a verb, as the server gets it."""
    text = "\n".join([_words(), *(source(part) for part in _in_order(verb))])
    return Script(text, sha1(text.encode(), usedforsecurity=False).hexdigest())


@cache
def source(part: str) -> str:
    """A file: a verb, or `shared/` and something that verbs share."""
    return files("adapters.distributed").joinpath(f"lua/{part}.lua").read_text()


def uses(part: str) -> list[str]:
    """What a file's header says that it uses, as files."""
    found = re.search(r"^-- Uses +(.+)$", source(part), re.MULTILINE)
    return [f"shared/{name}" for name in found.group(1).split(", ")] if found else []


def _in_order(verb: str) -> list[str]:
    """The verb, after all that it uses, after all that those use."""

    def walk(part: str) -> Iterator[str]:
        for used in uses(part):
            yield from walk(used)
        yield part

    return list(dict.fromkeys(walk(verb)))


def _words() -> str:
    """The words that Python and Lua share."""
    plain: dict[str, object] = {
        **{state.name: state.value for state in State},
        **{status.name: status.value for status in CrawlStatus},
        **{outcome.name: outcome.value for outcome in (Outcome.BUDGET, Outcome.POISON, Outcome.ROBOTS_DENIED, Outcome.SHED)},
        **{outcome.name: outcome.value for outcome in (CrawlOutcome.COMPLETE, CrawlOutcome.PAGE_BUDGET, CrawlOutcome.BYTE_BUDGET)},
        "UNRANKED": UNRANKED,
        "ID_BYTES": URL_ID_BYTES,
        "SHARDS": SHARDS,
        "UNKNOWN_RANK": UNKNOWN_RANK,
    }
    codes = [f"local {of.__name__} = {{ {', '.join(f'{code.name} = {_literal(code.value)}' for code in of)} }}" for of in _CODES]
    return "\n".join([*(f"local {name} = {_literal(value)}" for name, value in plain.items()), *codes])


def _literal(value: object) -> str:
    return f'"{value}"' if isinstance(value, str) else str(value)
