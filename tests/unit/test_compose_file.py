"""What can be said of the stack without Docker: which settings it passes on, what it publishes, what the keys service makes."""

import base64
import hashlib
import json
import os
import re
import stat
from pathlib import Path

import pytest

from gossamer.kinds import token
from gossamer.settings import BY_KEY
from services.keys import files, folders
from services.keys.credentials import VARIABLES, Secrets, WrongSecret, addresses, draw, kept_in, with_given

ROOT = Path(__file__).parents[2]
COMPOSE = (ROOT / "docker-compose.yml").read_text()
MINIO = (ROOT / "docker-compose.minio.yml").read_text()

#: Set for the stack, or named in it by shorter words.
NOT_PASSED_ON = {"engine", "roles", "state", "rabbitmq_url", "redis_url", "s3_url", "rank_api_key", "seed", "module", "workers"}


def service(name: str) -> str:
    """Its lines in docker-compose.yml."""
    (found,) = re.findall(rf"^  {name}:\n((?:    .*\n|\n)+)", COMPOSE.partition("\nservices:\n")[2], re.MULTILINE)
    return str(found)


# --- The file ---


def test_every_setting_reaches_the_controller_and_no_name_is_made_up() -> None:
    lines = service("controller") + COMPOSE.partition("x-role: &role\n")[2].partition("\n\n")[0]
    passed = set(re.findall(r"^ +(GOSSAMER_[A-Z0-9_]+):$", lines, re.MULTILINE))
    assert passed == {setting.variable for key, setting in BY_KEY.items() if key not in NOT_PASSED_ON}
    assert BY_KEY.keys() >= NOT_PASSED_ON


def test_settings_of_a_crawl_are_told_to_the_controller_alone() -> None:
    for name in ("frontier", "worker"):
        assert "environment: *role\n" in service(name)


@pytest.mark.parametrize("text", [COMPOSE, MINIO], ids=["docker-compose.yml", "docker-compose.minio.yml"])
def test_nothing_is_published_and_no_password_is_written_down(text: str) -> None:
    assert "ports:" not in text
    values = re.findall(r"^ *(?:- )?\w*(?:PASS|SECRET|KEY)\w*: *(\S+)$", text, re.MULTILINE)
    assert [value for value in values if not value.startswith("/run/keys/")] == []


@pytest.mark.parametrize("text", [COMPOSE, MINIO], ids=["docker-compose.yml", "docker-compose.minio.yml"])
def test_every_image_is_a_variable_with_a_tag_that_says_something(text: str) -> None:
    images = re.findall(r"image: (.+)", text)
    assert images
    for image in images:
        found = re.fullmatch(r"\$\{[A-Z0-9_]+_IMAGE:-[\w/.-]+:([\w.-]+)\}", image)
        assert found
        assert found[1] != "latest"


def test_both_files_that_name_the_base_image_name_the_same() -> None:
    (here,) = re.findall(r"PYTHON_IMAGE: \$\{PYTHON_IMAGE:-(.+)\}", COMPOSE)
    (there,) = re.findall(r"^ARG PYTHON_IMAGE=(.+)$", (ROOT / "Dockerfile").read_text(), re.MULTILINE)
    assert here == there


def test_servers_refuse_or_wait_before_their_memory_is_over() -> None:
    """One that is killed for memory is worse than one that says no."""
    (redis, limit) = (re.search(rf"\${{{name}:-(\d+)g", COMPOSE) for name in ("REDIS_MAXMEMORY", "REDIS_MEM_LIMIT"))
    assert redis
    assert limit
    assert 2 * int(redis[1]) <= int(limit[1])  # a fork that rewrites the log may need as much again
    assert "mem_limit: 1g" in service("rabbitmq")
    assert int(files.RABBITMQ_MEMORY.removesuffix("MB")) <= 600


def test_the_image_is_made_of_the_code_alone() -> None:
    assert (ROOT / ".dockerignore").read_text().splitlines()[1:] == [
        "*",
        "!requirements.lock",
        "!requirements-parquet.lock",
        *(f"!{folder}" for folder in ("gossamer", "adapters", "modules", "services")),
        "**/__pycache__",
    ]


# --- The keys ---


def test_secrets_are_drawn_once_and_kept(tmp_path: Path) -> None:
    first = kept_in(tmp_path / "secrets.json")
    assert kept_in(tmp_path / "secrets.json") == first
    assert kept_in(tmp_path / "others.json") != first
    assert min(len(first.rabbitmq_password), len(first.redis_password), len(first.s3_secret_key)) >= 40


def test_what_is_damaged_is_never_drawn_anew(tmp_path: Path) -> None:
    """The servers know the old ones."""
    (tmp_path / "secrets.json").write_text("{")
    with pytest.raises(ValueError, match="Expecting"):
        kept_in(tmp_path / "secrets.json")


def test_what_the_operator_gives_beats_what_was_drawn() -> None:
    drawn = draw()
    given = with_given(drawn, {"REDIS_PASSWORD": "chosen-by-hand", "RABBITMQ_PASSWORD": ""})
    assert (given.redis_password, given.rabbitmq_password) == ("chosen-by-hand", drawn.rabbitmq_password)


