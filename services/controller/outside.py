"""What the controller works with besides values: streams, time, chance, an engine. Handed in, so that a test can be the world."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from gossamer.clock import Clock
from gossamer.ports.ledger import Ledger
from services.controller.engines import Maker


@dataclass(frozen=True, slots=True, kw_only=True)
class Outside:
    stdout: TextIO  #: for results
    stderr: TextIO  #: for people, and logs
    clock: Clock
    token: Callable[[], str]  #: a few random letters and digits, which tell apart what happened in the same second
    maker: Callable[[], Maker]  #: only called for a run: an engine brings all services along
    open_ledger: Callable[[Path, Clock], Ledger]  #: of the crawl in this folder, beside whoever runs it
