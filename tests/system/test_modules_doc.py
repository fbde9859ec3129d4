"""docs/modules.md is right: its modules run as in a crawl, its test passes, and its figures are those of the code."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from gossamer.module import Module
from gossamer.page import Page
from gossamer.settings import Fetching
from services.worker.plugins import GROUP
from services.worker.visit import FAILURES_MAX, HANGS_MAX
from tests.a_module import a_page, an_id, crawled

ROOT = Path(__file__).parents[2]
DOC = (ROOT / "docs" / "modules.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The working directory of somebody who copied all the code."""
    for name, code in re.findall(r"^```python\n# (\S+)\n(.*?)^```", DOC, re.DOTALL | re.MULTILINE):
        (tmp_path / name).write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


async def test_the_least_module_works(capsys: pytest.CaptureFixture[str]) -> None:
    assert await crawled("./shout.py", Path("out"), a_page(1)) == []

    assert capsys.readouterr().err == "TITLE 1\n"


async def test_the_module_that_keeps_what_it_finds_works() -> None:
    pages = [a_page(1, title="  A long\n title "), a_page(2, title="ab"), a_page(1, title="  A long\n title ")]
    (spec,) = re.findall(r"--module (\./titles\.py\S*)", DOC)

    (path,) = await crawled(spec, Path("out"), *pages)

    assert path == Path("out/long-titles.txt")
    assert path.read_text(encoding="utf-8") == f"{an_id(1).hex()}\tA long title\n"


def test_the_test_passes(folder: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(folder), "test_titles.py"]
    done = subprocess.run(command, env={"PYTHONPATH": f"{ROOT}:{folder}"}, capture_output=True, text=True, timeout=60, check=False)

    assert done.returncode == 0, done.stdout
    assert "1 passed" in done.stdout


def test_every_field_of_a_page_and_every_method_of_a_module_is_named() -> None:
    fields = [name for name in Page.__dataclass_fields__ if not name.startswith("_")]
    methods = [name for name in vars(Module) if callable(getattr(Module, name)) and not name.startswith("_")]

    assert [name for name in [*fields, "tree", *methods] if f"`{name}" not in DOC and f".{name}" not in DOC] == []


def test_the_figures_are_those_of_the_code() -> None:
    assert f"After {HANGS_MAX} hangs or {FAILURES_MAX} failures in a row" in DOC
    assert f"`--module-timeout` ({Fetching().module_timeout_s:g} s)" in DOC
    assert f'[project.entry-points."{GROUP}"]' in DOC
