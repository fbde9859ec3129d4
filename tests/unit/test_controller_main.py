"""The command as a whole, on an engine that fetches nothing: what it makes, says, refuses and returns."""

import asyncio
import json
import os
import signal
from pathlib import Path

import pytest

from gossamer.clock import ManualClock
from gossamer.errors import LedgerUnavailable, SettingsError
from gossamer.outcomes import CrawlOutcome, Outcome
from services.controller import cli, crawls
from services.controller.engines import Stop
from services.controller.main import _obey, obey
from tests.unit.a_crawl import NOW, FakeMaker, World

SEED = ("--seed", "https://a.example/")
ID = "20251118-142640-a-example-3f2a"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


@pytest.fixture
def maker() -> FakeMaker:
    return FakeMaker(clock=ManualClock(NOW))


@pytest.fixture
def world(maker: FakeMaker) -> World:
    return World(maker)


def command(*argv: str) -> cli.Command:
    return cli.read(argv, {})


def done(world: World, *argv: str) -> int:
    return obey(command(*argv), world.outside)


def refusal(world: World, *argv: str) -> str:
    """The one line that a refused command says, after which nothing is there that was not before."""
    before = sorted(Path().rglob("*"))
    assert done(world, *argv) == 2
    said = world.stderr.getvalue()
    assert said.startswith("controller.py: ")
    assert said.count("\n") == 1
    assert world.stdout.getvalue() == ""
    assert sorted(Path().rglob("*")) == before
    return said.removeprefix("controller.py: ").rstrip("\n")


def read_report(file: str = "report.json") -> dict[str, object]:
    report = json.loads(Path(file).read_text(encoding="utf-8"))
    assert isinstance(report, dict)
    return report


# --- Starting ---------------------------------------------------------------------------------------------------------


def test_a_crawl_is_run_summed_up_and_kept(world: World) -> None:
    assert done(world, *SEED, "--workers", "2", "--report", "report.json") == 0

    ((settings, id, folder, resume),) = world.maker.opened
    assert (id, folder, resume) == (ID, Path("crawls") / ID, False)
    assert settings.start.seeds == ("https://a.example/",)
    assert world.stdout.getvalue().startswith(f"Crawl {ID}: complete, every URL that was found is closed.\n")
    assert f"Starting crawl {ID}, kept in crawls/{ID}\n" in world.stderr.getvalue()
    report = read_report()
    assert (report["crawl"], report["outcome"], report["workers"], report["bytes"]) == (ID, "complete", 2, 100)
    assert report["outcomes"] == {"done": 1}
    assert crawls.runner(folder) is None, "its lock is free"


def test_seeds_come_from_flags_and_file_each_once_as_they_are_requested(world: World) -> None:
    Path("seeds.txt").write_text("\ufeff# mine\n\n  HTTPS://B.example:443/x/../y#f  \nhttps://a.example\n", encoding="utf-8")

    assert done(world, *SEED, "--seeds", "seeds.txt") == 0

    settings, *_ = world.maker.opened[0]
    assert settings.start.seeds == ("https://a.example/", "https://b.example/y")
    assert settings.start.seeds_file is None


