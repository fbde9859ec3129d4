"""How each fault is done, to whom, and undone again. Every one is bounded: when the last has returned, all is well.

Must not know: when a fault comes, or what it did to the crawl.
"""

import asyncio
import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from gossamer.errors import GossamerError
from gossamer.ports.ledger import Ledger
from gossamer.records import UrlRecord
from gossamer.states import State
from gossamer.urls import identity, origin_of
from tests.chaos.storm.attendant import Attendant
from tests.chaos.storm.deck import ROLES, Deed, Fault, Victim
from tests.chaos.storm.looking import ledger_of
from tests.chaos.storm.manners import Frozen
from tests.chaos.storm.processes import roles, send
from tests.chaos.storm.relay import Relay
from tests.servers import Server, ServerFailed
from tests.system.web import ROOT

#: A server that was killed is away for so long, and then as long as its start takes.
AWAY_S: Final = (0.2, 2.0)
#: What is to outlast the lease does it by so much.
PAST_S: Final = (0.5, 2.0)
STARTS: Final = 3
#: How long a victim is waited for: a controller does not start while a server is away, so there may be none for a while.
FIND_S: Final = 40.0
END_S: Final = 30.0
STATUS: Final = {Deed.FAIL: 500, Deed.FILL: 507}
OPEN_MAX: Final = 100_000


