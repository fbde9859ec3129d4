"""One storm: a synthetic web, servers, a crawl, faults while it goes, and the comparison when it has ended.

The web is asked politely, so that the crawl lasts about as long as the storm; the undisturbed crawl of the same web, which says
what must come of it, is made without a delay, before.
"""

import asyncio
import json
import random
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from gossamer.urls import identity
from tests.chaos.comparison import Left, differences, left_by_embedded, left_by_external
from tests.chaos.storm.attendant import Attendant
from tests.chaos.storm.deck import Dealt, Victim, deal
from tests.chaos.storm.faults import Faults
from tests.chaos.storm.looking import counts, shown, standing
from tests.chaos.storm.manners import Request, judge
from tests.chaos.storm.relay import Relay
from tests.chaos.storm.report import Result
from tests.servers import Server
from tests.system.stack import Stack, running_stack
from tests.system.web import PATIENCE_S, Web, start, synthetic_web

SITES: Final = 12
DELAY_S: Final = 1.0
LATENCY_MS: Final = 50
LEASE_S: Final = 3.0
WORKERS: Final = 3
#: A second's work in calm weather: redirects, dead links and robots.txt take some of the requests.
PAGES_A_SECOND: Final = SITES / DELAY_S * 0.9
#: So much of it a fault costs; measured.
FAULT_S: Final = 1.5
#: From the time that the storm lasts until all has ended, what comes before it and the comparison included.
CALM_S: Final = 360.0
LOOK_EVERY_S: Final = 3.0

#: What both crawls are told. A crawl gives up a page with which workers died, a URL that was put off too often and a host that
#: failed too often; in a storm that is nobody's fault but ours, so none of these counters may ever be full. Near-duplicates are
#: off, since which of two is kept is up to the order.
COMMON: Final = (
    *("--state", "state", "--module", "jsonl:path=pages.jsonl", "--allow-net", "127.0.0.0/8"),
    *("--max-bytes", "100GB", "--similarity", "off"),
    *("--poison-deaths", "0", "--max-deferrals", "1000000", "--domain-failures", "1000000", "--domain-rests", "1000000"),
)
#: Queues are small, so that they are full, and domains change hands often.
STORMY: Final = (
    *("--engine", "external", "--workers", str(WORKERS), "--delay", str(DELAY_S)),
    *("--lease", f"{LEASE_S}s", "--owner", "2s", "--queue-size", "50"),
)

Say = Callable[[str], None]


def storm(seed: int, duration_s: float, folder: Path, say: Say) -> Result:
    """Whatever happens, it has ended `CALM_S` after the time that the storm lasts."""
    give_up_at = time.monotonic() + duration_s + CALM_S - _comparison_s(duration_s)
    plan = deal(random.Random(seed), duration_s)
    pages = int(max(duration_s / 3, duration_s - FAULT_S * len(plan)) * PAGES_A_SECOND)
    words = ("--sites", str(SITES), "--pages", str(pages), "--seed", str(seed), "--latency-ms", str(LATENCY_MS))
    with running_stack() as stack, synthetic_web(folder, *words) as web:
        expected = _undisturbed(folder / "undisturbed", web, give_up_at - time.monotonic())
        say(f"undisturbed: {len(expected.urls)} URLs, {len(expected.pages)} of them pages")
        web.reset()
        (folder / "storm").mkdir()
        return asyncio.run(Storm(seed, plan, folder / "storm", stack, web, expected, give_up_at, say).run())


def _comparison_s(duration_s: float) -> float:
    """What it may take, on a busy machine: every page is read."""
    return 20 + duration_s / 10


def _undisturbed(folder: Path, web: Web, patience_s: float) -> Left:
    folder.mkdir()
    process = start(folder, "--seed", web.seeds[0], "--delay", "0", "--max-pages", "1000000", *COMMON)
    try:
        said, _ = process.communicate(timeout=patience_s)
    finally:
        process.kill()
    assert process.returncode == 0, said
    return left_by_embedded(folder, web)