def test_json_logs_end_with_everything_the_summary_says(world: World) -> None:
    assert done(world, *SEED, "--log", "json") == 0

    events = [json.loads(line) for line in world.stderr.getvalue().splitlines()]
    assert [event["event"] for event in events] == ["crawl.started", "crawl.progress", "crawl.ended"]
    assert events[0]["crawl"] == ID
    assert events[-1]["outcome"] == "complete"
    assert {"pages", "bytes", "least_gap_s", "outputs", "kept_until"} <= events[-1].keys()
    assert world.stdout.getvalue() == ""


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--seed", "ftp://a.example/"], "--seed 'ftp://a.example/' can't be a seed: not http or https"),
        (["--seed", "http://"], "--seed 'http://' can't be a seed: not a URL"),
        (["--seed", "example.com"], "--seed 'example.com' can't be a seed: not a URL; did you mean https://example.com/?"),
        (
            ["--seed", "localhost:80"],
            "--seed 'localhost:80' can't be a seed: not http or https; did you mean https://localhost:80/?",
        ),
        (["--seed", "http://u:p@a.example/"], "--seed 'http://u:p@a.example/' can't be a seed: user name or password"),
        (["--seeds", "none.txt"], "--seeds none.txt can't be read: No such file or directory"),
        (["--seeds", "empty.txt"], "there is no seed in empty.txt"),
        (["--seeds", "binary"], "--seeds binary is not a text"),
        (["--seeds", "wrong.txt"], "wrong.txt, line 2: 'nothing\\x1b' can't be a seed: not a URL"),
        (
            [*SEED, "--report", "none/report.json"],
            "--report none/report.json can't be written: it takes a file in a folder that exists and can be written to",
        ),
        ([*SEED, "--state", "home"], "home is not empty, and what is in it is no crawl; choose another folder"),
        ([*SEED, "--state", "empty.txt"], "empty.txt can't be used: File exists"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_made(world: World, argv: list[str], message: str) -> None:
    Path("empty.txt").write_text("# none\n", encoding="utf-8")
    Path("wrong.txt").write_text("https://a.example/\nnothing\x1b\n", encoding="utf-8")
    Path("binary").write_bytes(b"\xff\xfe\xff")
    Path("home").mkdir()
    Path("home/lock").touch()
    Path("home/diary.txt").touch()

    assert refusal(world, *argv) == message
    assert world.maker.opened == []


def test_what_the_engine_refuses_is_refused_before_anything_is_made(world: World, maker: FakeMaker) -> None:
    maker.refuses = "there is no module nop; did you mean noop?"

    assert refusal(world, *SEED, "--module", "nop") == "there is no module nop; did you mean noop?"


def test_a_crawl_that_can_not_begin_leaves_no_folder(world: World, maker: FakeMaker) -> None:
    maker.opens = SettingsError("out/x.jsonl has the output of an earlier crawl")

    assert done(world, *SEED) == 2

    assert world.stderr.getvalue() == "controller.py: out/x.jsonl has the output of an earlier crawl\n"
    assert crawls.all_here() == []


def test_a_dry_run_shows_settings_and_first_requests_and_makes_nothing(world: World) -> None:
    assert done(world, "--seed", "https://a.example:8443/x#y", "--max-pages", "5", "--dry-run") == 0

    text = world.stdout.getvalue()
    assert "\n  max_pages            5                        flag --max-pages\n" in text
    assert "\n  delay                1s                       default\n" in text
    assert text.endswith(
        "Asked first: each site's robots.txt, and then its seed if that allows it\n"
        "  https://a.example:8443/robots.txt\n"
        "  https://a.example:8443/x\n"
        "\n"
        "Nothing was asked for, and nothing was written.\n"
    )
    assert list(Path().iterdir()) == []
    assert world.maker.opened == []


# --- How it ends ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ends_as", "code"),
    [(CrawlOutcome.PAGE_BUDGET, 0), (CrawlOutcome.BYTE_BUDGET, 0), (CrawlOutcome.STALLED, 6), (CrawlOutcome.STOPPED, 0)],
)
def test_the_report_and_the_exit_code_tell_the_same_end(world: World, maker: FakeMaker, ends_as: CrawlOutcome, code: int) -> None:
    maker.ends_as = ends_as

    assert done(world, *SEED, "--report", "report.json") == code

    assert read_report()["outcome"] == ends_as


def test_a_crawl_whose_seeds_all_fail_ends_with_5(world: World, maker: FakeMaker) -> None:
    maker.outcome, maker.seeds_failed = Outcome.DNS_FAILED, True

    assert done(world, *SEED, "--report", "report.json") == 5

    assert read_report()["outcome"] == "failed"
    assert read_report()["outcomes"] == {"dns_failed": 1}


def test_an_engine_that_is_away_ends_with_4_and_a_report(world: World, maker: FakeMaker) -> None:
    maker.breaks = BaseExceptionGroup("tasks", [ValueError("x"), LedgerUnavailable("the disk is full")])

    assert done(world, *SEED, "--report", "report.json") == 4

    assert world.stderr.getvalue().splitlines()[-1] == "controller.py: the disk is full"
    assert read_report()["outcome"] == "failed"
    assert read_report()["domains"] == 1, "as far as it was seen"


