"""What the model is made of: the ledger, the queues and the processes as immutable values, and the scenarios over them.

Knows: which fields there are, and what is left out of them. Must not know: a single rule; those are in `verbs` (the ledger's) and
`processes` (everybody else's).
"""

from dataclasses import dataclass
from typing import NamedTuple

UNKNOWN, WAITING, PARKED, ROUTED, FETCHING = "UNKNOWN", "WAITING", "PARKED", "ROUTED", "FETCHING"
STORED, TWIN, FAILED, FORBIDDEN, POISON, SHED = "STORED", "TWIN", "FAILED", "FORBIDDEN", "POISON", "SHED"
OPEN = frozenset({WAITING, PARKED, ROUTED, FETCHING})
CLOSED = frozenset({STORED, TWIN, FAILED, FORBIDDEN, POISON, SHED})
HELD = frozenset({ROUTED, FETCHING})
RUNNING, DRAINING, COMPLETE, ENDED = "running", "draining", "complete", "ended"  # ended: by a budget or by `stop`
NONE = -1

# --- The ledger -------------------------------------------------------------------------------------------------------


class Url(NamedTuple):
    state: str = UNKNOWN
    worker: int = NONE
    content: int = NONE  # what it was closed with, for I2
    suspect: bool = False  # it was FETCHING when its worker's lease ran out
    deaths: int = 0  # how often it died as a suspect, alone
    blame: int = NONE  # the seat (see `Worker.former`) whose lapse made it a suspect or counted its last death
    pardoned: bool = False  # a former holder came back and took its lapse back: that happens once
    deferrals: int = 0


class Domain(NamedTuple):
    busy: int = NONE  # the URL that a request is in flight for
    cool: bool = True  # now >= next_at
    held: bool = False  # now < not_before
    due: bool = False
    robots: bool = True  # robots.txt is known
    rested: bool = True  # the server's view: its last request began at least `delay` ago
    failures: int = 0  # in a row; counted up to the limit
    rests: int = 0
    closed: bool = False  # given up


class Ledger(NamedTuple):
    status: str
    urls: tuple[Url, ...]
    domains: tuple[Domain, ...]
    leases: tuple[bool, ...]
    content: tuple[int, ...]  # content -> the URL entered for it
    stored: int = 0
    reserved: int = 0  # pages: one for each URL that is FETCHING
    flying: int = 0  # bytes reserved: one cap for each request in flight
    spent: int = 0  # bytes used and charged, in units of one cap
    asked: int = 0  # the servers' view: requests that they were sent; counted where bytes are limited
    resumed: int = 0  # how often; says which of the scenario's budgets holds


# --- The broker -------------------------------------------------------------------------------------------------------


class Queues(NamedTuple):
    urls: tuple[int, ...]
    band: tuple[int, ...]
    worker: tuple[tuple[int, ...], ...]


# --- The processes ----------------------------------------------------------------------------------------------------


class Task(NamedTuple):
    """One URL in a worker's hand, and how far it got."""

    url: int
    phase: str
    content: int = NONE


class Worker(NamedTuple):
    id: int = NONE  # none: not registered
    newest: bool = False  # its epoch is the newest of its id
    tasks: tuple[Task, ...] = ()
    news: tuple[int, ...] = ()  # links that `finish` called new, to be published
    former: int = NONE  # the seat that it lost: its id, or id + workers once somebody else has that id
    trusting: bool = False  # its lease was voided by `resume`, and its own clock doesn't know


class Frontier(NamedTuple):
    phase: str = "idle"
    url: int = NONE
    worker: int = NONE


class State(NamedTuple):
    ledger: Ledger
    queues: Queues
    workers: tuple[Worker, ...]  # sorted: processes are interchangeable
    frontiers: tuple[Frontier, ...]  # sorted
    controller: str  # add, publish, watch
    faults: int  # how many may still happen


class Step(NamedTuple):
    label: str
    after: State
    fault: bool = False
    breach: str = ""


# --- What is explored -------------------------------------------------------------------------------------------------

OK, FAIL, RETRY, DEFER = "ok", "fail", "retry", "defer"


@dataclass(frozen=True)
class Page:
    domain: int
    links: tuple[int, ...] = ()
    answers: tuple[str, ...] = (OK,)  # the server gives any of these, anew for each request
    contents: tuple[int, ...] = ()  # any of these; a page without is unlike all others
    forbidden: bool = False
    deadly: bool = False  # fetching it kills the worker: no fault, it does so each time
    stunning: bool = False  # fetching it freezes the worker past its lease, each time


class Budget(NamedTuple):
    pages: int | None = None
    bytes: int | None = None  # in units of one cap


@dataclass(frozen=True)
class Scenario:
    name: str
    pages: tuple[Page, ...]
    seeds: tuple[int, ...] = (0,)
    workers: int = 2  # each its own process
    frontiers: int = 1
    window: int = 1
    size: int = 1  # a worker's load and each queue's length
    bands: bool = False  # urls -> band -> worker, or urls -> worker
    robots: frozenset[int] = frozenset()  # domains whose robots.txt is to be asked for first
    deadly_robots: bool = False  # robots.txt kills the worker, each time
    late: int = 0  # workers that aren't registered yet when the crawl starts
    cold: bool = False  # starts before the seeds are added; else with their hints published
    loose: bool = False  # processes ask although a hint is on its way, and any worker with room may become owner
    ranked: bool = False  # any PARKED URL may be the best, and any WAITING one is asked for first
    budgets: tuple[Budget, ...] = (Budget(),)  # that of `create`, then of each `resume`
    impatient: bool = False  # the operator may resume a crawl that runs: workers that he thinks dead live on
    stop: bool = False  # the controller may stop the crawl at any time
    release: bool = False  # a worker may release at any time
    poison: int = 0  # deaths, alone, that close a URL; 0: nobody is suspected
    fail_limit: int = 0  # failures in a row that make a domain rest; 0: off
    rest_limit: int = 0  # rests; one more failure closes the domain
    deferrals: int = 0  # a URL that would be deferred once more is closed; 0: no limit
    sheds: int = 0  # how many URLs may be shed
    kinds: frozenset[str] = frozenset({"kill", "freeze", "hint", "answer"})

    @property
    def domains(self) -> int:
        return 1 + max(page.domain for page in self.pages)

    @property
    def contents(self) -> int:
        return 1 + max((c for page in self.pages for c in page.contents), default=NONE)


@dataclass(frozen=True)
class World:
    """A scenario, the faults that may happen in it, and the one deliberate bug that is switched on."""

    scenario: Scenario
    faults: int = 0
    bug: str = ""

    def budget(self, ledger: Ledger) -> Budget:
        return self.scenario.budgets[ledger.resumed]
