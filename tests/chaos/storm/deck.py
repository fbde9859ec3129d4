"""What may happen, and when: a deck of faults, shuffled and dealt to its end, so that even a short storm has one of each.

Must not know: how a fault is done, or to which process.
"""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Final


class Deed(StrEnum):
    KILL = "kill -9"  #: servers are started again after a moment; roles and the controller by whoever keeps them
    WIPE = "kill -9 and wipe"  #: all that it kept is gone
    FREEZE = "freeze"  #: SIGSTOP past the lease, then SIGCONT
    CUT = "cut"  #: its connections, all at once
    SILENCE = "silence"  #: nothing passes for longer than a lease, and nothing is closed
    FAIL = "answer 500"  #: to everything, for a while
    FILL = "answer 507"  #: likewise: it has no room
    ADD = "add"  #: one more, as an operator would start it
    REMOVE = "remove"  #: SIGTERM


class Victim(StrEnum):
    WORKER = "worker"
    FRONTIER = "frontier"
    CONTROLLER = "controller"
    MACHINE = "all roles"  #: the controller, its frontier and every worker, in one moment
    RABBITMQ = "RabbitMQ"
    REDIS = "Redis"
    S3 = "S3"


ROLES: Final = (Victim.WORKER, Victim.FRONTIER)
SERVERS: Final = (Victim.RABBITMQ, Victim.REDIS, Victim.S3)


@dataclass(frozen=True, slots=True)
class Fault:
    deed: Deed
    victim: Victim

    def __str__(self) -> str:
        return f"{self.deed} {self.victim}"


@dataclass(frozen=True, slots=True)
class Dealt:
    at_s: float  #: since the storm began
    fault: Fault


DECK: Final = (
    *(Fault(Deed.KILL, victim) for victim in Victim),
    *(Fault(Deed.FREEZE, victim) for victim in Victim if victim is not Victim.MACHINE),
    Fault(Deed.FREEZE, Victim.WORKER),  # a second time: zombies are what is hardest to get right
    *(Fault(deed, server) for deed in (Deed.CUT, Deed.SILENCE) for server in SERVERS),
    *(Fault(deed, Victim.S3) for deed in (Deed.FAIL, Deed.FILL)),
    *(Fault(deed, role) for deed in (Deed.ADD, Deed.REMOVE) for role in ROLES),
)
#: In the first deal only.
ONCE: Final = Fault(Deed.WIPE, Victim.RABBITMQ)
#: A crawl needs some time between two faults, or it would get nowhere; a short storm has less of it.
GAP_S: Final = 5.0


def deal(draw: random.Random, duration_s: float) -> list[Dealt]:
    """The faults of a storm that lasts so long, in the order in which they come."""
    rounds = max(1, int(duration_s / GAP_S / len(DECK)))
    faults = [fault for number in range(rounds) for fault in _shuffled(draw, first=number == 0)]
    gaps = [draw.uniform(0.3, 1.7) for _ in range(len(faults) + 1)]  # the last one is the calm before the end
    return list(_timed(faults, gaps, duration_s))


def _shuffled(draw: random.Random, *, first: bool) -> list[Fault]:
    cards = [*DECK, ONCE] if first else [*DECK]
    draw.shuffle(cards)
    return cards


def _timed(faults: list[Fault], gaps: list[float], duration_s: float) -> Iterator[Dealt]:
    at, whole = 0.0, sum(gaps)
    for fault, gap in zip(faults, gaps, strict=False):
        at += gap / whole * duration_s
        yield Dealt(at, fault)
