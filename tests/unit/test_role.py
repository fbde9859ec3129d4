"""What a role is told, how it says how it is, and what it logs."""

import asyncio
import json
import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from gossamer.errors import BrokerUnavailable, SettingsError
from gossamer.settings import Log
from gossamer.walk import Role
from services.role.health import answering
from services.role.logs import start_logging
from services.role.words import Help, Words, read

SERVERS = {
    "GOSSAMER_RABBITMQ_URL": "amqp://u:rabbit-secret@h",
    "GOSSAMER_REDIS_URL": "redis://:redis-secret@h",
    "GOSSAMER_S3_URL": "http://h:8333/pages",
    "AWS_ACCESS_KEY_ID": "key",
    "AWS_SECRET_ACCESS_KEY": "s3-secret",
}


def words(*argv: str, **environ: str) -> Words:
    told = read(Role.WORKER, argv, {**SERVERS, **environ})
    assert isinstance(told, Words)
    return told


# --- Words ---


def test_a_role_needs_its_crawl_and_its_servers_and_nothing_else() -> None:
    told = words("--crawl", "c-1")

    assert told.crawl == "c-1"
    assert told.servers.redis_url == "redis://:redis-secret@h"
    assert told.servers.secret_key == "s3-secret"
    assert (told.modules, told.out, told.health, told.log, told.tied) == ((), Path("out"), None, Log.HUMAN, False)


def test_the_environment_says_it_as_well_and_an_argument_beats_it() -> None:
    environ = {"CRAWL": "c-2", "MODULE": "noop jsonl:path=x", "OUT": "/out", "HEALTH": "0.0.0.0:8080", "GOSSAMER_LOG": "json"}

    told = words(**environ)
    assert (told.crawl, told.modules, told.out) == ("c-2", ("noop", "jsonl:path=x"), Path("/out"))
    assert (told.health, told.log) == (("0.0.0.0", 8080), Log.JSON)

    told = words("--crawl", "c-3", "--module", "noop", "--log", "human", "--health", "[::1]:1", **environ)
    assert (told.crawl, told.modules, told.log, told.health) == ("c-3", ("noop",), Log.HUMAN, ("::1", 1))


def test_secrets_may_lie_in_files(tmp_path: Path) -> None:
    for name in SERVERS:
        (tmp_path / name).write_text(SERVERS[name] + "\n")
    told = read(Role.FRONTIER, ["--crawl", "c"], {f"{name}_FILE": str(tmp_path / name) for name in SERVERS})

    assert isinstance(told, Words)
    assert (told.servers.rabbitmq_url, told.servers.access_key) == ("amqp://u:rabbit-secret@h", "key")


def test_the_key_of_the_rank_api_is_for_frontiers_alone(tmp_path: Path) -> None:
    (tmp_path / "key").write_text("very-hidden\n")
    environ = {**SERVERS, "GOSSAMER_RANK_API_KEY_FILE": str(tmp_path / "key")}
    told = [read(role, ["--crawl", "c"], environ) for role in (Role.FRONTIER, Role.WORKER)]
    assert [each.rank_api_key for each in told if isinstance(each, Words)] == ["very-hidden", None]
    (tmp_path / "key").write_text("none")
    frontier = read(Role.FRONTIER, ["--crawl", "c"], environ)
    assert isinstance(frontier, Words)
    assert frontier.rank_api_key is None
    assert "very-hidden" not in repr(told[0])


@pytest.mark.parametrize(
    ("argv", "environ", "text"),
    [
        (["--crawl", "c"], {}, "GOSSAMER_RABBITMQ_URL, GOSSAMER_REDIS_URL, GOSSAMER_S3_URL"),
        (["--crawl", "../c"], SERVERS, "a crawl's id"),
        (["--crawl", "c", "--health", "x"], SERVERS, "HOST:PORT"),
        (["--crawl", "c", "--log", "loud"], SERVERS, "--log is 'loud'"),
        (["--crawl", "c", "--nonsense"], SERVERS, "--nonsense"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(argv: list[str], environ: dict[str, str], text: str) -> None:
    with pytest.raises(SettingsError) as refused:
        read(Role.WORKER, argv, environ)

    assert text in str(refused.value)
    assert "\n" not in str(refused.value)
    assert "secret" not in str(refused.value)


def test_settings_of_the_crawl_in_the_environment_are_not_the_roles_business() -> None:
    assert words("--crawl", "c", GOSSAMER_MAX_PAGES="5").crawl == "c"


@pytest.mark.parametrize("role", [Role.FRONTIER, Role.WORKER])
def test_help_names_every_way_to_tell_it(role: Role) -> None:
    told = read(role, ["--help"], {})

    assert isinstance(told, Help)
    for word in ("--crawl", "CRAWL", "GOSSAMER_RABBITMQ_URL", "GOSSAMER_REDIS_URL", "GOSSAMER_S3_URL", "SIGTERM"):
        assert word in told.text


def test_without_a_crawl_it_serves_whichever_is_announced() -> None:
    assert words().crawl is None


# --- Health ---


async def ask(port: int, request: bytes = b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n") -> tuple[int, dict[str, object]]:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(request)
    answer = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    await writer.wait_closed()
    head, _, body = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]), json.loads(body)


async def fine() -> None:
    pass


async def away() -> None:
    raise BrokerUnavailable("amqp://u:secret@h refused")


async def test_a_role_whose_servers_are_there_is_well(unused_tcp_port: int) -> None:
    async with answering(("127.0.0.1", unused_tcp_port), {"redis": fine, "s3": fine}):
        assert await ask(unused_tcp_port) == (200, {"alive": True, "servers": {"redis": "reachable", "s3": "reachable"}})


async def test_a_role_with_a_server_away_says_which_and_not_where(unused_tcp_port: int) -> None:
    async with answering(("127.0.0.1", unused_tcp_port), {"rabbitmq": away, "redis": fine}):
        assert await ask(unused_tcp_port) == (503, {"alive": True, "servers": {"rabbitmq": "away", "redis": "reachable"}})


async def test_other_paths_are_not_there_and_nonsense_ends_nothing(unused_tcp_port: int) -> None:
    async with answering(("127.0.0.1", unused_tcp_port), {"redis": fine}):
        assert (await ask(unused_tcp_port, b"GET / HTTP/1.1\r\n\r\n"))[0] == 404
        _, writer = await asyncio.open_connection("127.0.0.1", unused_tcp_port)
        writer.write(b"x" * 20_000)
        writer.close()
        assert (await ask(unused_tcp_port))[0] == 200


# --- Logs ---


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    root, ours = logging.getLogger(), logging.getLogger("gossamer")
    before = root.handlers[:], root.level, ours.level
    yield
    root.handlers[:], root.level, ours.level = before


def test_a_line_of_json_has_the_event_its_words_and_its_fields(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging(Log.JSON)
    logging.getLogger("gossamer.x").warning("worker.fenced", extra={"worker": 3})

    line = json.loads(capsys.readouterr().err)
    assert (line["level"], line["event"], line["worker"], line["text"]) == ("warning", "worker.fenced", 3, "worker.fenced worker=3")


def test_a_line_for_people_is_one_line_and_moves_no_cursor(capsys: pytest.CaptureFixture[str]) -> None:
    start_logging(Log.HUMAN)
    logging.getLogger("gossamer.x").warning("module %s failed: %s", "m", "\x1b[2J\nnot a line of ours")

    said = capsys.readouterr().err
    assert said.count("\n") == 1
    assert "\x1b" not in said
