"""The walk: what happens to a URL, step by step, as a table. From it come the crash points, the docs' list and their tests.

Each step is one function in the file named here, marked with `@step(...)` (gossamer/crash.py). Between any two of them a process
may die; docs/protocol.md says for each such window what is left behind and what mends it.
"""

from enum import StrEnum
from typing import Final, NamedTuple


class Role(StrEnum):
    CONTROLLER = "controller"
    FRONTIER = "frontier"
    WORKER = "worker"


class Step(NamedTuple):
    role: Role
    name: str
    file: str
    does: str

    @property
    def title(self) -> str:
        return f"{self.role}.{self.name}"


WALK: Final = (
    Step(Role.CONTROLLER, "seed", "services/controller/seed.py", "canonicalises the seeds and adds them to the ledger"),
    Step(Role.CONTROLLER, "announce", "services/controller/seed.py", "publishes a hint for each new seed to `urls`"),
    Step(Role.FRONTIER, "prioritize", "services/frontier/prioritizer.py", "gives each hinted URL a priority, 0 (best) to 100"),
    Step(Role.FRONTIER, "band", "services/frontier/bands.py", "publishes it to the band of its priority"),
    Step(Role.FRONTIER, "route", "services/frontier/router.py", "draws a band and routes a batch of it in the ledger"),
    Step(Role.FRONTIER, "send", "services/frontier/router.py", "publishes what was routed to the workers' queues"),
    Step(Role.FRONTIER, "promote", "services/frontier/keeper.py", "routes parked URLs of domains that are due"),
    Step(Role.FRONTIER, "ask", "services/frontier/keeper.py", "finds WAITING URLs without a hint, and hints at them again"),
    Step(Role.WORKER, "take", "services/worker/agenda.py", "takes hints from its queue, or asks the ledger what it holds"),
    Step(Role.WORKER, "robots", "services/worker/permission.py", "sees that robots.txt of the origin is known, and obeys it"),
    Step(Role.WORKER, "sitemaps", "services/worker/named_sitemaps.py", "enters the sitemaps that robots.txt names"),
    Step(Role.WORKER, "begin", "services/worker/gate.py", "passes the gate: domain idle, delay over, budget reserved"),
    Step(Role.WORKER, "download", "services/worker/requests.py", "asks the checked address, under deadline and cap"),
    Step(Role.WORKER, "read", "services/worker/read.py", "decodes the body, guards the parser, parses once"),
    Step(Role.WORKER, "judge", "services/worker/judge.py", "asks whether such a page is stored already"),
    Step(Role.WORKER, "store", "services/worker/store.py", "writes the page into a segment, with others"),
    Step(Role.WORKER, "visit", "services/worker/visit.py", "runs the modules, in order"),
    Step(Role.WORKER, "links", "services/worker/links.py", "resolves and filters the links"),
    Step(Role.WORKER, "finish", "services/worker/finish.py", "closes the page and adds its links, in one step"),
    Step(Role.WORKER, "announce", "services/worker/finish.py", "publishes a hint for the links that are new"),
)

STEPS: Final = {step.title: step for step in WALK}


class Edge(StrEnum):
    BEFORE = "before"
    AFTER = "after"


#: Every place at which a test may make a process die, in the walk's order: `worker.judge:after`, …
CRASH_POINTS: Final = tuple(f"{step.title}:{edge}" for step in WALK for edge in Edge)
