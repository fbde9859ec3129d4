"""How steps are measured: CPU time of the whole process, our way and the floor's by turns, medians of several rounds."""

import gc
import statistics
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass

from bench.external import cpu_s


class Watch:
    """CPU seconds by name, of everything that runs meanwhile, other threads included."""

    def __init__(self) -> None:
        self.spent_s: dict[str, float] = {}

    @contextmanager
    def __call__(self, name: str) -> Iterator[None]:
        began_s = time.process_time()
        try:
            yield
        finally:
            self.spent_s[name] = self.spent_s.get(name, 0.0) + time.process_time() - began_s


#: What is measured, once all that it needs has been made.
Run = Callable[[Watch], Awaitable[object]]
Side = Callable[[], AbstractAsyncContextManager[Run]]


@dataclass(frozen=True, slots=True)
class Step:
    """Our way and the floor's. Each names what it measures, which may be several things."""

    ours: Side
    floor: Side
    library: Mapping[str, str]  #: by what is measured: what the floor is made of; `-` if it has none, as nothing need be done


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU milliseconds a page."""

    ms: float
    floor_ms: float
    library: str


@dataclass(frozen=True, slots=True)
class Measured:
    costs: Mapping[str, Cost]
    servers_ms: Mapping[str, Mapping[str, float]]  #: by step, then by server: what our way costs it a page


async def measured(todo: Sequence[Step], pages: int, rounds: int, servers: Mapping[str, int] = {}) -> Measured:
    """`servers`: processes. Ours and the floor by turns, so that a noisy minute falls on both."""
    ours: dict[str, list[float]] = {}
    theirs: dict[str, list[float]] = {}
    served: dict[str, dict[str, float]] = {}
    for _ in range(rounds):
        for step in todo:
            spent_s, by_server_s = await _one(step.ours, servers)
            _note(spent_s, pages, ours)
            of_step = served.setdefault(", ".join(step.library), dict.fromkeys(servers, 0.0))
            for name, seconds in by_server_s.items():
                # The mean of all rounds: the kernel counts in hundredths of a second.
                of_step[name] += seconds * 1000 / pages / rounds
            _note((await _one(step.floor, {}))[0], pages, theirs)
    libraries = {name: library for step in todo for name, library in step.library.items()}
    costs = {
        name: Cost(statistics.median(ours.get(name, [0.0])), statistics.median(theirs.get(name, [0.0])), library)
        for name, library in libraries.items()
    }
    return Measured(costs, served)


async def _one(side: Side, servers: Mapping[str, int]) -> tuple[dict[str, float], dict[str, float]]:
    """CPU seconds, by what is measured and by server."""
    watch = Watch()
    async with side() as run:
        gc.collect()
        before = {name: cpu_s(pid) for name, pid in servers.items()}
        await run(watch)
        served = {name: cpu_s(pid) - before[name] for name, pid in servers.items()}
    return watch.spent_s, served


def _note(spent_s: Mapping[str, float], pages: int, into: dict[str, list[float]]) -> None:
    for name, seconds in spent_s.items():
        into.setdefault(name, []).append(seconds * 1000 / pages)


def whole(costs: Mapping[str, Cost]) -> Cost:
    return Cost(sum(cost.ms for cost in costs.values()), sum(cost.floor_ms for cost in costs.values()), "")


def table(measured: Measured) -> str:
    costs = measured.costs
    lines = ["| step | ours ms/page | floor ms/page | ratio | the floor's library |", "|---|--:|--:|--:|---|"]
    for name, cost in [*costs.items(), ("**sum**", whole(costs))]:
        ratio = f"{cost.ms / cost.floor_ms:.2f}" if cost.floor_ms else ""
        lines.append(f"| {name} | {cost.ms:.3f} | {cost.floor_ms:.3f} | {ratio} | {cost.library} |")
    served = [
        f"{step}: the servers' own " + ", ".join(f"{server} {ms:.3f}" for server, ms in spent.items())
        for step, spent in measured.servers_ms.items()
        if spent
    ]
    return "\n".join([*lines, "", *served] if served else lines)


def figures(measured: Measured) -> dict[str, object]:
    """For programs."""
    costs, servers_ms = measured.costs, {step: spent for step, spent in measured.servers_ms.items() if spent}
    return {
        "steps": {name: {"ms": round(cost.ms, 4), "floor_ms": round(cost.floor_ms, 4)} for name, cost in costs.items()},
        "sum_ms": round(whole(costs).ms, 4),
        "floor_sum_ms": round(whole(costs).floor_ms, 4),
        **({"servers_ms": servers_ms} if servers_ms else {}),
    }
