"""The stack as an operator runs it: `docker compose` in a checkout of its own, under a name of its own, gone when the test is over.

Nothing in it is the tests' own but the web that is crawled, which is one more container, and what is said in the environment.
"""

import json
import os
import secrets
import shlex
import shutil
import subprocess
import tempfile
import time
import urllib.request
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.servers.server import missing
from tests.servers.watchdog import Watchdog

ROOT: Final = Path(__file__).parents[2]
SEED: Final = "http://site1.synth.test:8000/"

#: A build, or the start of all containers, on a busy machine. Whatever takes longer has failed.
PATIENCE_S: Final = 240.0
COMMAND_S: Final = 60.0

#: Users of the checkout in the tests, if those may choose one: somebody who is not root, and in no container.
OWNER: Final = 12345 if os.geteuid() == 0 else os.geteuid()


@dataclass(frozen=True)
class Done:
    code: int
    said: str  #: stdout and stderr


@dataclass
class Project:
    """One checkout with one stack. `environ` is what the operator has set."""

    folder: Path
    name: str
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def out(self) -> Path:
        return self.folder / "out"

    def compose(self, *words: str, **environ: str) -> Done:
        return _run(["docker", "compose", *words], self.folder, {**self.environ, **environ}, PATIENCE_S)

    def done(self, *words: str, **environ: str) -> str:
        """What it said; it has to succeed."""
        done = self.compose(*words, **environ)
        assert done.code == 0, done.said
        return done.said

    def crawl_to_the_end(self, **environ: str) -> Done:
        """The command of the README that ends with the crawl's own exit code."""
        return self.compose("up", "--abort-on-container-exit", "--exit-code-from", "controller", SEED=SEED, **environ)

    def crawl(self, **environ: str) -> None:
        """Starts one on the stack that is up."""
        self.done("up", "--detach", "--no-deps", "--force-recreate", "controller", SEED=SEED, **environ)

    def containers(self, service: str) -> list[str]:
        return docker("ps", "--all", "--quiet", *self._labels(service)).split()

    def inspect(self, service: str) -> list[dict[str, Any]]:
        """As Docker knows its containers."""
        ids = self.containers(service)
        found: list[dict[str, Any]] = json.loads(docker("inspect", *ids)) if ids else []
        return found

    def inside(self, service: str, *words: str) -> str:
        return self.done("exec", "--no-TTY", service, *words)

    def kill(self, service: str) -> None:
        """As the kernel does when memory is short. Not by `docker kill`: what an operator ends is not restarted."""
        pid = self.inspect(service)[0]["State"]["Pid"]
        helper = ["--pid", "host", "--user", "0:0", "--network", "none", "--cap-drop", "ALL", "--cap-add", "KILL"]
        command = f"import os; os.kill({int(pid)}, 9)"
        docker("run", "--rm", *helper, "--entrypoint", "python", self.environ["CRAWLER_IMAGE"], "-c", command)

    def ended(self) -> int:
        """Waits until the controller has ended for good; its exit code."""

        def state() -> dict[str, Any]:
            return dict(self.inspect("controller")[0]["State"])

        until(lambda: state()["Status"] == "exited", "the controller has ended", self.log)
        return int(state()["ExitCode"])

    def log(self) -> str:
        return self.compose("logs", "--no-color", "--tail", "40", "controller", "frontier", "worker").said

    def report(self) -> dict[str, Any]:
        report: dict[str, Any] = json.loads((self.out / "report.json").read_text())
        return report

    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.out / "pages.jsonl").read_text().splitlines()]

    def clear(self) -> None:
        """Outputs of an earlier crawl: a new one would refuse to write over them."""
        for path in (*self.out.glob("pages.jsonl*"), *self.out.glob("*.json")):
            shutil.rmtree(path) if path.is_dir() else path.unlink()

    # --- The web beside it ---

    def score(self) -> dict[str, Any]:
        return self._ask_web("score")

    def requests(self) -> int:
        """How many the web has seen."""
        return int(self._ask_web("stats")["requests"])

    def reset_web(self) -> None:
        urllib.request.urlopen(urllib.request.Request(f"{self._control()}/-/reset", method="POST"), timeout=COMMAND_S).close()

    def _ask_web(self, what: str) -> dict[str, Any]:
        with urllib.request.urlopen(f"{self._control()}/-/{what}", timeout=COMMAND_S) as answer:
            said: dict[str, Any] = json.load(answer)
            return said

    def _control(self) -> str:
        return f"http://{self.done('port', 'web', '9000').strip()}"

    def _labels(self, service: str) -> list[str]:
        labels = (f"com.docker.compose.project={self.name}", f"com.docker.compose.service={service}")
        return [word for label in (*labels, "com.docker.compose.oneoff=False") for word in ("--filter", f"label={label}")]


