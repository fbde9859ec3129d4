"""The search: every state that a world can reach, breadth first, so that a counterexample is as short as can be.

Must not know: what the states are about.
"""

from __future__ import annotations

import time
from array import array
from typing import NamedTuple

from tests.model.invariants import broken, changed_a_closed_one, ended
from tests.model.processes import start, steps
from tests.model.state import NONE, Ledger, Queues, State, Worker, World


class Report(NamedTuple):
    states: int
    steps: int
    breach: str  # empty: everything held
    trace: list[str]
    seconds: float
    cut: bool = False  # the limit was reached: safety was checked that far, liveness was not


def explore(world: World, limit: int = 3_000_000) -> Report:
    """Visits every state and checks all that must hold, then that from each of them the end can be reached."""
    began = time.perf_counter()
    first = start(world)
    index: dict[State, int] = {first: 0}
    states: list[State] = [first]
    parent, ordinal = array("l", [NONE]), array("l", [NONE])
    # The steps without a fault: those of state n are targets[heads[n]:heads[n + 1]].
    heads, targets = array("l", [0]), array("l")
    ledgers: dict[Ledger, Ledger] = {}
    queues: dict[Queues, Queues] = {}
    workers: dict[tuple[Worker, ...], tuple[Worker, ...]] = {}
    count = 0

    def report(breach: str, at: int = NONE, last: str = "", cut: bool = False) -> Report:
        trace = [last] if last else []
        while at > 0:
            trace.append(list(steps(world, states[parent[at]]))[ordinal[at]].label)
            at = parent[at]
        return Report(len(states), count, breach, trace[::-1], time.perf_counter() - began, cut)

    at = 0
    while at < len(states):
        state = states[at]
        if not ended(world, state):
            for nth, step in enumerate(steps(world, state)):
                count += 1
                breach = step.breach or changed_a_closed_one(state.ledger, step.after.ledger)
                if breach:
                    return report(breach, at, step.label)
                known = index.get(step.after)
                if known is None:
                    known = len(states)
                    after = step.after._replace(  # most states differ in one part: the others are kept once
                        ledger=ledgers.setdefault(step.after.ledger, step.after.ledger),
                        queues=queues.setdefault(step.after.queues, step.after.queues),
                        workers=workers.setdefault(step.after.workers, step.after.workers),
                    )
                    index[after] = known
                    states.append(after)
                    parent.append(at)
                    ordinal.append(nth)
                    breach = broken(world, after)
                    if breach:
                        return report(breach, known)
                if not step.fault and known != at:
                    targets.append(known)
        heads.append(len(targets))
        at += 1
        if len(states) > limit:
            return report("", cut=True)
    ends = bytearray(ended(world, state) for state in states)
    doomed = first_without_end(ends, heads, targets)
    if doomed == NONE:
        return report("")
    dead = heads[doomed] == heads[doomed + 1]
    return report("I1/I7 nothing can happen any more" if dead else "I1/I7 from here no path leads to the end", doomed)


def first_without_end(ends: bytearray, heads: array[int], targets: array[int]) -> int:
    """Backwards from the end states over steps without a fault: the first state that isn't met, or NONE."""
    total = len(ends)
    starts = array("l", bytes(array("l").itemsize * (total + 1)))
    for target in targets:
        starts[target + 1] += 1
    for n in range(total):
        starts[n + 1] += starts[n]
    sources, fill = array("l", bytes(array("l").itemsize * len(targets))), array("l", starts)
    for source in range(total):
        for target in targets[heads[source] : heads[source + 1]]:
            sources[fill[target]] = source
            fill[target] += 1
    met = bytearray(ends)
    todo = [n for n in range(total) if met[n]]
    while todo:
        target = todo.pop()
        for source in sources[starts[target] : starts[target + 1]]:
            if not met[source]:
                met[source] = 1
                todo.append(source)
    return met.find(0)
