"""The project's own promises: what the wheel holds, what the locks say, and that docs name only what is there."""

import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LOCKS = ("requirements.lock", "requirements-parquet.lock", "requirements-dev.lock")


def test_the_wheel_holds_the_package_gossamer_alone(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, source)
    for folder in ("gossamer", "adapters"):
        shutil.copytree(ROOT / folder, source / folder, ignore=shutil.ignore_patterns("__pycache__"))

    build = [sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", str(tmp_path), str(source)]
    subprocess.run(build, check=True, capture_output=True, timeout=120)

    (wheel,) = tmp_path.glob("*.whl")
    tops = {name.split("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"gossamer"}


@pytest.mark.parametrize("name", LOCKS)
def test_every_locked_package_has_hashes_and_no_lock_names_a_host(name: str) -> None:
    text = (ROOT / name).read_text()
    packages = re.findall(r"^([a-z0-9._-]+)==[^\n]*\\\n((?:    --hash=sha256:[0-9a-f]{64}[^\n]*\n)+)", text, re.MULTILINE)
    assert len(packages) == len(re.findall(r"^[a-z0-9._-]+==", text, re.MULTILINE))
    assert len(packages) > 4
    assert "://" not in text


def test_the_other_locks_are_part_of_the_developers() -> None:
    crawler, parquet, developers = (
        set(re.findall(r"^([a-z0-9._-]+==\S+)", (ROOT / name).read_text(), re.MULTILINE)) for name in LOCKS
    )
    assert crawler | parquet <= developers
    assert {each.partition("==")[0] for each in parquet - crawler} == {"pyarrow"}, "both can be installed together"


@pytest.mark.parametrize("page", sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]), ids=lambda page: page.name)
def test_links_and_files_that_the_docs_name_are_there(page: Path) -> None:
    text = page.read_text()
    links = [link.partition("#")[0] for link in re.findall(r"\]\(([^)\s]+)\)", text) if "://" not in link]
    files = re.findall(r"`((?:gossamer|adapters|services|modules|tests|docs|bench)/[\w./]+\.\w+)`", text)
    assert [link for link in links if link and not (page.parent / link).exists()] == []
    assert [file for file in files if not (ROOT / file).exists()] == []