@pytest.mark.parametrize("value", ["short", "with space in it", "with@sign-in-it", "x" * 129, 'quote"quote"', "line\nline-line"])
@pytest.mark.parametrize("variable", sorted(set(VARIABLES.values()) - {"RABBITMQ_USER"}))
def test_a_password_that_no_url_or_file_could_hold_is_refused_and_not_shown(variable: str, value: str) -> None:
    with pytest.raises(WrongSecret) as refused:
        with_given(draw(), {variable: value})
    assert variable in str(refused.value)
    assert value not in str(refused.value)


def test_roles_are_sent_to_the_operators_own_servers_where_named() -> None:
    known = draw()
    own = {"GOSSAMER_REDIS_URL": "rediss://:p@cache.example:6380/1"}
    assert addresses(known, own).redis_url == "rediss://:p@cache.example:6380/1"
    assert addresses(known, own).rabbitmq_url == f"amqp://gossamer:{known.rabbitmq_password}@rabbitmq:5672/%2F"
    bucket = {"GOSSAMER_S3_URL": "https://s3.example/pages", "AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "b"}
    at = addresses(known, bucket)
    assert (at.s3_url, at.access_key, at.secret_key) == ("https://s3.example/pages", "a", "b")


@pytest.mark.parametrize(
    "environ",
    [
        pytest.param({"GOSSAMER_REDIS_URL": "localhost:6379"}, id="no scheme"),
        pytest.param({"GOSSAMER_RABBITMQ_URL": "http://hidden"}, id="another scheme"),
        pytest.param({"GOSSAMER_S3_URL": "https://hidden/pages"}, id="a bucket without its keys"),
    ],
)
def test_a_server_that_can_not_be_meant_is_refused_by_its_variable(environ: dict[str, str]) -> None:
    with pytest.raises(WrongSecret) as refused:
        addresses(draw(), environ)
    assert next(iter(environ)) in str(refused.value)
    assert "hidden" not in str(refused.value)


def test_each_folder_holds_what_its_container_needs_and_no_other_servers_password() -> None:
    known = Secrets("user", "for-rabbitmq", "for-redis", "access", "for-s3")
    given = {folder: "\n".join(texts.values()) for folder, texts in files.contents(known, addresses(known, {})).items()}
    held = {folder: [word for word in ("for-rabbitmq", "for-redis", "for-s3") if word in text] for folder, text in given.items()}
    assert held == {
        "rabbitmq": [],  # a hash is enough for it
        "redis": ["for-redis"],
        "s3": ["for-s3"],
        "roles": ["for-rabbitmq", "for-redis", "for-s3"],
    }


def test_the_key_of_the_rank_api_is_a_file_of_the_roles_and_none_is_a_word_for_it() -> None:
    variable = "GOSSAMER_RANK_API_KEY"
    roles = [files.contents(draw(), addresses(draw(), environ))["roles"] for environ in ({}, {variable: "a+key/="})]
    assert [each["rank-api-key"] for each in roles] == ["none", "a+key/="]
    for each in roles:
        token().parse(each["rank-api-key"])
    with pytest.raises(WrongSecret, match=variable) as refused:
        addresses(draw(), {variable: "two words"})
    assert "two" not in str(refused.value)


def test_the_frontier_is_let_out_by_a_file_of_its_own() -> None:
    assert "networks: [backend]\n" in service("frontier")
    assert "  frontier:\n    networks: [backend, egress]\n" in (ROOT / "docker-compose.rank-api.yml").read_text()


def test_rabbitmq_finds_the_password_behind_its_hash() -> None:
    salted = base64.b64decode(files.password_hash("secret", b"salt"))
    assert salted == b"salt" + hashlib.sha256(b"saltsecret").digest()
    definitions = json.loads(files.contents(draw(), addresses(draw(), {}))["rabbitmq"]["definitions.json"])
    assert [user["name"] for user in definitions["users"]] == ["gossamer"]
    assert "administrator" not in definitions["users"][0]["tags"]


def test_what_is_written_to_a_shared_folder_stays_its_owners(tmp_path: Path) -> None:
    """Whatever the umask of who writes there."""
    tmp_path.chmod(0o750)
    lists = folders.share(tmp_path, 10001)
    before = os.umask(0o077)
    try:
        (tmp_path / "crawls").mkdir()
        (tmp_path / "crawls" / "page").touch()
    finally:
        os.umask(before)

    if lists:
        assert stat.S_IMODE((tmp_path / "crawls").stat().st_mode) & 0o070 == 0o070  # what the list's users have, at most
        assert stat.S_IMODE((tmp_path / "crawls" / "page").stat().st_mode) & 0o060 == 0o060
        assert os.getxattr(tmp_path / "crawls", "system.posix_acl_default") == os.getxattr(tmp_path, "system.posix_acl_default")
    else:
        assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o777
