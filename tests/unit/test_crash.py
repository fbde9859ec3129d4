"""The seam by which tests kill: it kills where it is told to, and is not there otherwise."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.crash import EXIT_CODE, ONCE, VARIABLE, step
from gossamer.walk import CRASH_POINTS, WALK, Step

ROOT = Path(__file__).parents[2]

SCRIPT = """
import asyncio
from gossamer.crash import step

@step("worker.judge")
async def judge():
    print("judged", flush=True)

@step("worker.links")
def links():
    print("linked", flush=True)

async def main():
    try:
        for _ in range(3):
            await judge()
            links()
    finally:
        print("cleaned up", flush=True)

asyncio.run(main())
"""


def run(crash_at: str, **more: str) -> tuple[int, list[str]]:
    environment = {**os.environ, VARIABLE: crash_at, **more}
    command = [sys.executable, "-c", SCRIPT]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=60, check=False)
    return done.returncode, done.stdout.split("\n")[:-1]


@pytest.mark.parametrize(
    ("crash_at", "printed"),
    [
        pytest.param("worker.judge:before", [], id="before the first step"),
        pytest.param("worker.judge:after", ["judged"], id="after it"),
        pytest.param("worker.links:before:2", ["judged", "linked", "judged"], id="before a plain function, the second time"),
        pytest.param("worker.links:after:3", ["judged", "linked"] * 3, id="after it, the third time"),
    ],
)
def test_a_process_dies_at_the_point_that_is_named_and_cleans_nothing_up(crash_at: str, printed: list[str]) -> None:
    assert run(crash_at) == (EXIT_CODE, printed)


def test_a_process_that_is_to_die_once_leaves_a_mark_and_whoever_finds_it_lives(tmp_path: Path) -> None:
    mark = tmp_path / "died"

    assert run("worker.links:before:2", **{ONCE: str(mark)}) == (EXIT_CODE, ["judged", "linked", "judged"])
    assert mark.exists()
    assert run("worker.links:before:2", **{ONCE: str(mark)}) == (0, [*["judged", "linked"] * 3, "cleaned up"])


def test_without_a_point_nothing_happens() -> None:
    assert run("") == (0, [*["judged", "linked"] * 3, "cleaned up"])


def test_a_point_that_does_not_exist_is_refused_by_name() -> None:
    environment = {**os.environ, VARIABLE: "worker.jugde:after"}
    done = subprocess.run([sys.executable, "-c", SCRIPT], env=environment, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "'worker.jugde:after' is no crash point" in done.stderr


def test_the_mark_costs_nothing_when_it_is_off() -> None:
    def judge() -> None: ...

    assert step("worker.judge")(judge) is judge


def test_a_step_that_is_not_in_the_walk_cant_be_marked() -> None:
    with pytest.raises(AssertionError):
        step("worker.juggle")


def test_every_step_has_two_points_and_a_name_of_its_own() -> None:
    assert len(set(CRASH_POINTS)) == 2 * len(WALK)


@pytest.mark.parametrize("each", WALK, ids=lambda each: each.title)
def test_every_step_of_the_walk_is_marked_in_its_file(each: Step) -> None:
    assert (ROOT / each.file).read_text().count(f'@step("{each.title}")') == 1
