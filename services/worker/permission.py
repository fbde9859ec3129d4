"""Permission: robots.txt of the origin is known, and says whether this URL may be asked for (step 7).

It is fetched once for all workers, through the same gate as any request, and kept in the ledger. While it can't be had nothing of
the origin is asked for: the domain waits, longer each time, and after the last wait its URLs are closed with that reason. A name
that does not exist, or an address that is refused, is final at once, also where a redirect leads there.
Redirects are followed, up to five. One to another domain has to pass that domain's gate, so it is sent for (errands.py).
Must not know: how robots.txt is read (robotstxt.py), how a request is made.
"""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

import msgspec

from gossamer.answers import Dropped, Go, Wait, Why
from gossamer.clock import Clock
from gossamer.crash import step
from gossamer.errors import UrlError
from gossamer.messages import Url
from gossamer.outcomes import Outcome
from gossamer.ports.ledger import Ledger
from gossamer.records import Robots, Visit
from gossamer.states import State
from gossamer.urls import origin_of, requested
from services.worker import errands, robotstxt
from services.worker.addresses import Network, address_in, endpoint, port_refusal, url_refusal
from services.worker.decode import Decoded, decode, unpacked_part
from services.worker.download import Answer, Trouble
from services.worker.errands import Errands, errand, fresh_s, is_errand, target_of
from services.worker.gate import Gate
from services.worker.meaning import IsRedirect, header, meaning
from services.worker.named_sitemaps import NamedSitemaps
from services.worker.pacing import retry_after_s
from services.worker.requests import ROBOTS_BYTES, Requests
from services.worker.robotstxt import ALLOW_ALL, Rules, denial, kept_s, read_rules, text_of

#: A verdict that stands in for a robots.txt that could not be had: not kept as long, since servers recover.
VERDICT_KEPT_S: Final = 3600.0
#: How long a worker goes by what it remembers before it looks into the ledger again, where each entry ends on its own day.
REMEMBERED_S: Final = 300.0
ORIGINS_KEPT: Final = 2_000
#: Of the texts that the remembered rules were read from; rules take some twelve times as much. Most texts are short, but any one
#: may be as long as the RFC allows, and a thousand hosts that belong to one person would fill our memory.
TEXTS_KEPT_LENGTH: Final = 16_000_000
HOPS_MAX: Final = 5
#: Of a robots.txt that came compressed; what came plain was cut before.
DECODED_BYTES_MAX: Final = 4 * ROBOTS_BYTES
#: How long an origin whose robots.txt can't be had is left alone, each time, in first waits.
WAITS: Final = (1, 6, 30)
#: Who asks to be left alone for longer is not asked again: its pages are closed with that reason.
PAUSE_S_MAX: Final = 3600.0
#: Between two looks for what somebody else was sent for.
LOOK_S: Final = 0.5
#: The verdict for an origin that has no robots.txt: everything is allowed.
NONE_THERE: Final = "none"
#: The verdict for one whose robots.txt lies with another domain, before the errand that it was sent for by.
MOVED: Final = "moved: "


