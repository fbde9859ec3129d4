"""The loop that finds out the ranks that are wanted: in the ledger, where other frontiers left theirs, or by asking the API.

The API may be down, slow, overrun or out of its mind: tries are few, pauses grow, and after some failures in a row it is left alone
for a minute. Nobody waits for this loop.
"""

import logging
from collections.abc import Sequence
from typing import Final, Protocol

from tenacity import AsyncRetrying, RetryCallState, retry_if_exception, wait_random_exponential

from gossamer.clock import Clock
from gossamer.notes import RankApiNote
from gossamer.ports.ledger import Ledger
from services.frontier.outside.answers import Failed
from services.frontier.outside.breaker import Breaker
from services.frontier.outside.known import Known

log = logging.getLogger("gossamer.rank_api")

#: Open PageRank takes no more; and the names have to fit into a URL, which few servers take beyond 8 KB.
DOMAINS_AT_ONCE: Final = 100
CHARACTERS_AT_ONCE: Final = 4_000
#: So that several domains are asked for at once, and an hour has fewer calls than the 10,000 that Open PageRank allows.
EVERY_S: Final = 0.5
#: How long an answer holds, in the ledger.
KEPT_S: Final = 86_400.0
TRIES: Final = 3
FIRST_PAUSE_S: Final = 0.5
LONGEST_PAUSE_S: Final = 5.0
#: For all tries together: then the batch waits for its next turn.
DEADLINE_S: Final = 30.0


class Api(Protocol):
    requests: int

    async def ask(self, domains: Sequence[str]) -> dict[str, int]:
        """Raises `Failed`."""
        ...


class Asking:
    """One loop of the frontier."""

    def __init__(self, api: Api, known: Known, ledger: Ledger, clock: Clock) -> None:
        self._api, self._known, self._ledger, self._clock = api, known, ledger, clock
        self._breaker = Breaker(clock)
        self._last = ""  # why it failed last

    async def run(self) -> None:
        while True:
            await self._clock.sleep(max(self._breaker.wait_s(), EVERY_S))
            await self.find_out()

    async def find_out(self) -> None:
        """One batch of what is wanted, if anything is."""
        names = self._known.take(DOMAINS_AT_ONCE, CHARACTERS_AT_ONCE)
        if not names:
            return
        found = await self._ledger.known_ranks(names)
        self._known.learn(found, found)
        rest = [name for name in names if name not in found]
        if not rest:
            return
        try:
            ranks = await self._ask(rest)
        except Failed:
            self._known.give_back(rest)
            return
        self._known.learn(rest, ranks)
        await self._ledger.know_ranks(ranks, KEPT_S)

    def note(self) -> RankApiNote:
        """How it stands, for who watches."""
        away_since = self._breaker.away_since
        return RankApiNote(asked=self._api.requests, ranked=self._known.ranked, away_since=away_since, last=self._last)

    async def _ask(self, names: Sequence[str]) -> dict[str, int]:
        began_s = self._clock.monotonic()

        def give_up(state: RetryCallState) -> bool:
            """The next try would be one too many, or come too late, or while the API is to be left alone."""
            past_deadline = self._clock.monotonic() + state.upcoming_sleep - began_s > DEADLINE_S
            if state.attempt_number >= TRIES or past_deadline:
                return True
            return self._breaker.is_open or self._breaker.wait_s() > state.upcoming_sleep

        retrying = AsyncRetrying(
            retry=retry_if_exception(lambda error: isinstance(error, Failed) and error.again),
            stop=give_up,
            # Jitter: several frontiers that lost it at one moment don't come back to it at one moment.
            wait=wait_random_exponential(multiplier=FIRST_PAUSE_S, max=LONGEST_PAUSE_S),
            sleep=self._clock.sleep,
            reraise=True,
        )
        return await retrying(self._try, names)

    async def _try(self, names: Sequence[str]) -> dict[str, int]:
        was_away = self._breaker.away_since is not None
        try:
            ranks = await self._api.ask(names)
        except Failed as error:
            self._breaker.failed(error.retry_after_s)
            self._last = str(error)
            if not was_away:
                log.warning("the rank API is away, and URLs are ranked without it: %s", error)
            raise
        self._breaker.succeeded()
        if was_away:
            log.warning("the rank API is back")
        return ranks
