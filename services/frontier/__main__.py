"""`python -m services.frontier --crawl ID`: the frontier as a process of its own."""

import asyncio
import os
import random
import secrets
import socket
from dataclasses import replace

from gossamer.walk import Role
from services.frontier import frontier
from services.frontier.sweeper import sweeping
from services.role.process import AtWork, end, main


async def serve(at: AtWork) -> None:
    """Until the crawl has ended, or it is to leave. There is nothing to drain: what is in hand comes again."""
    settings = replace(at.settings, frontier=replace(at.settings.frontier, rank_api_key=at.words.rank_api_key))
    rng = random.Random(settings.frontier.random_seed)
    name = f"{socket.gethostname()} {os.getpid()} {secrets.token_hex(4)}"
    async with sweeping(at.ports.sweep, at.settings.storage.ttl_s, at.clock):
        running = asyncio.ensure_future(frontier.run(at.ports.broker, at.ports.ledger, settings, at.clock, rng, name))
        stopped = asyncio.ensure_future(at.leaving.wait())
        try:
            await asyncio.wait((running, stopped), return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            running.cancel()
            await asyncio.wait((running,))
    if not running.cancelled():
        running.result()


if __name__ == "__main__":
    end(main(Role.FRONTIER, serve))
