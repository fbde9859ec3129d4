"""What came of a storm: what was done, what was lost, and whether that is as it should be."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from tests.chaos.comparison import Difference, Kind
from tests.chaos.storm.deck import Deed, Fault, Victim
from tests.chaos.storm.manners import Manners

LOST: Final = frozenset({Kind.LOST, Kind.LINK_LOST, Kind.LINE, Kind.MISSING_BLOB, Kind.OUTSTANDING})
SHOWN: Final = 20
HEAD: Final = (
    "seed",
    "seconds",
    "pages",
    "`kill -9`: worker, frontier, controller, all roles, RabbitMQ, Redis, S3",
    "broker wiped",
    "frozen: workers, others",
    "cut, silenced",
    "S3 500, 507",
    "came, went",
    "lost",
    "doubled",
    "impolite",
    "late, by a frozen worker",
    "over budget",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    seed: int
    seconds: float  #: from the storm's first moment to the crawl's end
    pages: int
    done: Counter[Fault]
    undealt: int = 0  #: faults that were left when the crawl was complete
    differences: Sequence[Difference] = ()  #: to the undisturbed crawl, but for manners
    manners: Manners = field(default_factory=Manners)
    over_budget: int = 0  #: pages
    repeated: int = 0  #: requests that were made again
    flaws: Sequence[str] = ()  #: what else must not be
    stuck: Sequence[str] = ()  #: what is open, and with whom, if the crawl did not end

    @property
    def lost(self) -> int:
        return sum(each.kind in LOST for each in self.differences)

    @property
    def doubled(self) -> int:
        return sum(each.kind is Kind.DOUBLED for each in self.differences)

    @property
    def is_fine(self) -> bool:
        return not (self.differences or self.manners.breaches or self.over_budget or self.flaws or self.stuck)


def lines(result: Result, delay_s: float) -> Iterator[str]:
    """For people."""
    yield f"seed {result.seed}: {result.pages} pages in {result.seconds:.0f} s"
    for fault, times in sorted(result.done.items(), key=lambda each: str(each[0])):
        yield f"  {times:3} × {fault}"
    if result.undealt:
        yield f"  {result.undealt} faults were left when the crawl was complete"
    if result.stuck:
        yield "it did not end, so nothing could be compared"
    else:
        yield from _compared(result, delay_s)
    yield f"over budget               {result.over_budget}"
    yield from _some("wrong", result.flaws)
    yield from (f"stuck: {each}" for each in result.stuck)
    yield "nothing was lost" if result.is_fine else "FAILED"


def _compared(result: Result, delay_s: float) -> Iterator[str]:
    manners = result.manners
    yield f"lost                      {result.lost}"
    yield f"doubled                   {result.doubled}"
    yield f"impolite                  {len(manners.breaches)}"
    yield f"late, by a frozen worker  {len(manners.frozen)}"
    yield f"otherwise different       {len(result.differences) - result.lost - result.doubled}"
    yield f"requests made again       {result.repeated}"
    yield f"least gap at a host       {manners.least_gap_s:.3f} s of {delay_s:g}; {manners.short} gaps a little short of it"
    yield from _some("differs from the undisturbed crawl", list(map(str, result.differences)))
    yield from _some("impolite", list(map(str, manners.breaches)))
    yield from _some("late, by a frozen worker", list(map(str, manners.frozen)))


def _some(what: str, found: Sequence[str]) -> Iterator[str]:
    yield from (f"{what}: {each}" for each in found[:SHOWN])
    if len(found) > SHOWN:
        yield f"{what}: and {len(found) - SHOWN} more"


def table(results: Sequence[Result]) -> Iterator[str]:
    """For the docs, in Markdown."""
    yield _row(HEAD)
    yield _row(["---"] * len(HEAD))
    yield from (_row(_cells(result)) for result in results)


def _cells(result: Result) -> Iterator[str]:
    def times(deed: Deed, *victims: Victim) -> str:
        return str(sum(count for fault, count in result.done.items() if fault.deed is deed and fault.victim in victims))

    others = [victim for victim in Victim if victim is not Victim.WORKER]
    yield str(result.seed)
    yield f"{result.seconds:.0f}"
    yield str(result.pages)
    yield ", ".join(times(Deed.KILL, victim) for victim in Victim)
    yield times(Deed.WIPE, Victim.RABBITMQ)
    yield f"{times(Deed.FREEZE, Victim.WORKER)}, {times(Deed.FREEZE, *others)}"
    yield f"{times(Deed.CUT, *Victim)}, {times(Deed.SILENCE, *Victim)}"
    yield f"{times(Deed.FAIL, Victim.S3)}, {times(Deed.FILL, Victim.S3)}"
    yield f"{times(Deed.ADD, *Victim)}, {times(Deed.REMOVE, *Victim)}"
    compared = (result.lost, result.doubled, len(result.manners.breaches), len(result.manners.frozen))
    yield from ("unknown" if result.stuck else str(each) for each in compared)
    yield str(result.over_budget)


def _row(cells: Sequence[str] | Iterator[str]) -> str:
    return f"| {' | '.join(cells)} |"
