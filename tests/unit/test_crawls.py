"""A crawl's folder: its name, its lock, and the settings that go with it."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer import kept
from gossamer.errors import SettingsError
from gossamer.ids import CrawlId
from gossamer.settings import BY_KEY, Setting, Settings, load
from services.controller import crawls
from services.controller.cli import RESUMABLE
from tests.unit.test_settings import other

ROOT = Path(__file__).parents[2]


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def made(id: str, state: Path | None = None) -> crawls.Place:
    with crawls.begin(CrawlId(id), state, ["https://a.example/"]) as place:
        return place


def last_run(place: crawls.Place, at: int) -> None:
    os.utime(place.folder / "lock", (at, at))


@pytest.mark.parametrize(
    ("host", "id"),
    [
        ("en.wikipedia.org", "20251118-142640-en-wikipedia-org-3f2a"),
        ("[::1]", "20251118-142640-1-3f2a"),
        ("xn--bcher-kva.example", "20251118-142640-xn-bcher-kva-example-3f2a"),
        ("a" * 63 + ".example", f"20251118-142640-{'a' * 40}-3f2a"),
        ("___", "20251118-142640-seed-3f2a"),
    ],
)
def test_an_id_tells_when_and_where_from(host: str, id: str) -> None:
    assert crawls.new_id(1_763_476_000.7, host, "3f2a") == id
    assert re.fullmatch(r"[a-z0-9-]+", id)


def test_a_new_crawl_lies_under_the_current_directory_or_where_it_is_told(tmp_path: Path) -> None:
    assert made("c").folder == Path("crawls/c")
    assert made("c", tmp_path / "elsewhere").folder == tmp_path / "elsewhere"

    assert crawls.find("c", None) == crawls.Place(CrawlId("c"), Path("crawls/c"), ("https://a.example/",))
    assert crawls.find(None, tmp_path / "elsewhere").id == "c", "the id lies with it, whatever the folder is called"


def test_the_latest_crawl_is_the_one_that_was_run_last() -> None:
    old, new = made("20251118-142640-a-0000"), made("20251118-142641-a-0000")
    last_run(old, 1)
    last_run(new, 2)
    assert crawls.find(None, None) == new

    with crawls.hold(old.folder):  # resumed
        pass

    assert crawls.find(None, None) == old


@pytest.mark.parametrize("name", ["none", "../outside", "", "."])
def test_a_crawl_that_is_not_there_is_refused_and_the_latest_named(name: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"there is no crawl in .*crawls; start one with --seed URL"):
        crawls.find(None, None)
    made("c")
    made("outside", tmp_path / "outside")

    with pytest.raises(SettingsError, match=r"there is no crawl '.*' in .*crawls; the latest is c"):
        crawls.find(name, None)
    with pytest.raises(SettingsError, match="there is no crawl in nowhere"):
        crawls.find(None, Path("nowhere"))


def test_a_folder_is_run_by_one_process_at_a_time() -> None:
    place = made("c")
    assert crawls.runner(place.folder) is None

    with crawls.hold(place.folder):
        assert crawls.runner(place.folder) == os.getpid()
        with (
            pytest.raises(SettingsError, match=f"the crawl in crawls/c runs already, in process {os.getpid()}"),
            crawls.hold(place.folder),
        ):
            pass

    assert crawls.runner(place.folder) is None


def test_a_dead_process_holds_nothing() -> None:
    place = made("c")
    code = "from services.controller import crawls; from pathlib import Path; import time\n"
    code += f"with crawls.hold(Path({str(place.folder)!r})): print('held', flush=True); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, env={"PYTHONPATH": str(ROOT)}) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"held\n"
        assert crawls.runner(place.folder) == process.pid

        process.send_signal(signal.SIGKILL)

    assert crawls.runner(place.folder) is None
    with crawls.hold(place.folder):
        assert crawls.runner(place.folder) == os.getpid()


def test_a_folder_that_holds_something_is_not_taken_for_a_new_crawl(tmp_path: Path) -> None:
    made("c", tmp_path / "used")
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "diary.txt").touch()
    (tmp_path / "file").touch()

    with pytest.raises(SettingsError, match="used holds a crawl already; resume it, or choose another folder"):
        made("d", tmp_path / "used")
    with pytest.raises(SettingsError, match="home is not empty, and what is in it is no crawl"):
        made("d", tmp_path / "home")
    with pytest.raises(SettingsError, match="file can't be used: File exists"):
        made("d", tmp_path / "file")


def test_a_start_that_died_before_it_said_what_it_was_leaves_the_folder_free(tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "lock").write_text("12345\n")

    assert made("c", tmp_path / "state").id == "c"


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"id": "../x", "seeds": []}', '{"id": "c", "seeds": [1]}'])
def test_what_is_no_crawl_of_ours_is_refused_and_never_the_latest(content: str) -> None:
    place = made("c")
    (place.folder / "crawl.json").write_text(content)

    with pytest.raises(SettingsError, match=r"crawls/c/crawl.json is not one of ours"):
        crawls.find("c", None)
    assert crawls.all_here() == []


# --- The settings that are kept with it -------------------------------------------------------------------------------


@pytest.mark.parametrize("setting", BY_KEY.values(), ids=lambda each: each.key)
def test_every_setting_of_a_crawl_comes_back(setting: Setting) -> None:
    settings = load({setting.key: other(setting)}, {}, None).settings

    text = kept.to_text(settings)
    back = kept.from_text(text, {})

    elsewhere = setting.secret or setting.key in ("seed", "seeds", "state")
    assert back.settings == (Settings() if elsewhere else settings)
    assert back.origin(setting.key) == ("default" if elsewhere else "the crawl")
    assert "hidden" not in text


def test_a_crawl_of_defaults_keeps_nothing() -> None:
    assert kept.to_text(Settings()) == "{}"
    assert kept.from_text("", {}).settings == Settings(), "nor does one that nobody wrote down"


def test_budgets_can_be_raised_and_nothing_else_changes() -> None:
    text = kept.to_text(load({"max_pages": "100", "delay": "7", "module": ["jsonl:path=x", "noop"]}, {}, None).settings)

    loaded = kept.from_text(text, {"max_pages": "200", "log": "json"})

    assert loaded.settings.budgets.max_pages == 200
    assert (loaded.settings.manners.delay_s, loaded.settings.start.modules) == (7.0, ("jsonl:path=x", "noop"))
    assert (loaded.origin("max_pages"), loaded.origin("delay")) == ("flag --max-pages", "the crawl")


def test_a_budget_can_not_be_lowered() -> None:
    text = kept.to_text(load({"max_pages": "100"}, {}, None).settings)

    with pytest.raises(SettingsError, match="--max-pages is 99, and the crawl has 100: it can only be raised"):
        kept.from_text(text, {"max_pages": "99"})
    with pytest.raises(SettingsError, match="--max-bytes is 1MB, and the crawl has 50MB: it can only be raised"):
        kept.from_text(text, {"max_bytes": "1MB"})
    assert kept.from_text(text, {"max_pages": "100"}).settings.budgets.max_pages == 100
    assert kept.from_text(text, {"max_hosts": "none"}).settings.budgets.max_hosts is None
    boundless = kept.to_text(load({"max_hosts": "none"}, {}, None).settings)
    with pytest.raises(SettingsError, match="--max-hosts is 500, and the crawl has none: it can only be raised"):
        kept.from_text(boundless, {"max_hosts": "500"})


def test_what_resume_takes_is_a_setting() -> None:
    assert set(RESUMABLE) <= set(BY_KEY)
