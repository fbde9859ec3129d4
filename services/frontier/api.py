"""`python -m services.frontier.api --crawl ID`: the live rank for other tools, by domain, in the form of Open PageRank.

So whatever asks Open PageRank can ask a crawl of one's own instead; another crawl can, with `--rank-api`. Reads the ledger and
changes nothing: it may run beside the crawl, or after it, and as often as wanted. Bound to this machine unless told otherwise.
"""

import argparse
import asyncio
import logging
import os
import secrets
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Final

import uvicorn
from fastapi import Depends, FastAPI, Header, HTTPException, Query, Response
from pydantic import BaseModel, StringConstraints

from adapters.wiring import LEDGER_FILE, SERVER_KEYS, open_announcements, open_file, open_redis, servers
from gossamer import __version__
from gossamer.clock import Clock, SystemClock
from gossamer.errors import LedgerUnavailable, NoCrawl, SettingsError
from gossamer.ids import CrawlId
from gossamer.ports.ledger import Ledger
from gossamer.settings import BY_KEY, load, secret_of
from services.frontier.domain_ranks import DomainRank, DomainRanks
from services.role.registrable import registrable
from services.role.words import crawl_id, host_and_port

log = logging.getLogger("gossamer.rank_api")

TURN_S: Final = 2.0
DOMAINS_MAX: Final = 100
ADDRESS: Final = "127.0.0.1:8090"
KEY: Final = "API_KEY"

#: Opens the ledger of the crawl that is to be shown; None: there is none yet. Asked again and again: the crawl may change.
Opening = Callable[[], Awaitable[tuple[CrawlId, Callable[[], Ledger]] | None]]


class Entry(BaseModel):
    """What is said of one domain."""

    status_code: int
    error: str
    domain: str
    page_rank_integer: int
    page_rank_decimal: float | str
    rank: str | None


class Answer(BaseModel):
    status_code: int
    response: list[Entry]


class Health(BaseModel):
    alive: bool
    crawl: str | None
    domains: int
    servers: dict[str, str]


class Live:
    """The ranks of the crawl that is shown, kept fresh."""

    def __init__(self, opening: Opening, clock: Clock) -> None:
        self._opening, self._clock = opening, clock
        self._ledger: Ledger | None = None
        self._ranks: DomainRanks | None = None
        self.crawl: CrawlId | None = None
        self.reachable = False

    @property
    def by_domain(self) -> Mapping[str, DomainRank]:
        return {} if self._ranks is None else self._ranks.by_domain

    async def run(self) -> None:
        """For ever. A ledger that is away is waited for; what was known meanwhile stays."""
        while True:
            try:
                await self.turn()
                self.reachable = True
            except LedgerUnavailable:
                self.reachable = False
            await self._clock.sleep(TURN_S)

    async def turn(self) -> None:
        found = await self._opening()
        if found is not None and found[0] != self.crawl:
            await self.close()
            self.crawl, open_ledger = found
            self._ledger = open_ledger()
            self._ranks = DomainRanks(self._ledger)
        if self._ranks is not None:
            with suppress(NoCrawl):  # not begun yet, or its time is over: what was known stays
                await self._ranks.turn()

    async def close(self) -> None:
        if self._ledger is not None:
            await self._ledger.close()