class Faults:
    """Over one crawl."""

    def __init__(
        self,
        attendant: Attendant,
        servers: Mapping[Victim, Server],
        relays: Mapping[Victim, Relay],
        folder: Path,
        environ: Mapping[str, str],
        draw: random.Random,
        say: Callable[[str], None],
        *,
        lease_s: float,
    ) -> None:
        """`environ`: what a role has to know."""
        self._attendant, self._servers, self._relays = attendant, servers, relays
        self._folder, self._environ, self._draw, self._say, self._lease_s = folder, environ, draw, say, lease_s
        # One at a time for each server: one that is being started can't be frozen.
        self._turns = {victim: asyncio.Lock() for victim in servers}
        self._added: list[subprocess.Popen[bytes]] = []
        self._asleep: set[int] = set()
        self.slept: list[Frozen] = []  #: the workers that were frozen
        self.done: Counter[Fault] = Counter()

    async def do(self, fault: Fault) -> None:
        """Returns when it is over."""
        if fault.victim in self._servers:
            async with self._turns[fault.victim]:
                await self._to_server(fault, self._servers[fault.victim], self._relays[fault.victim])
        elif fault.deed is Deed.ADD:
            self._add(fault)
        elif fault.victim is Victim.MACHINE:
            self._note(fault)
            self.kill_everyone()
        else:
            await self._to_process(fault)

    def kill_everyone(self) -> None:
        """The controller and all roles of the crawl, whoever started them, frozen or not."""
        self._attendant.kill()
        for role in ROLES if self._attendant.has_begun else ():
            for pid in roles(self._attendant.crawl, role):
                send(pid, signal.SIGKILL)

    def end(self) -> None:
        """Ends the roles that were added here, as an operator does once the crawl is over."""
        for process in self._added:
            process.terminate()
        for process in self._added:
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    # --- Servers ---

    async def _to_server(self, fault: Fault, server: Server, relay: Relay) -> None:
        away_s, past_s = self._draw.uniform(*AWAY_S), self._past_s()
        match fault.deed:
            case Deed.KILL | Deed.WIPE:
                self._note(fault, f"for {away_s:.1f} s")
                await asyncio.to_thread(server.kill)
                if fault.deed is Deed.WIPE:
                    server.wipe()
                await asyncio.sleep(away_s)
                await asyncio.to_thread(_start, server)
                self._say(f"{fault.victim} is there again")
            case Deed.FREEZE:
                self._note(fault, f"for {past_s:.1f} s")
                with _stopped(server.pid):
                    await asyncio.sleep(past_s)
            case Deed.CUT:
                self._note(fault)
                relay.cut()
            case Deed.SILENCE:
                is_late = self._draw.random() < 0.5
                self._note(fault, f"for {past_s:.1f} s, then {'what was held is passed on' if is_late else 'all is cut'}")
                relay.silence()
                await asyncio.sleep(past_s)
                if not is_late:
                    relay.cut()
                relay.speak()
            case Deed.FAIL | Deed.FILL:
                self._note(fault, f"for {past_s:.1f} s")
                relay.refuse(STATUS[fault.deed])
                await asyncio.sleep(past_s)
                relay.refuse(None)
            case _:
                raise AssertionError(f"nobody knows how to {fault}")

    # --- Roles and the controller ---

    async def _to_process(self, fault: Fault) -> None:
        pid = await self._one(fault.victim)
        if pid is None:
            self._say(f"nobody was there: {fault}")
        elif fault.deed is Deed.FREEZE:
            await self._freeze(fault, pid)
        else:
            self._note(fault, f"process {pid}")
            send(pid, signal.SIGKILL if fault.deed is Deed.KILL else signal.SIGTERM)

    async def _one(self, victim: Victim) -> int | None:
        """One of them, awake, as soon as there is one."""
        give_up_at = time.monotonic() + FIND_S
        while time.monotonic() < give_up_at:
            if victim is Victim.CONTROLLER:
                found = [self._attendant.pid] if self._attendant.pid is not None else []
            else:
                found = roles(self._attendant.crawl, victim)
            if awake := [pid for pid in found if pid not in self._asleep]:
                return self._draw.choice(awake)
            await asyncio.sleep(0.1)
        return None

    async def _freeze(self, fault: Fault, pid: int) -> None:
        past_s = self._past_s()
        self._note(fault, f"process {pid}, for {past_s:.1f} s")
        wakes_at = time.monotonic() + past_s
        self._asleep.add(pid)
        with _stopped(pid):
            allowed = await self._allowed(pid, wakes_at) if fault.victim is Victim.WORKER else None
            await asyncio.sleep(max(0.0, wakes_at - time.monotonic()))
            if allowed is not None:
                self.slept.append(Frozen(time.monotonic(), allowed))
        self._asleep.discard(pid)
        self._say(f"{fault.victim} {pid} wakes")

    async def _allowed(self, pid: int, until: float) -> frozenset[str]:
        """What this worker may have been about to ask for, by the ledger's word; nothing if that is away all the time."""
        while time.monotonic() < until:
            try:
                async with ledger_of(self._servers[Victim.REDIS].url, self._attendant.crawl) as ledger:
                    seats = {each.id for each in await ledger.workers() if each.process.split()[1] == str(pid)}
                    held = [each for each in await ledger.unfinished(OPEN_MAX) if each.worker in seats]
                    return frozenset([url for record in held if (url := await _asked(ledger, record)) is not None])
            except (GossamerError, TimeoutError):
                await asyncio.sleep(0.1)
        return frozenset()

    def _add(self, fault: Fault) -> None:
        # Tied to us, so that it does not outlive a storm that is itself killed.
        words = [sys.executable, "-m", f"services.{fault.victim}", "--crawl", self._attendant.crawl, "--tied"]
        with (self._folder / f"added-{fault.victim}.log").open("ab") as log:
            environ = {**os.environ, **self._environ, "PYTHONPATH": str(ROOT)}
            process = subprocess.Popen(
                words, cwd=self._folder, env=environ, stdin=subprocess.PIPE, stdout=log, stderr=log, start_new_session=True
            )
        self._added.append(process)
        self._note(fault, f"process {process.pid}")

    def _past_s(self) -> float:
        return self._lease_s + self._draw.uniform(*PAST_S)

    def _note(self, fault: Fault, how: str = "") -> None:
        self.done[fault] += 1
        self._say(f"{fault}{', ' if how else ''}{how}")


async def _asked(ledger: Ledger, record: UrlRecord) -> str | None:
    """The request that passed the gate for this URL: its own, or that for the robots.txt that comes before it."""
    if record.state is State.FETCHING:
        return identity(record.url.url)
    domain = await ledger.domain(record.url.domain)
    is_busy = domain is not None and domain.busy == record.url.id
    return identity(f"{origin_of(record.url.url)}/robots.txt") if is_busy else None


@contextmanager
def _stopped(pid: int) -> Iterator[None]:
    send(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        send(pid, signal.SIGCONT)


def _start(server: Server) -> None:
    """A node that was killed may be refused its name for a moment: so it is tried again, as an operator would."""
    for attempt in range(1, STARTS + 1):
        try:
            server.start()
        except ServerFailed:
            server.kill()
            if attempt == STARTS:
                raise
        else:
            return