class Denied(msgspec.Struct, frozen=True):
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
        errands: Errands,
        *,
        max_crawl_delay_s: float,
        robots_wait_s: float,
        sitemaps: NamedSitemaps | None = None,
    ) -> None:
        self._ledger, self._gate, self._requests, self._clock = ledger, gate, requests, clock
        self._allowed_nets, self._max_crawl_delay_s = allowed_nets, max_crawl_delay_s
        self._errands, self._sitemaps = errands, sitemaps
        self._waits_s = [times * robots_wait_s for times in WAITS]
        self._known = _Memory()  # by origin, or errand
        self._tries: dict[str, int] = {}
        self._sent_at: dict[str, float] = {}  # since when it is waited for what somebody else was sent for

    @step("worker.robots")
    async def ask(self, url: Url) -> Denied | Wait | Dropped | None:
        """None: it may be asked for. *Wait* and *dropped* are the gate's, which robots.txt had to pass."""
        sent = is_errand(url.url)
        place = url.url if sent else origin_of(url.url)
        known: Known | Wait | Dropped | None = self._remembered(place)
        if known is None:
            if (refused := _refusal(url.url, self._allowed_nets)) is not None:  # its place is, and was not asked
                return refused
            known = await self._from_ledger(url, place) or await self._fetched(url, place)
        if isinstance(known, Wait | Dropped):
            return known
        if sent:
            return Denied(Outcome.NO_CONTENT, "a robots.txt that another host's was moved to: it was read, and is no page")
        if isinstance(known, Denied):
            return known
        reason = denial(known, url.url, max_crawl_delay_s=self._max_crawl_delay_s)
        return None if reason is None else Denied(Outcome.ROBOTS_DENIED, reason)

    async def leave_alone(self, url: Url, reason: str) -> None:
        """Its origin wants no more requests: its pages are closed with that reason, whoever has them."""
        await self._know(url, origin_of(url.url), Robots(None, f"{Outcome.HTTP_ERROR}: {reason}"), VERDICT_KEPT_S)

    def _remembered(self, place: str) -> Known | None:
        return self._known.get(place, self._clock.monotonic())

    async def _from_ledger(self, url: Url, place: str) -> Known | Wait | None:
        robots = await self._ledger.robots(place)
        if robots is None:
            return None
        if robots.verdict.startswith(MOVED):
            return await self._sent_for(url, place, robots.verdict.removeprefix(MOVED))
        return self._remember(url, place, robots, understood(robots))

    async def _sent_for(self, url: Url, place: str, sent: str) -> Known | Wait:
        """What the errand brought. It may take its time, as that domain has a delay and URLs of its own, but not for ever."""
        record = await self._errands.send(sent)
        robots = await self._ledger.robots(sent)  # after it: what is closed has left what it will leave
        if robots is None or robots.verdict.startswith(MOVED):
            now = self._clock.monotonic()
            late = now - self._sent_at.setdefault(place, now) > sum(self._waits_s)
            # Not there although it was just sent: a budget of that host's keeps it out, and will each time.
            if record is not None and record.state is not State.CLOSED and not late:
                return Wait(LOOK_S, Why.NOT_BEFORE)
            robots = _denied(f"robots.txt was moved to {target_of(sent)[0]}, which could not be had")
        for_s = VERDICT_KEPT_S if robots.text is None else max(fresh_s(sent, self._clock.now()), robotstxt.KEPT_S_MIN)
        return await self._know(url, place, robots, for_s)

    async def _fetched(self, url: Url, place: str) -> Known | Wait | Dropped:
        asked, hop = target_of(place) if is_errand(place) else (f"{place}/robots.txt", 0)
        go = await self._gate.knock(url)
        while True:
            if not isinstance(go, Go):
                return go
            result, visit = await self._requests.robots(url, asked, go)
            location = _location(result)
            if location is None:
                return await self._learn(url, place, result, visit, moved=hop > 0)
            await self._gate.leave(url, visit)
            hop += 1
            if hop > HOPS_MAX:
                return await self._know(url, place, Robots(None, NONE_THERE), VERDICT_KEPT_S)
            target = self._redirect_target(location, asked)
            if isinstance(target, Robots):
                return await self._know(url, place, target, VERDICT_KEPT_S)
            if self._errands.domain_of(target) != url.domain:
                sent = errand(target, hop, self._clock.now())
                await self._ledger.know_robots(place, Robots(None, MOVED + sent), robotstxt.KEPT_S)
                return await self._sent_for(url, place, sent)
            asked = target
            while isinstance(go := await self._gate.knock(url), Wait):
                await self._clock.sleep(go.seconds)

    def _redirect_target(self, location: str, asked: str) -> str | Robots:
        """Where robots.txt is to be found instead; or the verdict, if that is nowhere that can be asked."""
        try:
            target = requested(location, asked)
        except UrlError as error:
            return _denied(f"robots.txt was moved to what can't be asked for: {error}")
        refused = _refusal(target, self._allowed_nets)
        return target if refused is None else _denied(f"robots.txt was moved to {target}: {refused.reason}")

    async def _learn(self, url: Url, place: str, result: Answer | Trouble, visit: Visit, *, moved: bool) -> Known | Dropped | Wait:
        """What an answer means for the origin (RFC 9309, section 2.3.1). The request is over in any case."""
        if isinstance(result, Trouble):
            if result.again:
                return await self._not_now(url, place, result.reason, visit)
            # What became of another place is not the outcome of this one's pages.
            outcome = Outcome.ROBOTS_DENIED if moved else result.outcome
            known = await self._know(url, place, Robots(None, f"{outcome}: {result.reason}"), VERDICT_KEPT_S)
        else:
            match robotstxt.meaning(result.status):
                case robotstxt.Meaning.NOT_NOW:
                    pause_s = retry_after_s(header(result.headers, "retry-after"), self._clock.now())
                    return await self._not_now(url, place, f"status {result.status}", visit, pause_s or 0.0)
                case robotstxt.Meaning.READ:
                    body = _plain(result)
                    if body is None:
                        return await self._not_now(url, place, "a robots.txt that can't be decoded", visit)
                    text = text_of(body, cut=result.cut)
                    known = await self._know(url, place, Robots(text), kept_s(result.headers))
                case _:
                    known = await self._know(url, place, Robots(None, NONE_THERE), kept_s(result.headers))
        delay_s = self._requests.delay_s(url.domain)  # with the Crawl-delay that was just learned
        await self._gate.leave(url, msgspec.structs.replace(visit, delay_s=delay_s))
        return known

    async def _not_now(self, url: Url, place: str, reason: str, visit: Visit, pause_s: float = 0.0) -> Known | Dropped | Wait:
        tries = self._tries[place] = self._tries.get(place, 0) + 1
        if tries > len(self._waits_s) or pause_s > PAUSE_S_MAX:
            await self._gate.leave(url, visit)
            denied = _denied(f"{target_of(place)[0] if is_errand(place) else place}: robots.txt stayed out of reach: {reason}")
            return await self._know(url, place, denied, VERDICT_KEPT_S)
        await self._gate.leave(url, visit, max(self._waits_s[tries - 1], pause_s))
        # The gate parks it: nothing of the domain is asked for until then. Should that be over by now, it is asked for at once.
        return await self._fetched(url, place)

    async def _know(self, url: Url, place: str, robots: Robots, for_s: float) -> Known:
        self._tries.pop(place, None)
        self._sent_at.pop(place, None)
        known = understood(robots)
        if self._sitemaps is not None and isinstance(known, Rules) and not is_errand(place):
            await self._sitemaps.enter(url, place, known.sitemaps)
        await self._ledger.know_robots(place, robots, errands.KEPT_S if is_errand(place) else for_s)
        return self._remember(url, place, robots, known)

    def _remember(self, url: Url, place: str, robots: Robots, known: Known) -> Known:
        # Rules bind the host that was asked first, and a Crawl-delay is one of them.
        if isinstance(known, Rules) and not is_errand(place):
            self._requests.slow_down(url.domain, known.crawl_delay_s)
        self._known.keep(place, known, len(robots.text or ""), self._clock.monotonic() + REMEMBERED_S)
        return known


