"""Permission: robots.txt of the origin is known, and says whether this URL may be asked for (step 6).

It is fetched once for all workers, through the same gate as any request, and kept in the ledger. While it can't be had nothing of
the origin is asked for: the domain waits, longer each time, and after the last wait its URLs are closed with that reason. A name
that does not exist, or an address that is refused, is final at once.
Must not know: how robots.txt is read (robotstxt.py), how a request is made.
"""

from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import msgspec

from gossamer.answers import Dropped, Go, Wait
from gossamer.clock import Clock
from gossamer.crash import step
from gossamer.errors import UrlError
from gossamer.messages import Url
from gossamer.outcomes import Outcome
from gossamer.ports.ledger import Ledger
from gossamer.records import Robots, Visit
from gossamer.urls import host_of, origin_of, requested
from services.worker import robotstxt
from services.worker.addresses import Network, url_refusal
from services.worker.decode import Decoded, decode
from services.worker.download import Answer, Trouble
from services.worker.gate import Gate
from services.worker.meaning import IsRedirect, meaning
from services.worker.requests import ROBOTS_BYTES, Requests
from services.worker.robotstxt import ALLOW_ALL, Rules, denial, read_rules, text_of

KEPT_S: Final = 24 * 3600.0
#: A verdict that stands in for a robots.txt that could not be had: not kept as long, since servers recover.
VERDICT_KEPT_S: Final = 3600.0
ORIGINS_KEPT: Final = 2_000
HOPS_MAX: Final = 5
#: Of a robots.txt that came compressed; what came plain was cut before.
DECODED_BYTES_MAX: Final = 4 * ROBOTS_BYTES
#: How long an origin whose robots.txt can't be had is left alone, each time, in first waits.
WAITS: Final = (1, 6, 30)
#: The verdict for an origin that has no robots.txt: everything is allowed.
NONE_THERE: Final = "none"


@dataclass(frozen=True, slots=True)
class Denied:
    outcome: Outcome
    reason: str


Known = Rules | Denied


