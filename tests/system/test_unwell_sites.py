"""Sites that are dead, unwell or silent: the crawl ends by itself, and its outcomes say so."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.system.web import PATIENCE_S, ROOT, Ran, run

#: No delay, so that none grows; short waits.
SOON = ("--allow-net", "127.0.0.0/8", "--delay", "0", "--domain-rest", "0.2", "--robots-wait", "0.1", "--attempt-timeout", "0.5")


@contextmanager
def unwell_server() -> Iterator[tuple[int, "subprocess.Popen[str]"]]:
    command = [sys.executable, "-m", "tests.system.unwell"]
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield int(process.stdout.readline()), process
    finally:
        process.kill()
        process.communicate(timeout=PATIENCE_S)


def crawl(folder: Path, *seeds: str) -> Ran:
    (folder / "seeds.txt").write_text("\n".join(seeds))
    return run(folder, "--seeds", "seeds.txt", *SOON)


def test_a_site_that_answers_503_for_ever_is_given_up_after_a_few_requests(tmp_path: Path) -> None:
    with unwell_server() as (port, server):
        ran = crawl(tmp_path, *(f"http://127.0.3.1:{port}/{number}" for number in range(500)))
        asked, _ = server.communicate(timeout=PATIENCE_S)

    assert (ran.code, ran.report["outcome"]) == (5, "failed")
    assert ran.report["outcomes"] == {"http_error": 500}
    assert int(asked.split()[0]) <= 30, "ten failures, three rests, and what was being retried"


def test_a_robots_txt_that_never_answers_denies_its_site_in_the_end(tmp_path: Path) -> None:
    with unwell_server() as (port, server):
        ran = crawl(tmp_path, *(f"http://127.0.3.2:{port}/{number}" for number in range(20)))
        asked, _ = server.communicate(timeout=PATIENCE_S)

    assert (ran.code, ran.report["outcome"]) == (5, "failed")
    assert ran.report["outcomes"] == {"robots_denied": 20}
    assert int(asked.split()[1]) == 4, "once, and after each of three waits"


def test_with_the_network_dead_a_crawl_ends_and_says_so(tmp_path: Path) -> None:
    with unwell_server() as (port, _):
        ran = crawl(tmp_path, *(f"http://127.0.3.3:{port}/{number}" for number in range(20)))

    assert (ran.code, ran.report["outcome"]) == (5, "failed")
    assert ran.report["outcomes"] == {"robots_denied": 20}
    assert "no seed could be fetched" in ran.said