class _Memory:
    """What is known of places, until a moment each; the oldest goes when there are too many, or too much of them."""

    def __init__(self) -> None:
        self._places: OrderedDict[str, tuple[float, Known, int]] = OrderedDict()
        self._length = 0

    def get(self, place: str, now: float) -> Known | None:
        until, known, _ = self._places.get(place, (0.0, ALLOW_ALL, 0))
        return known if until > now else None

    def keep(self, place: str, known: Known, length: int, until: float) -> None:
        """`length`: of the text that it was read from."""
        self._length += length - self._places.pop(place, (0.0, known, 0))[2]
        self._places[place] = until, known, length
        while len(self._places) > ORIGINS_KEPT or self._length > TEXTS_KEPT_LENGTH:
            _, (_, _, forgotten) = self._places.popitem(last=False)
            self._length -= forgotten


def _refusal(url: str, allowed_nets: Sequence[Network]) -> Denied | None:
    """Why this URL is not asked for, as far as it can be told without a look-up."""
    if (reason := url_refusal(url, allowed_nets)) is None:
        return None
    host, port = endpoint(url)
    by_address = address_in(host) is not None and port_refusal(port) is None
    return Denied(Outcome.ADDRESS_REFUSED if by_address else Outcome.URL_REFUSED, reason)


def understood(robots: Robots) -> Known:
    if robots.text is not None:
        return read_rules(robots.text)
    if robots.verdict == NONE_THERE:
        return ALLOW_ALL
    outcome, _, reason = robots.verdict.partition(": ")
    return Denied(Outcome(outcome), reason)


def _denied(reason: str) -> Robots:
    return Robots(None, f"{Outcome.ROBOTS_DENIED}: {reason}")


def _location(result: Answer | Trouble) -> str | None:
    """Where the answer says that robots.txt is; None if it is no redirect, or one to nowhere."""
    if isinstance(result, Answer) and isinstance(moved := meaning(result.status, result.headers), IsRedirect):
        return moved.location
    return None


def _plain(answer: Answer) -> bytes | None:
    """The body without its content coding, whatever it looks like. None: there are rules, and they can't be read."""
    decoded = decode(answer.headers, answer.body, DECODED_BYTES_MAX)
    if isinstance(decoded, Decoded):
        return decoded.raw
    match decoded.outcome:
        case Outcome.NO_CONTENT:
            return b""
        case Outcome.WRONG_TYPE:
            # A NUL among its rules makes it no page, but leaves the rules what they are. An image has none.
            return unpacked_part(answer.headers, answer.body, DECODED_BYTES_MAX)[0]
        case _:
            return None
