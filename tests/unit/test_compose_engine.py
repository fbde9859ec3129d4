"""Crawls in containers, as this machine starts them: what Docker is asked to do, in which order, and what it is not."""

import os
import stat
from dataclasses import replace
from pathlib import Path

import pytest

from gossamer.errors import EngineUnavailable, SettingsError
from gossamer.ids import CrawlId
from gossamer.settings import Engine, load
from services.controller import compose
from services.controller.crawls import Place
from services.controller.exits import Exit
from services.controller.export.files import Target

PLACE = Place(CrawlId("c-1"), Path("crawls/c-1"), ("http://a.example/",), Engine.COMPOSE)

#: Writes down what it is asked, says which services run, and ends a crawl as a file says.
DOCKER = """\
#!/bin/sh
echo "$*" >> "{folder}/asked"
case "$*" in
  *" ps "*) test ! -e "{folder}/running" || cat "{folder}/running" ;;
  *" run "*) exit "$(cat {folder}/code)" ;;
  *" up "*) test ! -e "{folder}/broken" || {{ echo "first"; echo "no room on the disk" >&2; exit 1; }} ;;
esac
"""


@pytest.fixture
def docker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the false Docker keeps what it knows."""
    program = tmp_path / "docker"
    program.write_text(DOCKER.format(folder=tmp_path))
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    (tmp_path / "code").write_text("0")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    monkeypatch.setattr(compose, "OUT_HERE", tmp_path / "out")
    return tmp_path


def asked(docker: Path) -> list[str]:
    """The words behind `docker compose --project-directory … --file …`."""
    return [line.split(" ", 5)[5] for line in (docker / "asked").read_text().splitlines()]


async def test_the_stack_is_started_the_crawl_run_and_what_was_started_stopped(docker: Path) -> None:
    (docker / "code").write_text("5")
    flags = {"seed": ["http://a.example/"], "workers": "3", "max_pages": "7", "include": ["x", "y"], "engine": "compose"}

    assert await compose.crawl(PLACE, load(flags, {}, None).settings) is Exit.SEEDS_FAILED

    listed, up, run, stop = asked(docker)
    assert listed.startswith("ps ")
    assert up == "up --detach --wait --build --quiet-pull --scale worker=3 keys rabbitmq redis s3 frontier worker"
    assert run == (
        "run --rm --no-deps --no-TTY --env CRAWL=c-1 controller --seed http://a.example/ --max-pages 7 --include x --include y"
        " --workers 3 --module noop"
    )
    assert stop == "stop keys rabbitmq redis s3 frontier worker"


async def test_what_ran_before_goes_on(docker: Path) -> None:
    (docker / "running").write_text("keys\nrabbitmq\nredis\ns3\n")

    await compose.resume(PLACE, {"max_pages": "9"})

    assert asked(docker)[2:] == [
        "run --rm --no-deps --no-TTY --env CRAWL=c-1 controller resume --crawl c-1 --max-pages 9",
        "stop frontier worker",
    ]


async def test_a_question_needs_the_servers_alone(docker: Path) -> None:
    assert await compose.ask(PLACE, "status", "--json") is Exit.DONE

    _, up, run, _ = asked(docker)
    assert up.endswith(" keys rabbitmq redis s3")
    assert run.endswith(" controller status --crawl c-1 --json")


async def test_a_url_is_explained_in_the_stack(docker: Path) -> None:
    assert await compose.ask(PLACE, "explain", "--json", "http://a.example/x?y=1") is Exit.DONE

    assert asked(docker)[2].endswith(" controller explain --crawl c-1 --json http://a.example/x?y=1")


async def test_a_report_comes_back_to_where_it_was_asked_for(docker: Path) -> None:
    settings = load({"seed": ["http://a.example/"], "report": str(docker / "mine.json")}, {}, None).settings
    (docker / "out").mkdir()
    (docker / "out" / "c-1-report.json").write_text("{}")  # as the controller there leaves it

    await compose.crawl(PLACE, settings)

    assert "--report /out/c-1-report.json" in asked(docker)[2]
    assert (docker / "mine.json").read_text() == "{}"


@pytest.mark.parametrize("code", [Exit.DONE, Exit.INCOMPLETE])
async def test_an_archive_comes_back_to_where_it_was_asked_for(docker: Path, code: Exit) -> None:
    (docker / "code").write_text(str(code.value))
    (docker / "out").mkdir()
    for name in ("pages.warc.gz", "pages.cdxj"):
        (docker / "out" / name).write_text(name)  # as the controller there leaves them

    assert await compose.export(PLACE, Target.at(docker / "pages.warc.gz")) is code

    _, up, run, _ = asked(docker)
    assert up.endswith(" keys rabbitmq redis s3")
    assert run.endswith(" controller export --crawl c-1 --warc /out/pages.warc.gz"), "a file of that name there is not written over"
    assert [(docker / name).read_text() for name in ("pages.warc.gz", "pages.cdxj")] == ["pages.warc.gz", "pages.cdxj"]
    assert list((docker / "out").iterdir()) == []


async def test_an_archive_that_is_to_be_where_it_is_written_stays_there(docker: Path) -> None:
    await compose.export(PLACE, Target.at(docker / "out" / "pages.warc.gz"))

    assert asked(docker)[2].endswith(" controller export --crawl c-1 --warc /out/pages.warc.gz --force")


async def test_an_export_that_failed_brings_nothing(docker: Path) -> None:
    (docker / "code").write_text("4")

    assert await compose.export(PLACE, Target.at(docker / "pages.warc.gz")) is Exit.UNREACHABLE


async def test_many_seeds_lie_in_a_file(docker: Path) -> None:
    seeds = [f"http://a.example/{number}" for number in range(60)]

    await compose.crawl(PLACE, load({"seed": seeds}, {}, None).settings)

    assert "controller --seeds /out/c-1-seeds.txt " in asked(docker)[2]
    assert (docker / "out" / "c-1-seeds.txt").read_text().split() == seeds


async def test_a_module_of_this_machine_is_laid_where_the_containers_find_it(docker: Path) -> None:
    file = docker / "titles.py"
    file.write_text("class Titles: ...")
    settings = load({"seed": ["http://a.example/"], "module": [f"{file}:Titles:path=x", "jsonl"]}, {}, None).settings

    await compose.crawl(PLACE, settings)

    assert "--module /out/modules/c-1/titles.py:Titles:path=x --module jsonl" in asked(docker)[2]
    assert (docker / "out" / "modules" / "c-1" / "titles.py").read_text() == "class Titles: ..."


async def test_a_prioritizer_and_a_rank_file_of_this_machine_are_laid_there_too(docker: Path) -> None:
    (docker / "mine.py").write_text("class Mine: ...")
    (docker / "ranks.csv").write_text("domain,rank\n")
    flags = {"seed": ["http://a.example/"], "prioritizer": f"{docker / 'mine.py'}:Mine:a=1", "rank_file": str(docker / "ranks.csv")}

    await compose.crawl(PLACE, load(flags, {}, None).settings)

    run = asked(docker)[2]
    assert " --prioritizer /out/modules/c-1/mine.py:Mine:a=1 " in run
    assert " --rank-file /out/modules/c-1/ranks.csv " in run
    assert (docker / "out" / "modules" / "c-1" / "ranks.csv").read_text() == "domain,rank\n"


async def test_a_rank_api_lets_the_frontier_out_and_its_key_is_on_no_command_line(
    docker: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GOSSAMER_RANK_API", "GOSSAMER_RANK_API_KEY"):
        monkeypatch.setenv(name, "")  # and as it was again, afterwards
    flags = {"seed": ["http://a.example/"], "rank_api": "https://r.example/api", "rank_api_key": "very-hidden"}

    await compose.crawl(PLACE, load(flags, {}, None).settings)

    assert " --rank-api https://r.example/api " in asked(docker)[2]
    assert "very-hidden" not in "".join(asked(docker))
    assert os.environ["GOSSAMER_RANK_API_KEY"] == "very-hidden", "for `keys`, which hands it to the roles"
    assert compose._command("ps")[4:] == [
        "--file",
        str(compose.ROOT / "docker-compose.yml"),
        "--file",
        str(compose.ROOT / "docker-compose.rank-api.yml"),
        "ps",
    ]


async def test_a_stack_that_does_not_start_is_said_in_dockers_last_words(docker: Path) -> None:
    (docker / "broken").touch()

    with pytest.raises(EngineUnavailable, match=r"docker compose up failed: no room on the disk$"):
        await compose.crawl(PLACE, load({"seed": ["http://a.example/"]}, {}, None).settings)


def test_without_docker_it_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    settings = load({"seed": ["http://93.184.216.34/"]}, {}, None).settings

    with pytest.raises(SettingsError, match="needs Docker"):
        compose.Compose().check(replace(settings, start=replace(settings.start, seeds=("http://93.184.216.34/",))))
