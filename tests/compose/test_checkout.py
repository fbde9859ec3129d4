"""A clean checkout: one command builds, starts, crawls and ends with the crawl's code; and what it leaves is its owner's."""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.compose.project import OWNER, SEED, Project, project
from tests.system.web import FREELY, PERFECT, run, synthetic_web, verdict

PAGES = 1_000
WEB = ("--sites", "20", "--pages", str(PAGES), "--seed", "1")


@pytest.fixture(scope="module")
def checkout(image: str) -> Iterator[Project]:
    with project(image, web=" ".join(WEB)) as checkout:
        yield checkout


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, int]:
    """Of the same web, crawled by one process."""
    folder = tmp_path_factory.mktemp("embedded")
    with synthetic_web(folder, *WEB) as web:
        found: dict[str, int] = run(folder, "--seed", web.seeds[0], *FREELY).report["outcomes"]
        return found


@pytest.mark.parametrize("time", ["first", "second"])
def test_one_command_crawls_all_of_it_and_ends_with_the_crawls_code(time: str, checkout: Project, outcomes: dict[str, int]) -> None:
    checkout.clear()

    done = checkout.crawl_to_the_end()

    assert done.code == 0, done.said
    report = checkout.report()
    assert (report["outcome"], report["pages"], report["outcomes"]) == ("complete", PAGES, outcomes)
    score = json.loads((checkout.out / "score.json").read_text())
    assert (verdict(score), score["most_in_flight"], score["requests"]) == (PERFECT, 1, report["requests"])
    assert len({line["id"] for line in checkout.lines()}) == len(checkout.lines()) == PAGES


def test_a_module_that_is_none_ends_it_with_2_and_one_clear_line(checkout: Project) -> None:
    done = checkout.crawl_to_the_end(MODULE="nonsense")

    assert done.code == 2, done.said
    assert [line for line in done.said.splitlines() if "controller" in line and "nonsense" in line and "module" in line], done.said


def test_seeds_that_all_fail_end_it_with_5(checkout: Project) -> None:
    done = checkout.compose("run", "--rm", "controller", "--seed", f"{SEED}there-is-no-such-page", "--module", "noop")

    assert done.code == 5, done.said


def test_no_server_of_the_stack_can_be_crawled(checkout: Project) -> None:
    """Though workers are on its network."""
    done = checkout.compose("run", "--rm", "controller", "--seed", "http://s3:8333/", "--module", "noop", GOSSAMER_ALLOW_NET="")

    assert (done.code, "s3 is a name without a domain" in done.said) == (2, True), done.said


def test_whoever_owns_the_folder_deletes_what_was_written_without_being_root(checkout: Project) -> None:
    left = sorted(checkout.out.rglob("*"), reverse=True)
    assert 10001 in {path.stat().st_uid for path in left} <= {OWNER, 10001}

    user = OWNER if os.geteuid() == 0 else None
    subprocess.run(["rm", "-r", *map(str, checkout.out.iterdir())], check=True, timeout=60, user=user, group=user, extra_groups=[])

    assert list(checkout.out.iterdir()) == []
    assert Path(checkout.out).stat().st_uid == OWNER
