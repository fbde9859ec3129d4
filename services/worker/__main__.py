"""`python -m services.worker --crawl ID`: a worker as a process of its own."""

import asyncio
import os
import secrets
import socket

from gossamer.options import parse_spec
from gossamer.walk import Role
from services.role.process import AtWork, end, main
from services.role.registrable import registrable
from services.worker import plugins
from services.worker.addresses import allowed_nets, own_servers
from services.worker.equipment import Equipment
from services.worker.resolve import Dns, Resolver


async def serve(at: AtWork) -> None:
    """Until the crawl has ended, or it is to leave: then what is in flight is finished, and the rest handed back."""
    modules = plugins.load(map(parse_spec, at.words.modules or at.settings.start.modules))
    servers = at.words.servers
    own = own_servers((servers.rabbitmq_url, servers.redis_url, servers.s3_url))
    resolver = Resolver(Dns(), at.clock, allowed_nets(at.settings), own)
    equipment = Equipment(
        crawl=at.crawl,
        settings=at.settings,
        ledger=at.ports.ledger,
        broker=at.ports.broker,
        blobs=at.ports.blobs,
        clock=at.clock,
        modules=modules,
        out_dir=at.words.out,
        registrable=registrable,
        resolver=resolver,
        pauses=at.ports.pauses,
    )
    # Process ids alone come again: on another machine, in another container, after a restart.
    worker = equipment.worker(f"{socket.gethostname()} {os.getpid()} {secrets.token_hex(4)}")

    async def drain_when_told() -> None:
        await at.leaving.wait()
        worker.drain()

    try:
        async with asyncio.TaskGroup() as tasks:
            watching = tasks.create_task(drain_when_told())
            await worker.run()
            watching.cancel()
    finally:
        await resolver.close()


if __name__ == "__main__":
    end(main(Role.WORKER, serve))
