"""`up`: the controller of a stack whose frontier and workers run in containers of their own.

It crawls what the environment names (SEED, WORKERS, MODULE, and every setting), and ends with the crawl's exit code; without a seed
it says how to give one, and waits. Containers come back: one that was killed takes its crawl up again, one whose crawl has failed
ends as it did before, so that a restart policy can be given to it without harm.
"""

import asyncio
import re
import signal
import socket
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from gossamer.records import CrawlStatus
from services.controller import crawls
from services.controller.crawls import Place
from services.controller.exits import Exit
from services.controller.outside import Outside
from services.controller.reading import begun

HOW_TO_SEED: Final = """\
The stack is up, and waits: no SEED was given. A crawl is started by

  docker compose run --rm controller --seed https://example.com --module jsonl

or by SEED=https://example.com docker compose up. What modules write is in ./out.
"""


#: Between an end and a start by Docker's restart policy: it begins with a tenth of a second, and doubles.
AT_ONCE_S: Final = 10.0


async def unfinished_place(seeds: tuple[str, ...], outside: Outside) -> Place | None:
    """The latest crawl here, if it began with these seeds and has not ended: a container that was killed goes on with it."""
    known = crawls.all_here()
    if not known or known[-1].seeds != seeds:
        return None
    record = await begun(known[-1], outside)
    return known[-1] if record is not None and record.status is not CrawlStatus.ENDED else None


def failed_just_now(environ: Mapping[str, str], now: float) -> Exit | None:
    """The code with which this very container ended, if that is why it starts again: Docker does so at once, operators can't."""
    try:
        left = now - _marker(environ).stat().st_mtime
        code = Exit(int(_marker(environ).read_text()))
    except (FileNotFoundError, ValueError):
        return None
    return code if left < AT_ONCE_S else None


def note_end(environ: Mapping[str, str], ended: Exit) -> None:
    """An end without failure needs no note: no policy starts such a container again, and an operator who does wants a new crawl."""
    if ended is Exit.DONE:
        _marker(environ).unlink(missing_ok=True)
        return
    _marker(environ).parent.mkdir(parents=True, exist_ok=True)
    _marker(environ).write_text(str(int(ended)))


def _marker(environ: Mapping[str, str]) -> Path:
    """A container keeps its host's name when it is restarted, and no other one has it."""
    name = re.sub(r"[^A-Za-z0-9-]", "", environ.get("HOSTNAME", "")) or socket.gethostname()
    return crawls.CRAWLS / f".ended-{name}"


async def wait_for_a_signal(say: Callable[[], None]) -> None:
    """Until somebody ends the process. What `say` says is said when that can be heard."""
    ended, loop = asyncio.Event(), asyncio.get_running_loop()
    for each in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(each, ended.set)
    say()
    await ended.wait()
