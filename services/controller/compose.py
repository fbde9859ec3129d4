"""`--engine compose`: the crawl runs in containers, its controller as well; here they are started, and what that says is passed on.

The stack's servers are on a network of their own that this machine does not reach, so nothing here talks to them. The crawl's
folder here only says that it is in the stack; everything else is asked there, in a container that lives as long as the question.
"""

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from gossamer import kept
from gossamer.errors import EngineUnavailable, SettingsError
from gossamer.ids import CrawlId
from gossamer.options import parse_spec
from gossamer.settings import BY_KEY, Settings
from services.controller.crawls import Place
from services.controller.engines import Engine
from services.controller.exits import Exit
from services.controller.export.files import Target

ROOT: Final = Path(__file__).resolve().parents[2]
#: As the containers see it, and as this machine does.
OUT_THERE: Final = Path("/out")
OUT_HERE: Final = ROOT / "out"
SERVERS: Final = ("keys", "rabbitmq", "redis", "s3")
ROLES: Final = ("frontier", "worker")
#: On a command line.
SEEDS_MAX: Final = 50
#: Images are built, or fetched, at the first start.
START_S: Final = 1800
STOP_S: Final = 300


class Compose:
    """What `main` asks of a `Maker` before anything is made. There is no engine here to be opened: it is in its container."""

    def check(self, settings: Settings) -> None:
        """Also whether there is a Docker to run the stack on."""
        from services.controller.engines import beginning

        beginning.check(settings)
        _check_docker()

    async def open_engine(self, settings: Settings, crawl: CrawlId, folder: Path, *, resume: bool) -> Engine:
        raise AssertionError("a crawl in containers is run by `compose.crawl`")


def _check_docker() -> None:
    if shutil.which("docker") is None:
        raise SettingsError("--engine compose needs Docker with its compose plugin; there is no `docker` on the PATH")
    if subprocess.run(["docker", "compose", "version"], capture_output=True, check=False).returncode != 0:
        raise SettingsError("--engine compose needs Docker's compose plugin; `docker compose version` fails")


async def crawl(place: Place, settings: Settings) -> Exit:
    """A new crawl, to its end."""
    words = [*_seeds(settings.start.seeds, place), *_flags(settings, place)]
    # By whatever means they were named here: the stack is told by the environment.
    named = {"rank_api": settings.frontier.rank_api, "rank_api_key": settings.frontier.rank_api_key}
    os.environ.update({BY_KEY[key].variable: value for key, value in named.items() if value is not None})
    return await _run(place, words, settings.output.report, workers=settings.start.workers)


async def resume(place: Place, flags: Mapping[str, str]) -> Exit:
    """With as many workers as the stack has, or has by default: they are not the crawl's."""
    words = [word for key, value in flags.items() if key != "report" for word in (BY_KEY[key].flag, value)]
    report = Path(flags["report"]) if "report" in flags else None
    return await _run(place, ["resume", "--crawl", place.id, *words], report, workers=None)


async def _run(place: Place, words: Sequence[str], report: Path | None, *, workers: int | None) -> Exit:
    name = f"{place.id}-report.json"  # the controller there writes it where both can reach it
    with _stack(SERVERS + ROLES, workers=workers):
        code = await _controller(place, [*words, *(["--report", str(OUT_THERE / name)] if report is not None else [])])
    if report is not None and (OUT_HERE / name).exists():
        shutil.move(OUT_HERE / name, report)
    return code


async def ask(place: Place, verb: str, *words: str) -> Exit:
    """`status`, `stop`, `explain`, `dead-letters`: answered in the stack, which is started for it if it is not there."""
    with _stack(SERVERS, workers=None):
        return await _controller(place, [verb, "--crawl", place.id, *words])


async def export(place: Place, target: Target) -> Exit:
    """Written by the controller there, under the same name, where both can reach it; then brought to where it is wanted."""
    is_there = target.warc.resolve().parent == OUT_HERE.resolve()
    force = ["--force"] if is_there else []  # else a file of that name in ./out is another one, and stays
    code = await ask(place, "export", "--warc", str(OUT_THERE / target.warc.name), *force)
    if code in (Exit.DONE, Exit.INCOMPLETE) and not is_there:
        for path in (target.warc, target.index):
            shutil.move(OUT_HERE / path.name, path)
    return code


