"""The first start: help without anything installed, then an environment that is made once, completed, and never corrupted.

On a copy of the tree with a lock of one tiny wheel, so that nothing is fetched; in place of the crawl stands a `main` that tells
where it runs.
"""

import ast
import base64
import re
import shutil
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path
from typing import TextIO

import pytest

from services.controller import environment

ROOT = Path(__file__).parents[2]
SEED = ("--seed", "https://a.example/")

#: What is started there instead of a crawl.
TELLTALE = """
import os, sys
import gossamer_tiny

def obey(command):
    print(sys.prefix, os.getcwd(), type(command).__name__, gossamer_tiny.VERSION, sep="\\n")
    return 0
"""


def python_of_the_system() -> str:
    """The one that environments are made from, rather than the one that the tests run in."""
    return str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info.major}.{sys.version_info.minor}")


def copy_of_the_tree(to: Path) -> Path:
    to.mkdir()
    shutil.copy(ROOT / "controller.py", to)
    for package in ("gossamer", "services"):
        shutil.copytree(ROOT / package, to / package, ignore=shutil.ignore_patterns("__pycache__"))
    (to / "services" / "controller" / "main.py").write_text(TELLTALE)
    return to


def locked(root: Path, version: str) -> None:
    """A lock of one wheel, made here."""
    wheel = root / f"gossamer_tiny-{version}-py3-none-any.whl"
    meta = f"gossamer_tiny-{version}.dist-info"
    files = {
        "gossamer_tiny.py": f"VERSION = {version!r}\n",
        f"{meta}/METADATA": f"Metadata-Version: 2.1\nName: gossamer-tiny\nVersion: {version}\n",
        f"{meta}/WHEEL": "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    }
    digests = {name: base64.urlsafe_b64encode(sha256(text.encode()).digest()).rstrip(b"=").decode() for name, text in files.items()}
    files[f"{meta}/RECORD"] = "".join(f"{name},sha256={digest},\n" for name, digest in digests.items()) + f"{meta}/RECORD,,\n"
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    (root / "requirements.lock").write_text(f"{wheel.as_uri()} --hash=sha256:{sha256(wheel.read_bytes()).hexdigest()}\n")


def starting(root: Path, *argv: str, flags: tuple[str, ...] = (), cwd: Path | None = None) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [python_of_the_system(), *flags, str(root / "controller.py"), *argv],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd or root.parent,
        env={"PATH": "/usr/bin:/bin", "PIP_NO_INDEX": "1"},
    )


def start(root: Path, *argv: str, flags: tuple[str, ...] = (), cwd: Path | None = None) -> tuple[int, str, str]:
    with starting(root, *argv, flags=flags, cwd=cwd) as process:
        out, err = process.communicate(timeout=120)
        return process.returncode, out, err


def stamps(root: Path) -> list[str]:
    return [path.name for path in (root / ".venv").glob(".crawler-*")]


# --- Before there is an environment -----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree as it was checked out."""
    return copy_of_the_tree(tmp_path_factory.mktemp("bare") / "tree")


@pytest.mark.parametrize(
    ("argv", "code", "out", "err"),
    [
        (["--help"], 0, "usage: python controller.py --seed URL", ""),
        (["resume", "--help"], 0, "usage: python controller.py resume", ""),
        (["--version"], 0, "gossamer ", ""),
        ([], 2, "", "controller.py: there is no seed; "),
        (["statsu"], 2, "", "controller.py: 'statsu' is not a verb; did you mean status?"),
        ([*SEED, "--workers", "0"], 2, "", "controller.py: --workers is '0'; it takes a whole number from 1 up"),
        ([*SEED, "--config", "none.toml"], 2, "", "controller.py: none.toml can't be read: "),
    ],
)
def test_help_and_errors_need_nothing_installed_and_make_nothing(
    argv: list[str], code: int, out: str, err: str, bare: Path
) -> None:
    # Without `site` there are no installed packages: importing one would fail.
    ended, said, complained = start(bare, *argv, flags=("-I", "-S"))

    assert (ended, said[: len(out)], complained[: len(err)]) == (code, out, err)
    assert complained.count("\n") == bool(err)
    assert not (bare / ".venv").exists()


def test_the_command_can_be_read_by_pythons_that_are_too_old_for_it() -> None:
    ast.parse((ROOT / "controller.py").read_text(encoding="utf-8"), feature_version=(3, 7))


def test_a_python_without_venv_is_told_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked(tmp_path, "1.0")
    monkeypatch.setattr(environment, "find_spec", lambda name: None)
    said: list[str] = []

    with pytest.raises(environment.EnvironmentFailed) as failed:
        environment.enter(tmp_path, ["controller.py"], said.append)

    assert "lacks the modules venv and ensurepip" in str(failed.value)
    assert "apt install python3-venv" in str(failed.value)
    assert said == []


