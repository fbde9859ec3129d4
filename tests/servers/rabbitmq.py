"""A RabbitMQ node with a user of its own.

Erlang's port mapper (epmd), which the first node of a machine starts, is shared by all of them and stays.
"""

import secrets
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pika
from pika.exceptions import AMQPError

from tests.servers.containers import Container, can_run
from tests.servers.ports import free_ports
from tests.servers.programs import Program, find_program, new_folder
from tests.servers.runners import Runner
from tests.servers.server import Plan, Server, missing

IMAGE: Final = "rabbitmq:4-management"
INSTALL: Final = "sudo apt-get install rabbitmq-server"

#: Debian's name on the PATH is a wrapper that changes to a user of its own, who could not write into our folder.
PROGRAMS: Final = ("/usr/lib/rabbitmq/bin/rabbitmq-server", "rabbitmq-server")

_USER: Final = "gossamer"


class Rabbitmq(Server):
    def __init__(self) -> None:
        super().__init__(_plan)

    def control(self, *arguments: str) -> None:
        """rabbitmqctl, as the server itself would call it: by its name and its cookie."""
        lines = Path(f"/proc/{self.pid}/environ").read_text().split("\0")
        environment = dict(line.split("=", 1) for line in lines if "=" in line)
        if "RABBITMQ_NODENAME" not in environment:
            missing("RabbitMQ that can be told anything (this one runs in a container)", "apt-get install rabbitmq-server")
        program = find_program("/usr/lib/rabbitmq/bin/rabbitmqctl", "rabbitmqctl")
        assert program is not None
        command = [program, "-n", environment["RABBITMQ_NODENAME"], *arguments]
        subprocess.run(command, env=environment, check=True, capture_output=True, timeout=60)

    @contextmanager
    def short_of_memory(self) -> Iterator[None]:
        """While it lasts, it has an alarm, and takes no messages."""
        self.control("set_vm_memory_high_watermark", "0.00001")
        try:
            yield
        finally:
            self.control("set_vm_memory_high_watermark", "0.4")


def _plan() -> Plan:
    password = secrets.token_hex(16)
    port, distribution_port = free_ports(2)
    runner: Runner
    if program := find_program(*PROGRAMS):
        runner = _program(program, port, distribution_port, password)
    elif can_run(IMAGE):
        environment = {"RABBITMQ_DEFAULT_USER": _USER, "RABBITMQ_DEFAULT_PASS": password}
        runner = Container(IMAGE, port, 5672, environment=environment)
    else:
        missing("RabbitMQ", INSTALL)
    url = f"amqp://{_USER}:{password}@127.0.0.1:{port}/%2F"
    return Plan(runner, url, lambda: _why_not_ready(url, port))


def _program(program: str, port: int, distribution_port: int, password: str) -> Program:
    folder = new_folder()
    environment = {
        "HOME": str(folder),  # where the cookie lies that nodes know each other by
        "RABBITMQ_NODENAME": f"gossamer-{secrets.token_hex(6)}@localhost",
        "RABBITMQ_NODE_IP_ADDRESS": "127.0.0.1",
        "RABBITMQ_NODE_PORT": str(port),
        "RABBITMQ_DIST_PORT": str(distribution_port),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "logs"),
        "RABBITMQ_LOGS": "-",  # to its output
        "RABBITMQ_PID_FILE": str(folder / "pid"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "ERL_EPMD_ADDRESS": "127.0.0.1",
        # The script then becomes the node, instead of waiting for it: signals reach it, and its number is the node's.
        "RUNNING_UNDER_SYSTEMD": "true",
    }

    def prepare() -> None:
        (folder / "enabled_plugins").write_text("[].\n")
        _write_configuration(folder / "rabbitmq.conf", port, password)

    return Program(folder, [program], environment, prepare=prepare)


def _write_configuration(path: Path, port: int, password: str) -> None:
    path.write_text(f"listeners.tcp.default = 127.0.0.1:{port}\ndefault_user = {_USER}\ndefault_pass = {password}\n")
    path.chmod(0o600)


def _why_not_ready(url: str, port: int) -> str | None:
    # First by hand: pika logs each refusal as an error with its trace, and a node refuses for seconds.
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(b"AMQP\x00\x00\x09\x01")
            if not connection.recv(1):  # a container's port is open before anything listens behind it
                return "no answer to the AMQP greeting"
    except OSError as error:
        return str(error)
    parameters = pika.URLParameters(url)
    parameters.socket_timeout = parameters.stack_timeout = parameters.blocked_connection_timeout = 5
    try:
        pika.BlockingConnection(parameters).close()
    except (AMQPError, OSError) as error:
        return repr(error)
    return None
