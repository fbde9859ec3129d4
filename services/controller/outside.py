"""What the controller works with besides values: streams, time, chance, an engine. Handed in, so that a test can be the world."""

from collections.abc import Callable, Mapping
from typing import TextIO

import msgspec

from gossamer.clock import Clock
from gossamer.ports.blobs import Blobs
from gossamer.ports.broker import Broker
from gossamer.ports.ledger import Ledger
from gossamer.settings import Engine, Storage
from services.controller.crawls import Place
from services.controller.engines import Maker


class Outside(msgspec.Struct, frozen=True, kw_only=True):
    stdout: TextIO  #: for results
    stderr: TextIO  #: for people, and logs
    environ: Mapping[str, str]
    clock: Clock
    token: Callable[[], str]  #: a few random letters and digits, which tell apart what happened in the same second
    maker: Callable[[Engine], Maker]  #: only called for a run: an engine brings all services along
    open_ledger: Callable[[Place, Clock], Ledger]  #: of this crawl, beside whoever runs it
    open_blobs: Callable[[Place, Storage, Clock], Blobs]  #: likewise
    open_broker: Callable[[Place], Broker | None]  #: likewise; None: it has none beside the process that runs it
