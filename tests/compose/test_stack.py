"""A stack that stays up: who is what in it, what each may know and reach, and a crawl while containers come, go and die."""

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.compose.project import Project, docker, project, until
from tests.system.web import PERFECT, verdict

PAGES = 300
OURS = ("frontier", "worker", "controller")
SERVERS = ("rabbitmq", "redis", "s3")


@pytest.fixture(scope="module")
def stack(image: str) -> Iterator[Project]:
    """Answers come after 20 ms, so that a crawl has a middle. What dies is noticed in three seconds."""
    with project(image, web=f"--sites 10 --pages {PAGES} --seed 2 --latency-ms 20") as stack:
        stack.environ |= {"GOSSAMER_LEASE": "3s", "WORKERS": "2"}
        stack.done("up", "--detach", "--wait", "--wait-timeout", "200")
        yield stack


def crawl_begun(stack: Project, **environ: str) -> None:
    """A new one, of which some pages are fetched."""
    stack.clear()
    stack.reset_web()
    stack.crawl(**environ)
    until(lambda: stack.requests() >= 60, "some pages are fetched", stack.log)


def assert_whole(stack: Project, *, may_repeat: int = 0) -> None:
    """It ends by itself, with everything, once."""
    assert stack.ended() == 0, stack.log()
    score = stack.score()
    assert stack.report()["outcome"] == "complete", stack.log()
    assert len({line["id"] for line in stack.lines()}) == len(stack.lines()) == PAGES
    assert (score["missed"], score["forbidden"], score["wrong"], score["most_in_flight"]) == (0, 0, 0, 1), stack.log()
    assert score["repeats"] <= may_repeat


# --- Nobody has more than they need ---


@pytest.mark.parametrize("service", OURS + SERVERS)
def test_no_container_is_root_or_can_become_it_or_changes_its_files(service: str, stack: Project) -> None:
    (first, *_) = stack.inspect(service)

    assert first["Config"]["User"] not in ("", "0", "0:0", "root")
    assert first["HostConfig"]["ReadonlyRootfs"]
    assert not first["HostConfig"]["Privileged"]
    assert first["HostConfig"]["CapDrop"] == ["ALL"]
    assert not first["HostConfig"]["CapAdd"]
    assert "no-new-privileges:true" in first["HostConfig"]["SecurityOpt"]
    assert first["HostConfig"]["Memory"] > 0
    assert first["HostConfig"]["PidsLimit"] > 0
    assert not first["HostConfig"]["PortBindings"]


def test_a_worker_sees_from_inside_that_it_is_nobody(stack: Project) -> None:
    said = stack.inside("worker", "cat", "/proc/self/status")
    status = dict(re.findall(r"^(\w+):\s+(.*)$", said, re.MULTILINE))
    assert set(status["Uid"].split()) == {"10001"}
    assert (int(status["CapEff"], 16), int(status["CapBnd"], 16), status["NoNewPrivs"]) == (0, 0, "1")
    assert stack.compose("exec", "--no-TTY", "worker", "touch", "/app/x").code != 0


@pytest.mark.parametrize("service", [*SERVERS, "frontier", "controller"])
def test_what_need_not_reach_the_internet_has_no_way_to_it(service: str, stack: Project) -> None:
    """The web of the test stands for the internet: what reaches one network outside reaches them all."""
    web = stack.inspect("web")[0]["NetworkSettings"]["Networks"][f"{stack.name}_egress"]["IPAddress"]
    script = f"import socket; s = socket.socket(); s.settimeout(3); print(s.connect_ex(('{web}', 8000)))"

    def tries(service: str) -> int:
        """From its network: not every image has something to try with."""
        network = f"container:{stack.containers(service)[0]}"
        return int(
            docker("run", "--rm", "--network", network, "--entrypoint", "python", stack.environ["CRAWLER_IMAGE"], "-c", script)
        )

    assert tries("worker") == 0
    assert tries(service) != 0
    (only,) = stack.inspect(service)[0]["NetworkSettings"]["Networks"]
    assert json.loads(docker("network", "inspect", only))[0]["Internal"]


def test_of_s3_only_what_asks_for_a_key_listens_to_others(stack: Project) -> None:
    """Master, volumes and filer would let anybody read everything. 18333 is for other S3 servers, and can't be moved."""
    ports = [port for each in (7333, 8080, 8111, 8333, 8888, 9333, 23646) for port in (each, each + 10_000)] + [8181, 9101]
    script = f"import socket; print([port for port in {ports} if socket.socket().connect_ex(('s3', port)) == 0])"
    assert json.loads(stack.inside("worker", "python", "-c", script)) in ([8333], [8333, 18333])


def test_passwords_are_in_no_place_but_the_files_of_those_who_need_them(stack: Project, image: str) -> None:
    script = "import json; print(json.dumps([open(f'/run/keys/{n}').read() for n in ('rabbitmq-url','redis-url','secret-key')]))"
    amqp, redis, secret = json.loads(stack.inside("worker", "python", "-c", script))
    passwords = [amqp.split(":")[2].split("@")[0], redis.split(":")[2].split("@")[0], secret]
    assert len(set(passwords)) == 3
    assert min(map(len, passwords)) >= 40

    services = ("keys", *SERVERS, *OURS)
    shown = {
        "the configuration": stack.done("config"),
        "the image": docker("history", "--no-trunc", image) + docker("inspect", image),
        "the logs": stack.done("logs", "--no-color"),
        **{f"docker inspect of {service}": json.dumps(stack.inspect(service)) for service in services},
        "RabbitMQ's files": stack.inside("rabbitmq", "sh", "-c", "cat /run/keys/*"),
    }
    assert [place for place, text in shown.items() if any(password in text for password in passwords)] == []
    for service in SERVERS:
        mounted = {mount["Name"].removeprefix(f"{stack.name}_") for mount in stack.inspect(service)[0]["Mounts"] if "Name" in mount}
        assert {name for name in mounted if name.startswith("keys")} == {f"keys-{service}"}