class Permission:
    def __init__(
        self,
        ledger: Ledger,
        gate: Gate,
        requests: Requests,
        clock: Clock,
        allowed_nets: Sequence[Network],
        *,
        max_crawl_delay_s: float,
        robots_wait_s: float,
    ) -> None:
        self._ledger, self._gate, self._requests, self._clock = ledger, gate, requests, clock
        self._allowed_nets, self._max_crawl_delay_s = allowed_nets, max_crawl_delay_s
        self._waits_s = [times * robots_wait_s for times in WAITS]
        self._known: OrderedDict[str, tuple[float, Known]] = OrderedDict()  # origin → until when, and what
        self._tries: dict[str, int] = {}

    @step("worker.robots")
    async def ask(self, url: Url) -> Denied | Wait | Dropped | None:
        """None: it may be asked for. *Wait* and *dropped* are the gate's, which robots.txt had to pass."""
        if (reason := url_refusal(url.url, self._allowed_nets)) is not None:
            return Denied(Outcome.URL_REFUSED, reason)
        origin = origin_of(url.url)
        known = self._remembered(origin) or await self._from_ledger(url, origin) or await self._fetched(url, origin)
        if isinstance(known, Wait | Dropped | Denied):
            return known
        reason = denial(known, url.url, max_crawl_delay_s=self._max_crawl_delay_s)
        return None if reason is None else Denied(Outcome.ROBOTS_DENIED, reason)

    def _remembered(self, origin: str) -> Known | None:
        until, known = self._known.get(origin, (0.0, ALLOW_ALL))
        return known if until > self._clock.monotonic() else None

    async def _from_ledger(self, url: Url, origin: str) -> Known | None:
        robots = await self._ledger.robots(origin)
        return None if robots is None else self._remember(url, origin, robots)

    async def _fetched(self, url: Url, origin: str) -> Known | Wait | Dropped:
        asked = f"{origin}/robots.txt"
        go = await self._gate.knock(url)
        for _ in range(HOPS_MAX + 1):
            if not isinstance(go, Go):
                return go
            result, visit = await self._requests.robots(url, asked, go)
            target = _redirect(result, asked)
            if target is None:
                return await self._learn(url, origin, result, visit)
            await self._gate.leave(url, visit)
            if host_of(target) != host_of(asked):
                break  # that host has a gate of its own; and as a page it is met there, with the robots.txt that it has
            asked = target
            while isinstance(go := await self._gate.knock(url), Wait):
                await self._clock.sleep(go.seconds)
        return await self._know(url, origin, Robots(None, NONE_THERE), VERDICT_KEPT_S)

    async def _learn(self, url: Url, origin: str, result: Answer | Trouble, visit: Visit) -> Known | Dropped | Wait:
        """What an answer means for the origin (RFC 9309, section 2.3.1). The request is over in any case."""
        if isinstance(result, Trouble):
            if result.again:
                return await self._not_now(url, origin, result.reason, visit)
            known = await self._know(url, origin, Robots(None, f"{result.outcome}: {result.reason}"), VERDICT_KEPT_S)
        else:
            match robotstxt.meaning(result.status):
                case robotstxt.Meaning.NOT_NOW:
                    return await self._not_now(url, origin, f"status {result.status}", visit)
                case robotstxt.Meaning.READ:
                    body = _plain(result)
                    if body is None:
                        return await self._not_now(url, origin, "a robots.txt that can't be decoded", visit)
                    known = await self._know(url, origin, Robots(text_of(body, cut=result.cut)), KEPT_S)
                case _:
                    known = await self._know(url, origin, Robots(None, NONE_THERE), KEPT_S)
        delay_s = self._requests.delay_s(url.domain)  # with the Crawl-delay that was just learned
        await self._gate.leave(url, msgspec.structs.replace(visit, delay_s=delay_s))
        return known

    async def _not_now(self, url: Url, origin: str, reason: str, visit: Visit) -> Known | Dropped | Wait:
        tries = self._tries[origin] = self._tries.get(origin, 0) + 1
        if tries > len(self._waits_s):
            del self._tries[origin]
            await self._gate.leave(url, visit)
            verdict = f"{Outcome.ROBOTS_DENIED}: robots.txt of {origin} stayed out of reach: {reason}"
            return await self._know(url, origin, Robots(None, verdict), VERDICT_KEPT_S)
        await self._gate.leave(url, visit, self._waits_s[tries - 1])
        answer = await self._gate.begin(url)  # the gate parks it: nothing of the domain is asked for until then
        assert not isinstance(answer, Go)
        return answer

    async def _know(self, url: Url, origin: str, robots: Robots, for_s: float) -> Known:
        await self._ledger.know_robots(origin, robots, for_s)
        return self._remember(url, origin, robots)

    def _remember(self, url: Url, origin: str, robots: Robots) -> Known:
        known = self._understood(url, robots)
        self._known[origin] = self._clock.monotonic() + VERDICT_KEPT_S, known
        self._known.move_to_end(origin)
        if len(self._known) > ORIGINS_KEPT:
            self._known.popitem(last=False)
        return known

    def _understood(self, url: Url, robots: Robots) -> Known:
        if robots.text is None:
            if robots.verdict == NONE_THERE:
                return ALLOW_ALL
            outcome, _, reason = robots.verdict.partition(": ")
            return Denied(Outcome(outcome), reason)
        rules = read_rules(robots.text)
        self._requests.slow_down(url.domain, rules.crawl_delay_s)
        return rules


def _redirect(result: Answer | Trouble, asked: str) -> str | None:
    """Where robots.txt is to be found instead; None if it is not elsewhere, or nowhere that can be asked for."""
    if isinstance(result, Answer) and isinstance(moved := meaning(result.status, result.headers), IsRedirect):
        try:
            return requested(moved.location, asked)
        except UrlError:
            return None
    return None


def _plain(answer: Answer) -> bytes | None:
    """The body without its content coding; empty for what is no text. None: there are rules, and they can't be read."""
    decoded = decode(answer.headers, answer.body, DECODED_BYTES_MAX)
    if isinstance(decoded, Decoded):
        return decoded.raw
    return b"" if decoded.outcome in (Outcome.NO_CONTENT, Outcome.WRONG_TYPE) else None