@contextmanager
def project(image: str, *overlays: str, web: str) -> Iterator[Project]:
    """A clean checkout: what a commit of this tree would hold, no .env, no volumes, nothing built; all of it removed afterwards."""
    name = f"gossamer-test-{secrets.token_hex(4)}"
    folder = Path(tempfile.mkdtemp(prefix=f"{name}-"))
    command = ["docker", "compose", "--project-name", name, "down", "--volumes", "--timeout", "10", "--remove-orphans"]
    watchdog = Watchdog(f"cd {shlex.quote(str(folder))} && {shlex.join(command)}; rm -rf {shlex.quote(str(folder))}")
    net = f"198.18.{secrets.randbelow(256)}.0/24"
    environ = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("GOSSAMER_", "COMPOSE_", "AWS_"))},
        "COMPOSE_PROJECT_NAME": name,
        "COMPOSE_FILE": os.pathsep.join(("docker-compose.yml", *overlays, "tests/compose/web.yml")),
        "CRAWLER_IMAGE": image,
        "WEB": web,
        "WEB_NET": net,
        "GOSSAMER_ALLOW_NET": net,
        "GOSSAMER_DELAY": "0",
        "GOSSAMER_MAX_BYTES": "1GB",
        "GOSSAMER_REPORT": "report.json",
        "MODULE": "jsonl:path=pages.jsonl",
    }
    try:
        _check_out(folder)
        yield Project(folder, name, environ)
    finally:
        done = _run(command, folder, environ, PATIENCE_S)
        shutil.rmtree(folder, ignore_errors=True)
        watchdog.call_off()
        assert done.code == 0, done.said


def _check_out(folder: Path) -> None:
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
        timeout=COMMAND_S,
    )
    folder.chmod(0o755)
    for name in filter(None, listed.stdout.decode().split("\0")):
        if (ROOT / name).is_file():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, folder / name)
    (folder / "out").mkdir(exist_ok=True)
    if os.geteuid() == 0:
        for path in (folder, *folder.rglob("*")):
            os.chown(path, OWNER, OWNER)


def need_docker() -> None:
    """Skips at a desk without Docker, and fails where everything must be there."""
    if shutil.which("docker") is None or _run(["docker", "info"], ROOT, os.environ, COMMAND_S).code != 0:
        missing("Docker", "install Docker, and start it")
    if _run(["docker", "compose", "version"], ROOT, os.environ, COMMAND_S).code != 0:
        missing("docker compose", "install Docker's compose plugin")


def docker(*words: str) -> str:
    done = subprocess.run(["docker", *words], capture_output=True, text=True, timeout=COMMAND_S, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def until(
    condition: Callable[[], bool], what: str, explain: Callable[[], str] = lambda: "", patience_s: float = PATIENCE_S
) -> None:
    deadline_s = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline_s, f"not within {patience_s:.0f} s: {what}\n{explain()}"
        time.sleep(0.1)


def _run(command: list[str], folder: Path, environ: Mapping[str, str], timeout_s: float) -> Done:
    done = subprocess.run(
        command,
        cwd=folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=timeout_s,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(errors="replace"))
