"""The command line: what is asked for, or one line that says what is wrong."""

from pathlib import Path

import pytest

from gossamer import __version__
from gossamer.errors import SettingsError
from gossamer.outcomes import CrawlOutcome
from gossamer.settings import BY_KEY, GROUPS
from services.controller.cli import RESUMABLE, Command, Explain, Resume, Say, Start, Status, Stop, Where, read
from services.controller.exits import Exit, exit_of

SEED = ["--seed", "https://a.example/"]


def asked(*argv: str, environ: dict[str, str] | None = None) -> Command:
    return read(argv, environ or {})


def refusal(*argv: str, environ: dict[str, str] | None = None) -> str:
    with pytest.raises(SettingsError) as refused:
        asked(*argv, environ=environ)
    message = str(refused.value)
    assert len(message.splitlines()) == 1
    return message


def help_of(*argv: str) -> str:
    shown = asked(*argv, "--help")
    assert isinstance(shown, Say)
    return shown.text


def test_flags_alone_start_a_crawl() -> None:
    command = asked(*SEED, "--seed", "https://b.example/", "--workers", "8", "--module=jsonl:path=x.jsonl", "--module", "noop")

    assert isinstance(command, Start)
    assert not command.dry_run
    start = command.loaded.settings.start
    assert (start.seeds, start.workers) == (("https://a.example/", "https://b.example/"), 8)
    assert start.modules == ("jsonl:path=x.jsonl", "noop")
    assert command.loaded.origin("workers") == "flag --workers"


def test_settings_come_from_the_environment_and_the_file_too(tmp_path: Path) -> None:
    file = tmp_path / "crawl.toml"
    file.write_text("max_pages = 5\nworkers = 2", encoding="utf-8")

    command = asked("--config", str(file), environ={"GOSSAMER_SEED": "https://a.example/", "GOSSAMER_WORKERS": "3"})

    assert isinstance(command, Start)
    settings = command.loaded.settings
    assert (settings.start.seeds, settings.start.workers, settings.budgets.max_pages) == (("https://a.example/",), 3, 5)


def test_a_dry_run_is_a_start_that_is_only_shown() -> None:
    command = asked(*SEED, "--dry-run")

    assert isinstance(command, Start)
    assert command.dry_run


def test_verbs_are_for_the_latest_crawl_unless_it_is_named() -> None:
    assert asked("status") == Status(Where(), json=False)
    assert asked("status", "--json", "--crawl", "x") == Status(Where(crawl="x"), json=True)
    assert asked("stop", "--state", "d") == Stop(Where(state=Path("d")))
    assert asked("stop", environ={"GOSSAMER_STATE": "e"}) == Stop(Where(state=Path("e"))), "as for a start"
    assert asked("stop", "--crawl", "x", environ={"GOSSAMER_STATE": "e"}) == Stop(Where(crawl="x"))


def test_resume_takes_higher_budgets_and_where_to_write() -> None:
    given = {
        "max_pages": "20000",
        "max_bytes": "1GB",
        "max_host_pages": "none",
        "max_domain_pages": "none",
        "max_hosts": "1000",
        "max_variants": "1000",
        "report": "r.json",
        "log": "json",
    }
    flags = [word for key, value in given.items() for word in (BY_KEY[key].flag, value)]

    assert asked("resume", *flags) == Resume(Where(), given)
    assert set(RESUMABLE) == set(given)
    assert asked("resume") == Resume(Where(), {}), "and needs none of it"


def test_explain_asks_a_crawl_unless_settings_are_given() -> None:
    url = "https://a.example/x"

    assert asked("explain", url, "--crawl", "c", "--json") == Explain(url, Where(crawl="c"), None, json=True)
    assert asked("explain", "--state", "d", url) == Explain(url, Where(state=Path("d")), None, json=False)
    assert asked("explain", url, environ={"GOSSAMER_STATE": "e"}) == Explain(url, Where(state=Path("e")), None, json=False)

    latest = asked("explain", url, environ={"GOSSAMER_SCOPE": "host"})
    assert isinstance(latest, Explain)
    assert latest.where == Where()
    assert latest.loaded is not None, "to go by if there is no crawl here"
    assert latest.loaded.settings.links.scope == "host"

    dry = asked("explain", url, *SEED, "--max-url-params", "3", environ={"GOSSAMER_STATE": "e"})
    assert isinstance(dry, Explain)
    assert dry.where is None
    assert dry.loaded is not None
    assert dry.loaded.settings.links.max_url_params == 3
    assert dry.loaded.settings.start.seeds == ("https://a.example/",)