def application(live: Live, key: str | None) -> FastAPI:
    """The API. With a key, it is asked for in the header that Open PageRank has for it."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        running = asyncio.create_task(live.run(), name="domain ranks")
        try:
            yield
        finally:
            running.cancel()
            await asyncio.wait((running,))
            await live.close()

    def let_in(given: Annotated[str | None, Header(alias="API-OPR")] = None) -> None:
        if key is not None and not secrets.compare_digest((given or "").encode(), key.encode()):
            raise HTTPException(401, "the header API-OPR has to hold the key")

    app = FastAPI(
        title="Gossamer: the live rank",
        summary="PageRank over the links that a crawl has seen so far, by registered domain, in the form of Open PageRank.",
        version=__version__,
        lifespan=lifespan,
    )

    @app.get("/api/v1.0/getPageRank", dependencies=[Depends(let_in)])
    async def get_page_rank(
        domains: Annotated[
            list[Annotated[str, StringConstraints(max_length=253)]],
            Query(alias="domains[]", min_length=1, max_length=DOMAINS_MAX, description="hosts count as their registered domain"),
        ],
    ) -> Answer:
        """The rank of each: 10 for the best domain that the crawl knows, 0 for the worst; 404 for one that it has not met."""
        by_domain = live.by_domain
        return Answer(status_code=200, response=[entry(each, by_domain.get(registrable(each.lower()))) for each in domains])

    @app.get("/health", responses={503: {"model": Health, "description": "the ledger can't be reached"}})
    async def health(response: Response) -> Health:
        """Whether it is well; needs no key, and tells no address."""
        response.status_code = 200 if live.reachable else 503
        ledger = "reachable" if live.reachable else "away"
        return Health(alive=True, crawl=live.crawl, domains=len(live.by_domain), servers={"ledger": ledger})

    return app


def entry(domain: str, rank: DomainRank | None) -> Entry:
    if rank is None:
        return Entry(status_code=404, error="Domain not found", domain=domain, page_rank_integer=0, page_rank_decimal="", rank=None)
    return Entry(
        status_code=200,
        error="",
        domain=domain,
        page_rank_integer=round(rank.decimal),
        page_rank_decimal=rank.decimal,
        rank=str(rank.place),
    )


# --- The process ---


def main(argv: Sequence[str], environ: Mapping[str, str]) -> int:
    try:
        given = _parser().parse_args(argv)
        host, port = host_and_port(given.address or environ.get("API_ADDRESS", "").strip() or ADDRESS, "--address")
        clock = SystemClock()
        opening = _of_folder(given.state, clock) if given.state else _of_servers(given.crawl, environ)
        app = application(Live(opening, clock), secret_of(environ, KEY))
    except SettingsError as wrong:
        sys.stderr.write(f"services.frontier.api: {wrong}\n")
        return 2
    uvicorn.run(app, host=host, port=port, log_level="warning", server_header=False)
    return 0


def _of_folder(folder: Path, clock: Clock) -> Opening:
    if not (folder / LEDGER_FILE).is_file():
        raise SettingsError(f"--state {folder}: there is no crawl in it")

    async def opening() -> tuple[CrawlId, Callable[[], Ledger]]:
        return CrawlId(folder.name), lambda: open_file(folder, clock)

    return opening


def _of_servers(text: str | None, environ: Mapping[str, str]) -> Opening:
    named = {name: value for name, value in environ.items() if name.removesuffix("_FILE") in _VARIABLES}
    at = servers(load({}, named, None).settings.storage, environ)
    told = text or environ.get("CRAWL", "").strip()
    crawl = crawl_id(told) if told else None
    announcements = open_announcements(at)

    async def opening() -> tuple[CrawlId, Callable[[], Ledger]] | None:
        found = crawl or await announcements.current()
        return None if found is None else (found, lambda: open_redis(at, found))

    return opening


_VARIABLES: Final = frozenset(BY_KEY[key].variable for key in SERVER_KEYS)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m services.frontier.api",
        description="The live rank of a crawl, by domain, in the form of Open PageRank: GET /api/v1.0/getPageRank?domains[]=…",
        epilog=f"Servers are named in the environment, as for the other roles. {KEY} (or {KEY}_FILE): a key that callers have to "
        "send in the header API-OPR. /docs tells the rest.",
        allow_abbrev=False,
    )
    parser.add_argument("--crawl", metavar="ID", help="of this crawl (or: CRAWL); else the one that was announced last")
    parser.add_argument("--state", metavar="DIR", type=Path, help="of the crawl in this folder, without servers")
    parser.add_argument("--address", metavar="HOST:PORT", help=f"answer there (or: API_ADDRESS; {ADDRESS})")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:], os.environ))