class Storm:
    """Over one crawl, which has to be complete by `give_up_at`."""

    def __init__(
        self, seed: int, plan: Sequence[Dealt], folder: Path, stack: Stack, web: Web, expected: Left, give_up_at: float, say: Say
    ) -> None:
        self._seed, self._plan, self._folder, self._stack, self._web = seed, plan, folder, stack, web
        self._expected, self._give_up_at, self._say = expected, give_up_at, say
        self._over_budget = 0  # at its worst

    async def run(self) -> Result:
        stack, draw = self._stack, random.Random(self._seed)
        servers: dict[Victim, Server] = {Victim.RABBITMQ: stack.rabbitmq, Victim.REDIS: stack.redis, Victim.S3: stack.s3}
        async with AsyncExitStack() as opened:
            relays = {victim: await opened.enter_async_context(Relay(server.url)) for victim, server in servers.items()}
            environ = {
                **stack.environ,
                "GOSSAMER_RABBITMQ_URL": relays[Victim.RABBITMQ].url,
                "GOSSAMER_REDIS_URL": relays[Victim.REDIS].url,
                "GOSSAMER_S3_URL": relays[Victim.S3].url,
            }
            pages = len(self._expected.pages)
            words = ("--seed", self._web.seeds[0], *STORMY, *COMMON)
            attendant = Attendant(self._folder, words, environ, (pages // 4, 10 * pages), self._say)
            faults = Faults(attendant, servers, relays, self._folder, environ, draw, self._say, lease_s=LEASE_S)
            keeping, looking = asyncio.create_task(attendant.keep()), asyncio.create_task(self._look(attendant))
            try:
                await self._until_it_goes(attendant, keeping)
                return await self._weather(faults, attendant, keeping)
            finally:
                for task in (keeping, looking):
                    task.cancel()
                await asyncio.wait((keeping, looking))
                faults.kill_everyone()
                await asyncio.to_thread(faults.end)

    async def _until_it_goes(self, attendant: Attendant, keeping: "asyncio.Task[None]") -> None:
        """Until the first page is stored: before that there is nothing to lose, and perhaps no crawl to resume."""
        while not attendant.has_begun or not (seen := await counts(self._stack.redis.url, attendant.crawl)) or not seen.stored:
            assert not attendant.resumes, "the controller ended before there was a page"
            assert not keeping.done(), keeping
            assert time.monotonic() < self._give_up_at, "the crawl did not begin"
            await asyncio.sleep(0.2)

    async def _weather(self, faults: Faults, attendant: Attendant, keeping: "asyncio.Task[None]") -> Result:
        began, dealt = time.monotonic(), 0
        self._say(f"the storm begins: {len(self._plan)} faults")
        async with asyncio.TaskGroup() as tasks:
            for each in self._plan:
                await asyncio.wait((keeping,), timeout=max(0.0, began + each.at_s - time.monotonic()))
                if keeping.done():
                    break
                tasks.create_task(faults.do(each.fault))
                dealt += 1
        self._say("the storm is over, and all is well again")
        await asyncio.wait((keeping,), timeout=max(0.0, self._give_up_at - time.monotonic()))
        result = Result(
            seed=self._seed,
            seconds=time.monotonic() - began,
            pages=len(self._expected.pages),
            done=faults.done,
            undealt=len(self._plan) - dealt,
            over_budget=max([self._over_budget, *(stored - budget for budget, stored in attendant.met)]),
            flaws=[*attendant.flaws, *_missed_budgets(attendant)],
        )
        if not keeping.done():
            return replace(result, stuck=await standing(self._stack.redis.url, attendant.crawl))
        keeping.result()
        await asyncio.to_thread(faults.end)
        return await asyncio.to_thread(self._compared, result, faults)

    def _compared(self, result: Result, faults: Faults) -> Result:
        left, requests = left_by_external(self._stack, self._folder, self._web), list(_requests(self._web))
        # Manners are judged apart, and how much was in hand at so many deaths nobody knows. Queues are made anew by a frontier that
        # an operator started, if they are removed before it sees that the crawl has ended; they go by themselves.
        outstanding = [each for each in left.outstanding if not each.startswith("queue ")]
        kindly = replace(left, outstanding=outstanding, web=replace(left.web, least_gap_s={}, most_in_flight={}))
        asked = self._expected.web.asked
        return replace(
            result,
            differences=differences(self._expected, kindly, delay_s=DELAY_S, may_repeat=len(requests)),
            manners=judge(requests, faults.slept, DELAY_S),
            repeated=sum(max(0, times - asked.get(url, 0)) for url, times in left.web.asked.items()),
        )

    async def _look(self, attendant: Attendant) -> None:
        """For ever: tells how the crawl stands, and sees whether it has more pages than it may."""
        while True:
            await asyncio.sleep(LOOK_EVERY_S)
            if attendant.has_begun:
                seen = await counts(self._stack.redis.url, attendant.crawl)
                # The budget as it is after the look: it is only ever raised.
                self._over_budget = max(self._over_budget, seen.stored - attendant.budget if seen else 0)
                self._say(shown(seen) if seen else "the ledger is away")


def _missed_budgets(attendant: Attendant) -> Iterator[str]:
    """A crawl that has more to do ends with exactly as many pages as it may have."""
    for budget, stored in attendant.met:
        if stored < budget:
            yield f"a budget of {budget} pages was met with {stored}"
    if not attendant.met:
        yield "no budget was met"


def _requests(web: Web) -> Iterator[Request]:
    hosts, port = [site["host"] for site in web.score()["sites"]], urlsplit(web.seeds[0]).port
    with urllib.request.urlopen(f"{web.control}/-/log", timeout=PATIENCE_S) as answer:
        for start, end, _, site, target, *_ in json.load(answer):
            if site >= 0:
                yield Request(start, end, hosts[site], identity(f"http://{hosts[site]}:{port}{target}"))
