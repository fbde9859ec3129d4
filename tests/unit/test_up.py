"""`up`: the controller of a stack. What its environment asks for, and what it does when its container comes back."""

import time
from pathlib import Path

import pytest

from gossamer.clock import ManualClock
from gossamer.errors import SettingsError
from services.controller import cli
from services.controller.exits import Exit
from services.controller.main import obey
from tests.unit.a_crawl import FakeMaker, World

ENVIRON = {
    "SEED": "https://a.example https://b.example/x",
    "WORKERS": "3",
    "MODULE": "noop jsonl:path=x.jsonl",
    "HOSTNAME": "3f2a9c",
}


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def up(environ: dict[str, str], maker: FakeMaker | None = None) -> tuple[int, World]:
    world = World(maker or FakeMaker(), environ=environ)
    return obey(cli.read(["up"], environ), world.outside), world


def test_seeds_workers_modules_and_settings_come_from_the_environment() -> None:
    code, world = up({**ENVIRON, "GOSSAMER_MAX_PAGES": "7"})

    ((settings, _, _, resume),) = world.maker.opened
    assert (code, resume) == (0, False)
    assert settings.start.seeds == ("https://a.example/", "https://b.example/x")
    assert (settings.start.workers, settings.start.modules) == (3, ("noop", "jsonl:path=x.jsonl"))
    assert settings.budgets.max_pages == 7


@pytest.mark.parametrize(
    ("wrong", "text"), [({"WORKERS": "0"}, "--workers is '0'"), ({"GOSSAMER_MAX_PAGES": "x"}, "GOSSAMER_MAX_PAGES is 'x'")]
)
def test_what_is_wrong_there_is_said_in_one_line(wrong: dict[str, str], text: str) -> None:
    with pytest.raises(SettingsError, match=text):
        cli.read(["up"], {**ENVIRON, **wrong})


def test_without_a_seed_there_is_nothing_to_start() -> None:
    assert cli.read(["up"], {"SEED": " ", "GOSSAMER_SEEDS": ""}) == cli.Up(None)


def test_seeds_may_lie_in_a_file(tmp_path: Path) -> None:
    (tmp_path / "seeds.txt").write_text("https://a.example/\nhttps://b.example/\n")

    _, world = up({"GOSSAMER_SEEDS": "seeds.txt"})

    assert world.maker.opened[0][0].start.seeds == ("https://a.example/", "https://b.example/")


def test_whoever_starts_it_again_wants_a_new_crawl() -> None:
    up(ENVIRON)

    code, world = up({**ENVIRON, "CRAWL": "named-by-somebody"})

    assert code == 0
    ((_, id, _, resume),) = world.maker.opened
    assert (id, resume) == ("named-by-somebody", False)


def test_a_container_whose_crawl_has_failed_ends_so_again_when_it_is_restarted_at_once() -> None:
    """As Docker's restart policy does. An operator is not that quick, and wants another try."""
    failed = FakeMaker(clock=ManualClock(time.time()), seeds_failed=True)
    assert up(ENVIRON, failed)[0] == Exit.SEEDS_FAILED

    code, world = up(ENVIRON, FakeMaker(clock=ManualClock(time.time() + 1)))
    assert (code, world.maker.opened) == (Exit.SEEDS_FAILED, [])

    code, world = up({**ENVIRON, "CRAWL": "the-next"}, FakeMaker(clock=ManualClock(time.time() + 60)))
    assert (code, len(world.maker.opened)) == (Exit.DONE, 1)


def test_a_container_that_was_killed_takes_its_crawl_up_again() -> None:
    killed = FakeMaker(breaks=RuntimeError("as good as a kill"))
    with pytest.raises(RuntimeError):
        up(ENVIRON, killed)

    code, world = up(ENVIRON)

    ((_, id, _, resume),) = world.maker.opened
    assert (code, id, resume) == (0, killed.opened[0][1], True)


def test_other_seeds_are_another_crawl() -> None:
    with pytest.raises(RuntimeError):
        up(ENVIRON, FakeMaker(breaks=RuntimeError("as good as a kill")))

    code, world = up({**ENVIRON, "SEED": "https://c.example", "CRAWL": "the-next"})

    assert (code, world.maker.opened[0][3]) == (0, False)


@pytest.mark.parametrize("name", ["../../evil", "Upper", "a b", "x" * 101])
def test_a_crawl_has_a_name_that_can_name_a_folder(name: str) -> None:
    code, world = up({**ENVIRON, "CRAWL": name})

    assert (code, world.maker.opened, world.stderr.getvalue().count("\n")) == (2, [], 1)
    assert list(Path().iterdir()) == []