def test_a_bug_is_not_hidden_and_leaves_a_report(world: World, maker: FakeMaker) -> None:
    maker.breaks = ZeroDivisionError("ours")

    with pytest.raises(ZeroDivisionError):
        done(world, *SEED, "--report", "report.json")

    assert read_report()["outcome"] == "failed"
    assert crawls.runner(Path("crawls") / ID) is None


def test_a_report_that_can_not_be_written_at_the_end_is_said_and_is_no_success(world: World, maker: FakeMaker) -> None:
    maker.meanwhile = lambda stop: Path("report.json").mkdir()

    assert done(world, *SEED, "--report", "report.json") == 1

    assert "report.json can't be written: Is a directory" in world.stderr.getvalue()
    assert world.stdout.getvalue().startswith(f"Crawl {ID}: complete")


# --- Signals ----------------------------------------------------------------------------------------------------------


def signals(*sent: signal.Signals) -> FakeMaker:
    def send(stop: Stop) -> None:
        for each in sent:
            os.kill(os.getpid(), each)

    return FakeMaker(waits=True, meanwhile=send)


@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_stops_it_gently_and_says_how_to_go_on(sent: signal.Signals) -> None:
    world = World(signals(sent))

    assert done(world, *SEED, "--report", "report.json") == 130

    assert "Stopping: no more is begun, what is in flight is finished. Ctrl-C again ends it at once." in world.stderr.getvalue()
    assert read_report()["outcome"] == "stopped"
    assert "resume    python controller.py resume --crawl " in world.stdout.getvalue()


async def test_the_second_ctrl_c_says_now_and_a_second_sigterm_does_not() -> None:
    stops: asyncio.Queue[Stop] = asyncio.Queue()
    world = World(FakeMaker(waits=True, dawdles=True, meanwhile=stops.put_nowait))
    run = asyncio.create_task(_obey(command(*SEED), world.outside))
    stop = await stops.get()

    os.kill(os.getpid(), signal.SIGTERM)
    await stop.gently.wait()
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.sleep(0.01)
    assert not stop.now.is_set()
    os.kill(os.getpid(), signal.SIGINT)
    await asyncio.wait_for(stop.now.wait(), 5)

    assert await run == 130
    assert world.stderr.getvalue().count("Stopping: ") == 1
    assert "Ending at once." in world.stderr.getvalue()


# --- Going on ---------------------------------------------------------------------------------------------------------


def test_resume_goes_on_with_the_crawls_own_settings(world: World, maker: FakeMaker) -> None:
    maker.ends_as = CrawlOutcome.PAGE_BUDGET
    Path("seeds.txt").write_text("https://a.example/\n", encoding="utf-8")
    done(world, "--seeds", "seeds.txt", "--max-pages", "100", "--delay", "3", "--module", "jsonl:path=x", "--report", "a.json")
    Path("seeds.txt").unlink()

    maker.ends_as = None
    assert done(world, "resume", "--max-pages", "200", "--report", "b.json") == 0

    settings, id, folder, resume = maker.opened[1]
    assert (id, folder, resume) == (ID, Path("crawls") / ID, True)
    assert settings.start.seeds == ("https://a.example/",)
    assert (settings.budgets.max_pages, settings.manners.delay_s, settings.start.modules) == (200, 3.0, ("jsonl:path=x",))
    assert (read_report("a.json")["outcome"], read_report("b.json")["outcome"]) == ("page_budget", "complete")


def test_a_key_is_not_kept_with_the_crawl_and_read_again_at_a_resume(world: World, maker: FakeMaker) -> None:
    maker.ends_as = CrawlOutcome.PAGE_BUDGET
    done(world, *SEED, "--rank-api", "https://r.example/api", "--rank-api-key", "very-hidden", "--report", "a.json")
    assert maker.opened[0][0].frontier.rank_api_key == "very-hidden"
    for file in [path for path in Path().rglob("*") if path.is_file()]:
        assert b"very-hidden" not in file.read_bytes(), file
    assert "very-hidden" not in world.stdout.getvalue() + world.stderr.getvalue()

    assert done(world, "resume") == 0
    world.environ["GOSSAMER_RANK_API_KEY"] = "another"
    assert done(world, "resume") == 0

    assert [settings.frontier.rank_api_key for settings, *_ in maker.opened[1:]] == [None, "another"]
    assert maker.opened[2][0].frontier.rank_api == "https://r.example/api"