def test_a_settings_file_makes_explain_dry(tmp_path: Path) -> None:
    file = tmp_path / "crawl.toml"
    file.write_text("max_depth = 2", encoding="utf-8")

    dry = asked("explain", "https://a.example/", "--config", str(file))

    assert isinstance(dry, Explain)
    assert dry.where is None
    assert dry.loaded is not None
    assert dry.loaded.settings.links.max_depth == 2


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        ([], "there is no seed; give one with --seed URL, or many with --seeds FILE (python controller.py --help)"),
        (["--seed"], "--seed needs a value"),
        ([*SEED, "--max-page", "5"], "'--max-page' is not a flag here; did you mean --max-pages?"),
        ([*SEED, "--max-page=5"], "'--max-page' is not a flag here; did you mean --max-pages?"),
        ([*SEED, "--wrkrs", "5"], "'--wrkrs' is not a flag here; did you mean --workers?"),
        ([*SEED, "--xyz"], "'--xyz' is not a flag here; see --help"),
        ([*SEED, "more"], "'more' belongs to no flag; a value stands behind its flag, a verb before everything else"),
        ([*SEED, "--workers", "0"], "--workers is '0'; it takes a whole number from 1 up"),
        ([*SEED, "--delay", "-1"], "--delay is '-1'; it takes a duration, such as 1.5, 90s, 5m or 1h"),
        ([*SEED, "--config", "none.toml"], "none.toml can't be read: No such file or directory"),
        (
            ["statsu"],
            "'statsu' is not a verb; did you mean status? (verbs: resume, status, stop, explain, export, up, dead-letters)",
        ),
        (["https://a.example/"], "'https://a.example/' is not a verb; did you mean --seed https://a.example/?"),
        (["status", "--delay", "5"], "--delay is for the start of a crawl; see --help"),
        (["explain"], "explain needs a URL: python controller.py explain https://example.com/"),
        (
            ["explain", "http://a/", "http://b/"],
            "'http://b/' belongs to no flag; a value stands behind its flag, a verb before everything else",
        ),
        (["explain", "http://a/", "--dry-run"], "--dry-run is for the start of a crawl; see --help"),
        (
            ["explain", "http://a/", "--crawl", "c", "--max-depth", "3"],
            "--max-depth is for an answer without a crawl, and a crawl has its own settings; leave out the one or the other",
        ),
        (["status", "--crawl", "a", "--state", "b"], "--crawl and --state both name a crawl; leave one out"),
        (
            ["resume", "--delay", "5"],
            "--delay can't be changed by resume: a crawl keeps its settings, but for --max-pages, --max-bytes, --max-host-pages, "
            "--max-domain-pages, --max-hosts, --max-variants, --report, --log",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(argv: list[str], message: str) -> None:
    assert refusal(*argv) == message


def test_an_unknown_key_in_the_file_is_named_with_the_nearest_one(tmp_path: Path) -> None:
    file = tmp_path / "crawl.toml"
    file.write_text("max_page = 5", encoding="utf-8")

    assert refusal(*SEED, "--config", str(file)) == f"{file}: 'max_page' is not a setting; did you mean max_pages?"


def test_help_names_every_flag_verb_and_exit_code() -> None:
    text = help_of()

    for group in GROUPS:
        for setting in group.settings:
            value = setting.kind.metavar if setting.kind.bare is None else f"[{setting.kind.metavar}]"
            assert f"\n  {setting.flag} {value}" in text
    assert all(f"\n  {verb} " in text for verb in ("resume", "status", "stop"))
    assert all(f"\n  {code.value:<4} {code.meaning}" in text for code in Exit)
    assert "(10000)" in text, "defaults are shown"
    assert max(len(line) for line in text.splitlines()) <= 130


def test_each_verb_has_help_of_its_own() -> None:
    assert "--json" in help_of("status")
    assert "--max-pages" in help_of("resume")
    assert "--crawl ID" in help_of("stop")
    assert "explain URL [--crawl ID | --state DIR]" in help_of("explain")
    assert "--max-pages" not in help_of("explain"), "settings are a start's, and told there"


def test_help_and_version_beat_what_is_wrong_beside_them() -> None:
    assert help_of("--no-such-flag") == help_of()
    assert asked("--version") == Say(f"gossamer {__version__}\n")


@pytest.mark.parametrize(
    ("outcome", "seeds_failed", "interrupted", "code"),
    [
        pytest.param(CrawlOutcome.COMPLETE, False, False, 0, id="complete"),
        pytest.param(CrawlOutcome.COMPLETE, False, True, 0, id="complete before it could be interrupted"),
        pytest.param(CrawlOutcome.PAGE_BUDGET, False, False, 0, id="ended by a budget"),
        pytest.param(CrawlOutcome.BYTE_BUDGET, False, False, 0, id="ended by the other budget"),
        pytest.param(CrawlOutcome.STOPPED, False, False, 0, id="stopped by the verb"),
        pytest.param(CrawlOutcome.STOPPED, False, True, 130, id="stopped by a signal"),
        pytest.param(CrawlOutcome.STALLED, False, False, 6, id="stalled"),
        pytest.param(CrawlOutcome.FAILED, True, False, 5, id="every seed failed"),
        pytest.param(CrawlOutcome.FAILED, False, False, 1, id="it could not go on"),
    ],
)
def test_the_exit_code_tells_how_a_crawl_ended(outcome: CrawlOutcome, seeds_failed: bool, interrupted: bool, code: int) -> None:
    assert exit_of(outcome, seeds_failed=seeds_failed, interrupted=interrupted) == code


@pytest.mark.parametrize(
    ("words", "is_on"),
    [
        pytest.param([], False, id="not named"),
        pytest.param(["--sitemaps"], True, id="alone"),
        pytest.param(["--sitemaps", "on"], True, id="on"),
        pytest.param(["--sitemaps", "off"], False, id="off"),
    ],
)
def test_a_switch_alone_is_on(words: list[str], is_on: bool) -> None:
    for argv in ([*words, "--seed", "http://a.test/"], ["--seed", "http://a.test/", *words]):
        command = read(argv, {})

        assert isinstance(command, Start)
        assert command.loaded.settings.links.sitemaps is is_on