def test_servers_refuse_whoever_has_no_password(stack: Project) -> None:
    script = """
import pika, redis, boto3, botocore, json
from botocore.config import Config
said = []
for user, password in (("guest", "guest"), ("gossamer", "gossamer")):
    try:
        pika.BlockingConnection(pika.URLParameters(f"amqp://{user}:{password}@rabbitmq:5672/%2F"))
    except Exception as error:
        said.append(type(error).__name__)
try:
    redis.Redis(host="redis").ping()
except Exception as error:
    said.append(type(error).__name__)
keys = {"aws_access_key_id": "any", "aws_secret_access_key": "any", "region_name": "us-east-1"}
for config in (Config(), Config(signature_version=botocore.UNSIGNED)):
    try:
        boto3.client("s3", endpoint_url="http://s3:8333", config=config, **keys).list_objects_v2(Bucket="gossamer")
    except Exception as error:
        said.append(error.response["Error"]["Code"])
print(json.dumps(said))
"""
    said: list[Any] = json.loads(stack.inside("worker", "python", "-c", script))
    assert said[:3] == ["ProbableAuthenticationError", "ProbableAuthenticationError", "AuthenticationError"]
    assert said[3:] == ["InvalidAccessKeyId", "AccessDenied"]


# --- A crawl while things happen ---


def test_workers_come_and_go_in_the_middle(stack: Project) -> None:
    crawl_begun(stack, GOSSAMER_DELAY="0.1")
    for workers in (5, 3):
        seen = stack.requests()
        stack.done("up", "--detach", "--no-deps", "--no-recreate", "--scale", f"worker={workers}", "worker")
        assert len(stack.containers("worker")) == workers
        until(lambda seen=seen: stack.requests() > seen, "it goes on", stack.log)  # type: ignore[misc]

    assert_whole(stack)
    assert verdict(stack.score()) == PERFECT
    stack.done("up", "--detach", "--no-deps", "--no-recreate", "--scale", "worker=2", "worker")


#: What a worker has in hand: a request in each of its slots, and pages that came in while the last ones were stored; on a web as
#: small as this one seldom more than as many.
IN_HAND = 16 + 16
#: That is fetched again: of a worker that died, of both when their leases end because Redis is away for longer, or because a
#: controller that comes back can't know that they live.
MAY_REPEAT = {"worker": IN_HAND, "redis": 2 * IN_HAND, "controller": 2 * IN_HAND}


@pytest.mark.parametrize("service", ["keys", "rabbitmq", "redis", "s3", "frontier", "worker", "controller"])
def test_whatever_is_killed_comes_back_and_nothing_is_lost(service: str, stack: Project) -> None:
    crawl_begun(stack)
    restarts = stack.inspect(service)[0]["RestartCount"]

    stack.kill(service)

    assert_whole(stack, may_repeat=MAY_REPEAT.get(service, 0))
    assert stack.inspect(service)[0]["RestartCount"] == restarts + 1


# --- Verbs ---


def test_the_verbs_answer_from_a_container_of_their_own(stack: Project) -> None:
    status = stack.done("run", "--rm", "--no-TTY", "controller", "status", "--json")
    assert json.loads(status[status.index("{") :])["status"] == "ended"
    assert "--seed" in stack.done("run", "--rm", "--no-TTY", "controller", "--help")


def test_without_a_seed_it_says_how_to_give_one_and_waits(stack: Project) -> None:
    stack.done("up", "--detach", "--no-deps", "--force-recreate", "controller", SEED="")
    until(lambda: "docker compose run --rm controller --seed" in stack.done("logs", "controller"), "it says so", patience_s=30)
    stack.done("stop", "--timeout", "20", "controller")
    assert stack.inspect("controller")[0]["State"]["ExitCode"] == 0


def test_a_password_that_is_changed_counts_after_a_restart(stack: Project) -> None:
    new = {
        "RABBITMQ_PASSWORD": "changed-for-the-test-1",
        "REDIS_PASSWORD": "changed-for-the-test-2",
        "S3_SECRET_KEY": "changed-for-the-test-3",
    }
    stack.environ |= new
    stack.done("up", "--detach", "--wait", "--wait-timeout", "200", "keys")
    stack.done("restart", "--timeout", "20", *SERVERS, "frontier", "worker")
    stack.done("up", "--detach", "--wait", "--wait-timeout", "200", *SERVERS)
    stack.clear()

    stack.crawl(GOSSAMER_MAX_PAGES="20")

    assert stack.ended() == 0, stack.log()
    assert len(stack.lines()) == 20
    assert [
        place
        for place in ("rabbitmq", "redis", "s3", *OURS)
        if any(word in json.dumps(stack.inspect(place)) for word in new.values())
    ] == []
