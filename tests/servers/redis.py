"""A Redis or Valkey with a password of its own, which writes down each change before it answers."""

import secrets
from typing import Final

from redis import Redis as Client
from redis.exceptions import RedisError

from tests.servers.containers import Container, can_run
from tests.servers.ports import free_ports
from tests.servers.programs import Program, find_program, new_folder
from tests.servers.runners import Runner
from tests.servers.server import Plan, Server, missing

IMAGE: Final = "redis:8"
INSTALL: Final = "sudo apt-get install redis-server"


class Redis(Server):
    def __init__(self) -> None:
        super().__init__(_plan)


def _plan() -> Plan:
    password = secrets.token_hex(16)
    (port,) = free_ports(1)
    options = ["--requirepass", password, "--appendonly", "yes", "--save", ""]
    runner: Runner
    if program := find_program("redis-server", "valkey-server"):
        folder = new_folder()
        here = ["--port", str(port), "--bind", "127.0.0.1", "--dir", str(folder / "data"), "--daemonize", "no"]
        runner = Program(folder, [program, *here, *options])
    elif can_run(IMAGE):
        runner = Container(IMAGE, port, 6379, ["redis-server", *options])
    else:
        missing("Redis", INSTALL)
    url = f"redis://:{password}@127.0.0.1:{port}/0"
    return Plan(runner, url, lambda: _why_not_ready(url))


def _why_not_ready(url: str) -> str | None:
    try:
        with Client.from_url(url, socket_timeout=5, socket_connect_timeout=5) as client:
            client.ping()
    except RedisError as error:
        return str(error)
    return None
