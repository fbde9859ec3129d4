"""Fetch: a URL that passed the gate is asked for, with its one retry, until it is had, has ended or is put off.

Every request after the first knocks at the gate like any other, so that a retry is no second request in flight and no start too
soon. A page is read before its domain goes on: a compressed body can end early though its message is whole, and that is worth the
retry too. A redirect is not followed here: its target becomes a URL of its own. Only a target of the same identity is asked for
under this id, since as a URL of its own it would be known already, and lost.
"""

from collections.abc import Awaitable, Callable
from typing import Final

import msgspec

from gossamer.answers import Dropped, Go, Wait
from gossamer.clock import Clock
from gossamer.messages import Link, Url
from gossamer.outcomes import Outcome
from gossamer.ports.ledger import Ledger
from gossamer.records import Closing, Facts, Visit
from gossamer.together import Together
from gossamer.urls import host_of
from services.worker.download import Answer, Trouble
from services.worker.gate import Gate
from services.worker.hand import Hand
from services.worker.links import Links
from services.worker.meaning import IsEnd, IsNotNow, IsPage, IsRedirect, Meaning, meaning
from services.worker.pacing import retry_after_s
from services.worker.read import Reading, Unreadable
from services.worker.requests import Requests

#: A pause that a server asks for is waited out in the worker's hand up to this, and beyond it in the ledger's.
PAUSE_S_MAX: Final = 60.0
#: A server that asks for more won't be asked again: not for this page, and for no other.
DEFERRAL_S_MAX: Final = 3600.0
#: Of a target that is named: it is known as a URL of its own.
REASON_LENGTH_MAX: Final = 500
#: Statuses by which a server says that it wants to be left alone, not that the page is broken.
LATER: Final = frozenset({429, 503})


class Fetched(msgspec.Struct, frozen=True):
    """A page is there, and read; its request is over and not yet settled."""

    answer: Answer
    page: Reading
    visit: Visit


class Redirected(msgspec.Struct, frozen=True):
    target: Link
    status: int
    visit: Visit

    def closing(self, url: Url) -> Closing:
        """A seed's target counts as a seed: its host is in scope from here on."""
        scope_host = host_of(self.target.url).removesuffix(".") if url.depth == 0 else None
        facts = Facts(status=self.status)
        return Closing(
            id=url.id,
            outcome=Outcome.REDIRECT,
            reason=f"to {self.target.url[:REASON_LENGTH_MAX]}",
            facts=facts,
            visit=self.visit,
            target=self.target,
            scope_host=scope_host,
        )


class Failed(msgspec.Struct, frozen=True):
    outcome: Outcome
    reason: str
    visit: Visit
    facts: Facts


class LetGo(msgspec.Struct, frozen=True):
    """It was put off, or is no longer this worker's: nothing is left to be done."""


Fate = Fetched | Redirected | Failed | LetGo
_LET_GO: Final = LetGo()


class Fetching:
    def __init__(
        self,
        gate: Gate,
        hand: Hand,
        ledger: Ledger,
        requests: Requests,
        read: Together[Answer, Reading | Unreadable],
        links: Links,
        clock: Clock,
        leave_alone: Callable[[Url, str], Awaitable[None]],
        *,
        max_hops: int,
        max_deferrals: int,
    ) -> None:
        """`leave_alone`: its whole origin is to be asked for nothing more, for this reason."""
        self._gate, self._hand, self._ledger, self._requests = gate, hand, ledger, requests
        self._read, self._links, self._clock, self._leave_alone = read, links, clock, leave_alone
        self._max_hops, self._max_deferrals = max_hops, max_deferrals

    async def __call__(self, url: Url, go: Go) -> Fate:
        asked, hop, retried = url.url, url.hop, False
        while True:
            self._read.one_comes()
            try:
                result, visit = await self._requests.page(url, asked, go)
            finally:
                self._read.one_came()
            pause_s: float | None = None
            match _meaning(result):
                case IsPage():
                    assert isinstance(result, Answer)
                    page = await self._read(result)
                    if isinstance(page, Reading):
                        return Fetched(result, page, visit)
                    if retried or not page.again:
                        return Failed(page.outcome, page.reason, visit, _facts(result))
                    retried = True
                case IsEnd(outcome=outcome, reason=reason):
                    return Failed(outcome, reason, visit, _facts(result))
                case IsRedirect(location=location):
                    hop += 1
                    target = self._links.redirect_target(url, asked, location)
                    if isinstance(target, str):
                        return Failed(Outcome.REDIRECT, f"its target is not followed: {target}", visit, _facts(result))
                    if hop > self._max_hops or target.url == asked:
                        return Failed(Outcome.REDIRECT_LIMIT, f"redirect number {hop} in a row", visit, _facts(result))
                    if target.id != url.id:
                        assert isinstance(result, Answer)
                        return Redirected(target, result.status, visit)
                    asked = target.url
                case IsNotNow(reason=reason, retry_after=retry_after):
                    pause_s = retry_after_s(retry_after, self._clock.now())
                    if retried or (pause_s or 0) > PAUSE_S_MAX:
                        return await self._give_up_for_now(url, result, reason, pause_s, visit)
                    retried = True
            await self._gate.leave(url, visit, pause_s)
            answer = await self._knock(url)
            if answer is None:
                return _LET_GO
            go = answer

    async def _knock(self, url: Url) -> Go | None:
        """Waits until the domain may be asked again; None if the URL left the hand instead."""
        while True:
            match await self._gate.knock(url):
                case Go() as go:
                    return go
                case Wait(seconds=seconds) if seconds <= PAUSE_S_MAX:
                    await self._clock.sleep(seconds)
                case Wait() | Dropped.BUDGET:
                    await self._hand.defer(url, None, "its domain is to be left alone for a while", Visit())
                    return None
                case Dropped.CLOSED:
                    self._hand.drop(url)
                    return None

    async def _give_up_for_now(self, url: Url, result: Answer | Trouble, reason: str, pause_s: float | None, visit: Visit) -> Fate:
        """What failed twice has failed; but a server that only wants to be left alone is asked again later, a few times."""
        if isinstance(result, Trouble):
            return Failed(result.outcome, reason, visit, Facts())
        if result.status not in LATER:
            return Failed(Outcome.HTTP_ERROR, f"{reason}, twice", visit, _facts(result))
        if pause_s is not None and pause_s > DEFERRAL_S_MAX:
            reason = f"{reason}, and asked to be left alone for {pause_s:.0f} s"
            await self._leave_alone(url, reason)
            return Failed(Outcome.HTTP_ERROR, reason, visit, _facts(result))
        (record,) = await self._ledger.records([url.id])
        deferrals = 0 if record is None else record.deferrals
        if deferrals >= self._max_deferrals:
            return Failed(Outcome.HTTP_ERROR, f"{reason}, and asked to wait {deferrals + 1} times", visit, _facts(result))
        # Without a time of its own the domain's delay will do: it has doubled with each refusal.
        until_s = pause_s if pause_s is not None else (visit.delay_s or 1.0)
        await self._hand.defer(url, until_s, reason, visit)
        return _LET_GO


def _meaning(result: Answer | Trouble) -> Meaning:
    if isinstance(result, Answer):
        return meaning(result.status, result.headers)
    return IsNotNow(result.reason, None) if result.again else IsEnd(result.outcome, result.reason)


def _facts(result: Answer | Trouble) -> Facts:
    return Facts(status=result.status, took_s=result.took_s) if isinstance(result, Answer) else Facts()