def test_resume_keeps_what_was_raised(world: World, maker: FakeMaker) -> None:
    maker.ends_as = CrawlOutcome.PAGE_BUDGET
    done(world, *SEED, "--max-pages", "100")
    done(world, "resume", "--max-pages", "200")

    assert done(world, "resume", "--max-pages", "150") == 2
    assert world.stderr.getvalue().endswith("--max-pages is 150, and the crawl has 200: it can only be raised\n")


def test_resume_of_a_complete_crawl_says_so_and_is_no_failure(world: World, maker: FakeMaker) -> None:
    done(world, *SEED)
    world = World(maker)

    assert done(world, "resume") == 0

    assert world.stdout.getvalue().startswith(f"Crawl {ID} is complete already; nothing is left to fetch.\n")


def test_resume_finds_crawls_by_id_and_by_folder(world: World, maker: FakeMaker) -> None:
    done(world, *SEED)
    done(world, *SEED, "--state", "my state")

    assert done(world, "resume", "--crawl", ID) == 0
    assert done(world, "resume", "--state", "my state") == 0

    assert [folder for _, _, folder, resume in maker.opened if resume] == [Path("crawls") / ID, Path("my state")]


def test_a_crawl_that_was_killed_before_it_began_is_to_be_started_again(world: World) -> None:
    with crawls.begin(crawls.new_id(NOW, "a", "0000"), Path("state"), ["https://a.example/"]) as place:
        pass

    assert done(world, "resume", "--state", "state") == 2

    assert world.stderr.getvalue() == f"controller.py: crawl {place.id} had not begun when it was killed; start it again\n"
    assert done(world, *SEED, "--state", "state") == 0, "in the same folder"


def test_a_crawl_whose_time_is_over_can_not_be_resumed(world: World, maker: FakeMaker) -> None:
    maker.ends_as = CrawlOutcome.STOPPED
    done(world, *SEED, "--ttl", "1h")
    assert isinstance(maker.clock, ManualClock)
    maker.clock.advance(3601)

    assert done(world, "resume") == 2

    assert world.stderr.getvalue().endswith(
        f"crawl {ID} was kept until 2025-11-18 15:26:40 UTC; start it again (--ttl keeps longer)\n"
    )


def test_a_start_removes_the_crawls_here_whose_time_is_over(world: World, maker: FakeMaker) -> None:
    done(world, *SEED)
    done(world, *SEED, "--state", "mine")
    assert isinstance(maker.clock, ManualClock)
    maker.clock.advance(1800)
    done(world, "--seed", "https://b.example/")
    assert len(crawls.all_here()) == 2
    maker.clock.advance(1801)

    done(world, "--seed", "https://c.example/")

    assert [place.seeds[0] for place in crawls.all_here()] == ["https://b.example/", "https://c.example/"]
    assert Path("mine/crawl.json").exists(), "what lies elsewhere is its owner's business"


def test_an_old_crawl_that_can_not_be_read_keeps_no_new_one_from_beginning(world: World) -> None:
    with crawls.begin(crawls.new_id(NOW, "old", "0000"), None, ["https://a.example/"]) as place:
        (place.folder / "ledger.sqlite").write_bytes(b"no database" * 1000)

    assert done(world, *SEED) == 0

    assert f"{place.folder} can't be read, and was left as it is: " in world.stderr.getvalue()
    assert place.folder.exists()


def test_a_verb_without_a_crawl_is_refused(world: World) -> None:
    for verb in ("resume", "status", "stop"):
        assert done(world, verb) == 2
    assert world.stderr.getvalue().count("there is no crawl in ") == 3


# --- Beside a run -----------------------------------------------------------------------------------------------------


async def running(world: World) -> "asyncio.Task[int]":
    """A crawl that is under way, until it is stopped."""
    begun = asyncio.Event()
    world.maker.waits, world.maker.meanwhile = True, lambda stop: begun.set()
    run: asyncio.Task[int] = asyncio.create_task(
        _obey(command(*SEED, "--state", "state", "--report", "report.json"), world.outside)
    )
    await begun.wait()
    return run


