"""`controller.py --engine compose`: the stack is started, crawls, says what it does, and is stopped, all from one command."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.compose.project import PATIENCE_S, SEED, Done, Project, project
from tests.system.web import PERFECT, verdict

PAGES = 150

TITLES = """\
from gossamer import Module, Page

class Titles(Module):
    \"\"\"Writes one title a page, each into a file of its own.\"\"\"
    async def open(self, crawl):
        self.folder = crawl.out_dir / "titles"
        self.folder.mkdir(exist_ok=True)
    def visit(self, page: Page) -> None:
        (self.folder / page.id.hex()).write_text(page.title or "")
"""


@pytest.fixture(scope="module")
def checkout(image: str) -> Iterator[Project]:
    with project(image, web=f"--sites 5 --pages {PAGES} --seed 3") as checkout:
        checkout.done("up", "--detach", "--wait", "--wait-timeout", "200", "web")
        yield checkout


def command(checkout: Project, *words: str) -> Done:
    """As `python controller.py` in the checkout, in an environment that is there already."""
    environ = {**checkout.environ, "PYTHONPATH": str(checkout.folder)}
    environ.pop("MODULE")
    environ.pop("GOSSAMER_REPORT")
    done = subprocess.run(
        [sys.executable, "-m", "services.controller", *words],
        cwd=checkout.folder,
        env=environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=2 * PATIENCE_S,
        check=False,
    )
    return Done(done.returncode, done.stdout.decode(errors="replace"))


def test_one_command_starts_the_stack_crawls_and_stops_what_it_started(checkout: Project) -> None:
    (checkout.folder / "titles.py").write_text(TITLES)
    words = ("--engine", "compose", "--seed", SEED, "--workers", "2", "--report", "mine.json")
    done = command(checkout, *words, "--module", "jsonl:path=pages.jsonl", "--module", "./titles.py")

    assert done.code == 0, done.said
    assert "complete, every URL that was found is closed" in done.said
    assert verdict(checkout.score()) == PERFECT
    report = json.loads((checkout.folder / "mine.json").read_text())
    assert (report["outcome"], report["pages"], report["workers"]) == ("complete", PAGES, 2)
    assert len(checkout.lines()) == PAGES
    assert len(os.listdir(checkout.out / "titles")) == PAGES
    running = checkout.done("ps", "--services", "--status", "running").split()
    assert set(running) == {"keys", "web"}, "what ran before it, and nothing else"

    status = command(checkout, "status", "--json")
    assert status.code == 0, status.said
    told = json.loads(status.said[status.said.index("{") : status.said.rindex("}") + 1])
    assert (told["crawl"], told["status"], told["pages"]) == (report["crawl"], "ended", PAGES)


def test_a_budget_is_raised_by_resume(checkout: Project) -> None:
    checkout.reset_web()
    done = command(checkout, "--engine", "compose", "--seed", SEED, "--max-pages", "20", "--workers", "2")
    assert done.code == 0, done.said
    assert "ended by --max-pages" in done.said

    done = command(checkout, "resume", "--max-pages", "40", "--report", "mine.json")

    assert done.code == 0, done.said
    report = json.loads((checkout.folder / "mine.json").read_text())
    assert (report["outcome"], report["pages"]) == ("page_budget", 40)
    assert checkout.score()["repeats"] == 0


def test_bad_input_is_said_before_anything_is_started(checkout: Project) -> None:
    done = command(checkout, "--engine", "compose", "--seed", SEED, "--module", "nonsense")

    assert (done.code, len(done.said.splitlines())) == (2, 1), done.said