def test_a_tree_without_its_lock_is_said_to_be_so(tmp_path: Path) -> None:
    with pytest.raises(environment.EnvironmentFailed, match=r"requirements.lock can't be read: No such file"):
        environment.enter(tmp_path, ["controller.py"], print)


# --- The environment --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tree whose environment was made by two starts at once, from elsewhere."""
    root = copy_of_the_tree(tmp_path_factory.mktemp("a place") / "tree")
    locked(root, "1.0")
    elsewhere = root.parent / "elsewhere"
    elsewhere.mkdir()

    with starting(root, *SEED, cwd=elsewhere) as one, starting(root, *SEED, cwd=elsewhere) as two:
        ends = [(process, *process.communicate(timeout=120)) for process in (one, two)]

    making = f"Making {root}/.venv from requirements.lock (once; about a minute) ...\n"
    waiting = "Waiting for another start, which makes the environment ...\n"
    assert sorted(err for _, _, err in ends) == [making, waiting]
    for process, out, _ in ends:
        assert process.returncode == 0
        assert out.splitlines() == [f"{root}/.venv", str(elsewhere), "Start", "1.0"]
    return root


def test_two_first_starts_at_once_make_one_environment_and_go_on_in_it(tree: Path) -> None:
    assert len(stamps(tree)) == 1


def test_later_starts_say_nothing_of_it(tree: Path) -> None:
    code, out, err = start(tree, "status", "--json")

    assert (code, err) == (0, "")
    assert out.splitlines()[2] == "Status"


def test_a_new_lock_completes_what_is_there_and_leaves_others_alone(tree: Path) -> None:
    (before,) = stamps(tree)
    (tree / ".venv" / ".dev-12345").touch()
    locked(tree, "2.0")

    code, out, err = start(tree, *SEED)

    assert (code, err) == (0, f"Completing {tree}/.venv from requirements.lock (once; about a minute) ...\n")
    assert out.splitlines()[3] == "2.0"
    assert len(stamps(tree)) == 1
    assert stamps(tree) != [before]
    assert (tree / ".venv" / ".dev-12345").exists(), "the stamp of `make env`"


def test_a_failed_install_is_one_line_with_its_log(tree: Path) -> None:
    good = (tree / "requirements.lock").read_text()
    (tree / "requirements.lock").write_text(f"no-such-thing==1.0 --hash=sha256:{'0' * 64}\n")
    try:
        code, out, err = start(tree, *SEED)
    finally:
        (tree / "requirements.lock").write_text(good)

    assert (code, out) == (1, "")
    said, failed = err.splitlines()
    assert said.startswith("Completing ")
    assert failed == (
        "controller.py: the environment could not be made: No matching distribution found for no-such-thing==1.0 "
        f"(all of it: {tree}/.venv/install.log)"
    )


def test_an_environment_that_does_not_work_is_made_anew(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    locked(tmp_path, "1.0")
    folder = tmp_path / ".venv"
    (folder / "lib" / "half").mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to("/nowhere/python3")  # as when the system's Python was replaced
    (folder / ".dev-12345").touch()
    environment._Place(tmp_path).stamp.touch()
    ran: list[str] = []

    def run(place: environment._Place, command: list[str], log: TextIO) -> None:
        if not ran:
            assert {path.name for path in folder.iterdir()} == {".lock", "install.log"}, "nothing of the old one is left"
        ran.append(" ".join(command[:4]))

    monkeypatch.setattr(environment, "_run", run)
    monkeypatch.setattr("os.execv", lambda path, argv: ran.append(" ".join(argv)))
    said: list[str] = []
    environment.enter(tmp_path, ["controller.py", "x"], said.append)

    assert said == [f"Making {folder} from requirements.lock (once; about a minute) ..."]
    python = folder / "bin" / "python"
    assert ran == [f"{sys.executable} -m venv {folder}", f"{python} -m pip install", f"{python} -X gossamer controller.py x"]
    assert len(stamps(tmp_path)) == 1


def test_a_folder_that_only_looks_like_an_environment_does_not_start_for_ever(tmp_path: Path) -> None:
    root = copy_of_the_tree(tmp_path / "tree")
    locked(root, "1.0")
    (root / ".venv" / "bin").mkdir(parents=True)
    (root / ".venv" / "bin" / "python").symlink_to(python_of_the_system())
    environment._Place(root).stamp.touch()

    code, _, err = start(root, *SEED)

    assert (code, err) == (1, f"controller.py: {root}/.venv is not an environment of its own; remove it, and start again\n")


# --- Two locks, one folder --------------------------------------------------------------------------------------------


def pins(lock: Path) -> set[str]:
    return set(re.findall(r"^[a-z0-9-]+==\S+", lock.read_text(encoding="utf-8"), re.MULTILINE))


def test_what_make_env_installs_includes_all_that_the_crawler_needs() -> None:
    crawler, dev = pins(ROOT / "requirements.lock"), pins(ROOT / "requirements-dev.lock")

    assert crawler
    assert crawler <= dev, "or one of them would undo what the other made"