async def test_stop_ends_a_crawl_that_another_process_runs() -> None:
    world, beside = World(), World()
    run = await running(world)

    assert await _obey(command("stop", "--state", "state"), beside.outside) == 0

    assert await run == 0, "stopped by the verb, not interrupted"
    assert read_report()["outcome"] == "stopped"
    assert "Stopping crawl" in beside.stderr.getvalue()
    assert ": stopped, 1 URL still open.\n" in beside.stdout.getvalue()


async def test_a_folder_in_use_is_refused_to_all_but_readers() -> None:
    world, beside = World(), World()
    run = await running(world)
    try:
        for argv in ([*SEED, "--state", "state"], ["resume", "--state", "state"]):
            with pytest.raises(SettingsError, match=f"the crawl in state runs already, in process {os.getpid()}"):
                await _obey(command(*argv), beside.outside)

        assert await _obey(command("status", "--state", "state"), beside.outside) == 0
        assert f"is running, in process {os.getpid()}." in beside.stdout.getvalue()
    finally:
        await _obey(command("stop", "--state", "state"), World().outside)
        await run


def test_stop_of_a_crawl_that_does_not_run_says_how_it_stands(world: World) -> None:
    done(world, *SEED)
    world = World(world.maker)

    assert done(world, "stop") == 0

    assert world.stdout.getvalue().startswith(f"There is nothing to stop.\nCrawl {ID}: complete, ")


def test_stop_gives_up_on_a_run_that_does_not_end(world: World, maker: FakeMaker) -> None:
    done(world, *SEED)

    class Hurried(ManualClock):
        async def sleep(self, seconds: float) -> None:
            self.advance(seconds)

    maker.clock = Hurried(NOW)
    with crawls.hold(Path("crawls") / ID):
        assert done(world, "stop") == 1

    assert world.stderr.getvalue().endswith(f"Crawl {ID} is still ending, after 3 min 0 s; it goes on by itself.\n")


def test_status_is_for_people_or_programs(world: World) -> None:
    done(world, *SEED)
    world = World(world.maker)

    assert done(world, "status") == 0
    assert world.stdout.getvalue().startswith(f"Crawl {ID}: complete, ")
    world = World(world.maker)
    assert done(world, "status", "--json") == 0
    assert json.loads(world.stdout.getvalue())["outcome"] == "complete"


# --- Explaining -------------------------------------------------------------------------------------------------------


def test_a_url_is_explained_by_the_latest_crawl(world: World) -> None:
    done(world, *SEED)

    assert done(world, "explain", "https://a.example/?utm_source=x") == 0

    text = world.stdout.getvalue().partition("https://a.example/: ")[2]
    assert text.startswith("done, but not stored")
    assert "\n  identity  as requested   (without utm_source)\n" in text
    assert f"\n  crawl     {ID}: complete, every URL that was found is closed\n" in text


def test_a_url_is_explained_without_a_crawl_if_there_is_none(world: World) -> None:
    assert done(world, "explain", "https://a.com/", "--json") == 0

    assert json.loads(world.stdout.getvalue())["crawl"] is None
    assert list(Path().iterdir()) == []


def test_settings_beat_the_crawl_that_is_here(world: World) -> None:
    done(world, *SEED)

    assert done(world, "explain", "https://b.com/x", "--seed", "https://a.com", "--scope", "host") == 0

    assert "https://b.com/x: would not be followed: b.com is not a seed's host, as is a.com (--scope host).\n" in (
        world.stdout.getvalue()
    )


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--crawl", "none"], "there is no crawl 'none' in {here}/crawls"),
        (["--seed", "nothing"], "--seed 'nothing' can't be a seed: not a URL"),
        (
            ["--prioritizer", "best"],
            "--prioritizer 'best': there is no such prioritizer; did you mean breadth? There are breadth, constant, pagerank",
        ),
    ],
)
def test_what_can_not_be_explained_is_one_line(world: World, argv: list[str], message: str) -> None:
    assert refusal(world, "explain", "https://a.com/", *argv) == message.replace("{here}", str(Path.cwd()))
