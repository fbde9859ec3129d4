"""The servers that other tests stand on: they can be stopped, killed and emptied, and are gone when the tests are."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pika
import pytest
from redis import Redis as Client

from tests.servers import S3, Rabbitmq, Redis, Server, ServerFailed, rabbitmq_url, redis_url, s3_client, s3_url
from tests.servers import redis as redis_module
from tests.servers.ports import free_ports
from tests.servers.programs import Program
from tests.servers.server import Plan

ROOT = Path(__file__).parents[2]


def redis_holds(server: Server, name: str, *, write: bool = False) -> bool:
    with Client.from_url(server.url) as client:
        if write:
            client.set(name, "1")
        return bool(client.exists(name))


def rabbitmq_holds(server: Server, name: str, *, write: bool = False) -> bool:
    connection = pika.BlockingConnection(pika.URLParameters(server.url))
    try:
        channel = connection.channel()
        channel.queue_declare(name, durable=True, passive=not write)
    except pika.exceptions.ChannelClosedByBroker:
        return False
    else:
        return True
    finally:
        connection.close()


def s3_holds(server: Server, name: str, *, write: bool = False) -> bool:
    assert isinstance(server, S3)
    endpoint, _, bucket = server.url.rpartition("/")
    client = s3_client(endpoint, server.credentials)
    try:
        if write:
            client.put_object(Bucket=bucket, Key=name, Body=b"1")
        return bool(client.list_objects_v2(Bucket=bucket, Prefix=name)["KeyCount"])
    finally:
        client.close()


@pytest.mark.parametrize(
    ("kind", "program", "holds"),
    [
        pytest.param(Redis, ("redis-server", "valkey-server"), redis_holds, id="redis"),
        pytest.param(S3, ("weed",), s3_holds, id="s3"),
        pytest.param(Rabbitmq, ("beam.smp",), rabbitmq_holds, id="rabbitmq"),
    ],
)
def test_a_server_comes_back_with_what_it_held_until_it_is_wiped(
    kind: type[Redis] | type[S3] | type[Rabbitmq], program: tuple[str, ...], holds: Callable[..., bool]
) -> None:
    with kind() as server:
        url, first_pid = server.url, server.pid
        assert Path(f"/proc/{first_pid}/comm").read_text().strip() in program
        assert holds(server, "a", write=True)

        server.kill()
        assert not is_listening(url)
        server.start()

        assert server.url == url
        assert server.pid != first_pid
        assert holds(server, "a")

        server.stop()
        assert not is_listening(url)
        server.wipe()
        server.start()

        assert not holds(server, "a")
        assert holds(server, "b", write=True)
    assert not is_listening(url)


def test_two_of_a_kind_run_at_once() -> None:
    with S3() as one, S3() as other:
        assert s3_holds(one, "a", write=True)
        assert not s3_holds(other, "a")


def test_all_tests_of_a_process_share_one() -> None:
    for url in (rabbitmq_url, redis_url, s3_url):
        assert url() == url()
        assert is_listening(url())


def test_a_server_that_is_there_already_is_taken_from_the_environment() -> None:
    program = "from tests.servers import *; print(rabbitmq_url(), redis_url(), s3_url(), s3_credentials())"
    given = {
        "TEST_RABBITMQ_URL": "amqp://r",
        "TEST_REDIS_URL": "redis://r",
        "TEST_S3_URL": "http://s/b",
        "AWS_ACCESS_KEY_ID": "key",
        "AWS_SECRET_ACCESS_KEY": "secret",
    }

    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env={**os.environ, **given},
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )

    assert done.stdout == "amqp://r redis://r http://s/b S3Credentials(access_key='key', secret_key='secret')\n"


def test_a_port_that_somebody_else_took_is_given_up_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        draws = [[taken.getsockname()[1]], free_ports(1)]
        monkeypatch.setattr(redis_module, "free_ports", lambda _count: draws.pop(0))

        with Redis() as server:
            assert redis_holds(server, "a", write=True)

    assert draws == []


def test_a_server_that_does_not_start_says_why(tmp_path: Path) -> None:
    def plan() -> Plan:
        return Plan(Program(tmp_path / "server", ["sh", "-c", "echo no such disk"]), "", lambda: "refused")

    with pytest.raises(ServerFailed, match=r"(?s)ended while it started \(refused\).*no such disk"):
        Server(plan).start()

    assert list(tmp_path.iterdir()) == []


def test_a_server_does_not_outlive_tests_that_are_killed(tmp_path: Path) -> None:
    program = (
        "import os, time; from tests.servers import Redis; s = Redis(); s.start(); print(s.pid, s.url, flush=True); time.sleep(60)"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as tests:
        assert tests.stdout is not None
        pid, url = tests.stdout.readline().split()
        assert is_listening(url)

        tests.send_signal(signal.SIGKILL)

    wait_until(lambda: not is_running(int(pid)))
    wait_until(lambda: list(tmp_path.iterdir()) == [])


@pytest.mark.parametrize(
    ("variables", "outcome"),
    [
        pytest.param({}, pytest.skip.Exception, id="at a desk the test is skipped"),
        pytest.param({"CI": "true"}, pytest.fail.Exception, id="in CI it fails"),
    ],
)
def test_a_server_that_can_not_be_had_is_told_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], outcome: type[BaseException]
) -> None:
    monkeypatch.delenv("CI", raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(redis_module, "find_program", lambda *_names: None)
    monkeypatch.setattr(redis_module, "can_run", lambda _image: False)

    with pytest.raises(outcome, match="apt-get install redis-server"):
        Redis().start()


def is_listening(url: str) -> bool:
    port = urlsplit(url).port
    assert port is not None
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except ConnectionRefusedError:
        return False
    return True


def is_running(pid: int) -> bool:
    """A process that has ended and was not asked about yet by its parent runs no more either."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


def wait_until(condition: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)