@contextmanager
def _stack(services: Sequence[str], workers: int | None) -> Iterator[None]:
    """While it lasts these services run. What was not running before is stopped again; volumes stay."""
    before = _running()
    scale = [] if workers is None else ["--scale", f"worker={workers}"]
    sys.stderr.write("Starting the stack (docker compose up) ...\n")
    _compose("up", "--detach", "--wait", "--build", "--quiet-pull", *scale, *services, timeout_s=START_S)
    try:
        yield
    finally:
        started = [each for each in services if each not in before]
        if started:
            sys.stderr.write("Stopping the stack ...\n")
            _compose("stop", *started, timeout_s=STOP_S)


def _running() -> set[str]:
    listed = _compose("ps", "--services", "--status", "running", timeout_s=60)
    return set(listed.split())


def _compose(*words: str, timeout_s: float) -> str:
    """Raises `EngineUnavailable`, with Docker's last words, if it fails."""
    try:
        done = subprocess.run(_command(*words), capture_output=True, text=True, check=False, timeout=timeout_s)
    except subprocess.TimeoutExpired:
        raise EngineUnavailable(f"docker compose {words[0]} was not through after {timeout_s:.0f} s") from None
    if done.returncode != 0:
        last = (done.stderr.strip().splitlines() or ["it says nothing"])[-1]
        raise EngineUnavailable(f"docker compose {words[0]} failed: {last}")
    return done.stdout


def _command(*words: str) -> list[str]:
    # An operator may have files of their own, and says so in the way that Docker has for it.
    files = ["docker-compose.yml", *(["docker-compose.rank-api.yml"] if os.environ.get(BY_KEY["rank_api"].variable) else [])]
    named = [] if os.environ.get("COMPOSE_FILE") else [word for name in files for word in ("--file", str(ROOT / name))]
    return ["docker", "compose", "--project-directory", str(ROOT), *named, *words]


async def _controller(place: Place, words: Sequence[str]) -> Exit:
    """The controller in its container, on this terminal. Signals are its to hear: it decides how the crawl ends."""
    terminal = [] if sys.stdin.isatty() and sys.stdout.isatty() else ["--no-TTY"]
    command = _command("run", "--rm", "--no-deps", *terminal, "--env", f"CRAWL={place.id}", "controller", *words)
    process = await asyncio.create_subprocess_exec(*command, start_new_session=bool(terminal))
    loop = asyncio.get_running_loop()
    for each in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(each, _pass_on, process, each)
    try:
        return Exit(await process.wait())
    finally:
        for each in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(each)


def _pass_on(process: asyncio.subprocess.Process, which: signal.Signals) -> None:
    with suppress(ProcessLookupError):
        os.kill(process.pid, which)


def _seeds(seeds: Sequence[str], place: Place) -> list[str]:
    """More than a command line takes lie in a file."""
    if len(seeds) <= SEEDS_MAX:
        return [word for seed in seeds for word in ("--seed", seed)]
    name = f"{place.id}-seeds.txt"
    OUT_HERE.mkdir(exist_ok=True)
    (OUT_HERE / name).write_text("\n".join(seeds) + "\n", encoding="utf-8")
    return ["--seeds", str(OUT_THERE / name)]


def _flags(settings: Settings, place: Place) -> list[str]:
    """The settings as flags for the controller there, which knows nothing of this machine's files."""
    words: list[str] = []
    for key, written in json.loads(kept.to_text(settings)).items():
        if key in ("engine", "roles", "module", "report", "seed", "workers"):
            continue
        if key == "prioritizer":
            written = _plugin(written, key, place)
        elif key == "rank_file":
            written = str(_laid_there(Path(written), place))
        for value in written if isinstance(written, list) else [written]:
            words += [BY_KEY[key].flag, value]
    words += ["--workers", str(settings.start.workers)]
    return words + [word for text in settings.start.modules for word in ("--module", _plugin(text, "module", place))]


def _plugin(text: str, word: str, place: Place) -> str:
    """A module or a prioritizer as the containers find it."""
    spec = parse_spec(text, word)
    if not spec.name.endswith(".py"):
        return text
    return text.replace(spec.name, str(_laid_there(Path(spec.name), place)), 1)


def _laid_there(file: Path, place: Place) -> Path:
    """A file of this machine, laid where the containers can read it; its name there."""
    folder = OUT_HERE / "modules" / place.id
    folder.mkdir(parents=True, exist_ok=True)
    (folder / file.name).write_bytes(file.read_bytes())
    return OUT_THERE / (folder / file.name).relative_to(OUT_HERE)
