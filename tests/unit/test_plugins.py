"""Modules by their names: what is found where, and what is refused before anything starts."""

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent

import pytest

from gossamer.errors import SettingsError
from gossamer.forms import Output
from gossamer.module import Module
from gossamer.options import parse_spec
from services.worker.plugins import Loaded, load, outputs, refuse_taken
from tests.a_module import a_crawl

TITLES = """
    from gossamer import Module, Page

    class Titles(Module):
        def __init__(self, *, least: int = 1, words: list[str] = []) -> None:
            self.least = least
            self.words = words

        def visit(self, page: Page) -> None: ...
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The working directory, which is on the path as PYTHONPATH would put it there."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    yield tmp_path
    for name in [each for each in sys.modules if each.startswith(("shop", "titles"))]:
        del sys.modules[name]


def written(path: Path, text: str = TITLES) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text), encoding="utf-8")
    return path


def an_entry_point(folder: Path, line: str, package: str = "shop") -> None:
    """As pip leaves it behind."""
    written(folder / f"{package}-1.0.dist-info" / "METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
    written(folder / f"{package}-1.0.dist-info" / "entry_points.txt", f"[gossamer.modules]\n{line}\n")


def found(text: str) -> type[Module]:
    return load([parse_spec(text)])[0].cls


def refusal(text: str) -> str:
    with pytest.raises(SettingsError) as refused:
        load([parse_spec(text)])
    message = str(refused.value)
    assert message.isprintable(), "one line, and nothing in it that steers a terminal"
    assert message.startswith("--module ")
    return message.removeprefix("--module ")


@pytest.mark.parametrize(("name", "cls"), [("noop", "Noop"), ("jsonl", "Jsonl")])
def test_what_comes_along_is_found_by_its_file(name: str, cls: str) -> None:
    assert found(name).__qualname__ == cls
    assert found(name).__module__ == f"modules.{name}"


@pytest.mark.parametrize("spec", ["./titles.py", "titles.py", "./titles.py:Titles"])
def test_a_file_is_a_module_wherever_it_lies(folder: Path, spec: str) -> None:
    written(folder / "titles.py")

    assert found(spec).__name__ == "Titles"


@pytest.mark.parametrize("spec", ["shop.titles:Titles", "titles:Titles"])
def test_an_importable_class_is_a_module(folder: Path, spec: str) -> None:
    written(folder / "shop" / "titles.py")
    written(folder / "titles.py")

    assert found(spec).__module__ == spec.partition(":")[0]


@pytest.mark.parametrize("line", ["my-titles = shop.titles:Titles", "my-titles = shop.titles"])
def test_an_entry_point_is_a_module(folder: Path, line: str) -> None:
    written(folder / "shop" / "titles.py")
    an_entry_point(folder, line)

    assert found("my-titles").__module__ == "shop.titles"


def test_a_file_in_modules_beats_an_entry_point_of_its_name(folder: Path) -> None:
    an_entry_point(folder, "jsonl = nowhere:Nothing")

    assert found("jsonl").__module__ == "modules.jsonl"


def test_two_entry_points_of_one_name_are_refused(folder: Path) -> None:
    an_entry_point(folder, "titles = shop.titles:Titles", "shop")
    an_entry_point(folder, "titles = other.titles:Titles", "other")

    reason = "several packages have a module of that name; take one of other.titles:Titles, shop.titles:Titles"
    assert refusal("titles") == f"'titles': {reason}"


def test_base_classes_private_ones_and_imported_ones_are_not_meant(folder: Path) -> None:
    written(
        folder / "titles.py",
        """
        from gossamer import Module, Page
        from modules.jsonl import Jsonl

        class Base(Module):
            def help(self) -> None: ...

        class _Private(Base):
            def visit(self, page: Page) -> None: ...

        class Titles(_Private): ...
        """,
    )

    assert found("./titles.py").__name__ == "Titles"
    assert found("./titles.py:_Private").__name__ == "_Private"
    assert found("./titles.py:Jsonl").__module__ == "modules.jsonl"


def test_two_files_of_one_name_are_two_modules_and_one_file_is_run_once(folder: Path) -> None:
    written(folder / "a" / "titles.py")
    written(folder / "b" / "titles.py")

    assert found("./a/titles.py") is not found("./b/titles.py")
    assert found("./a/titles.py") is found("a/../a/titles.py")


def test_a_file_may_have_dataclasses_in_it(folder: Path) -> None:
    written(folder / "titles.py", "from __future__ import annotations\nimport dataclasses\n" + dedent(TITLES))
    with (folder / "titles.py").open("a", encoding="utf-8") as file:
        file.write("\n@dataclasses.dataclass\nclass Row:\n    title: str\n")

    assert found("./titles.py:Titles").__name__ == "Titles"


# --- Refused ----------------------------------------------------------------------------------------------------------


def test_an_unknown_name_is_refused_with_the_nearest_one_and_all_others(folder: Path) -> None:
    an_entry_point(folder, "shop = shop:Shop")

    assert refusal("jsnol") == "'jsnol': there is no such module; did you mean jsonl? There are csv, jsonl, noop, parquet, shop"
    assert refusal("jsnol:Jsonl") == refusal("jsnol")


def test_a_file_that_was_asked_for_without_its_ending_is_suggested(folder: Path) -> None:
    written(folder / "titles.py")

    assert "did you mean ./titles.py?" in refusal("titles")


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("./titles.py", "there is no such file"),
        ("nowhere.titles:Titles", "there is no nowhere; is it installed, or on PYTHONPATH?"),
        ("gossamer.titles:Titles", "there is no gossamer.titles; is it installed, or on PYTHONPATH?"),
        ("jsonl:Jsnol", "it has no class Jsnol; did you mean Jsonl?"),
        ("jsonl:json", "json is no subclass of gossamer.Module"),
        ("jsonl:PartFile", "PartFile is no subclass of gossamer.Module"),
        ("jsonl:Module", "Module has no visit"),
    ],
)
def test_what_is_not_there_is_refused(spec: str, reason: str) -> None:
    assert refusal(spec) == f"{spec.partition(':')[0]!r}: {reason}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no subclass of gossamer.Module is defined in it"),
        ("class Titles: ...", "no subclass of gossamer.Module is defined in it"),
        (TITLES + "\n    class Others(Titles): ...", "it has several modules; name one, as in ./titles.py:Titles"),
        ("def broken(:", "it can't be imported: SyntaxError: invalid syntax (titles.py, line 1)"),
        ("\n1 / 0", "it can't be imported: ZeroDivisionError: division by zero (titles.py:2)"),
        ("import sys\nsys.exit('bye')", "it can't be imported: SystemExit: bye (titles.py:2)"),
        ("import absent", "it can't be imported: ModuleNotFoundError: No module named 'absent' (titles.py:1)"),
        ("raise ValueError('a\\nb\\x1b[31m')", r"it can't be imported: ValueError: a\nb\x1b[31m (titles.py:1)"),
    ],
)
def test_a_file_that_is_no_module_is_refused_in_one_line(folder: Path, text: str, reason: str) -> None:
    written(folder / "titles.py", text)

    assert refusal("./titles.py") == f"'./titles.py': {reason}"
    assert refusal("./titles.py") == f"'./titles.py': {reason}", "and again: nothing of it was kept"


def test_what_an_importable_module_misses_is_not_taken_for_the_module_itself(folder: Path) -> None:
    written(folder / "shop" / "titles.py", "import absent")

    reason = "it can't be imported: ModuleNotFoundError: No module named 'absent' (titles.py:1)"
    assert refusal("shop.titles:Titles") == f"'shop.titles': {reason}"


@pytest.mark.parametrize(
    ("methods", "reason"),
    [
        ("def visit(self, page): yield 1", "T.visit yields, and nobody takes what it yields: it has to write it itself"),
        ("async def visit(self, page): yield 1", "T.visit yields, and nobody takes what it yields: it has to write it itself"),
        ("def visit(self, page): ...\n    def flush(self): ...", "T.flush has to be `async def`; only visit may be plain"),
        ("def visit(self, page): ...\n    def open(self, crawl): ...", "T.open has to be `async def`; only visit may be plain"),
        (
            "def __init__(self): 1 / 0\n    def visit(self, page): ...",
            "T can't be made: ZeroDivisionError: division by zero (t.py:3)",
        ),
    ],
)
def test_a_class_that_could_not_work_is_refused(folder: Path, methods: str, reason: str) -> None:
    written(folder / "t.py", f"from gossamer import Module\nclass T(Module):\n    {methods}")

    assert refusal("./t.py") == f"'./t.py': {reason}"


def test_a_wrong_option_is_refused_with_the_right_ones(folder: Path) -> None:
    written(folder / "titles.py")

    with pytest.raises(SettingsError, match=r"no option 'most'; it takes least \(a whole number\), words \(texts"):
        load([parse_spec("./titles.py:most=3")])


# --- Instances and outputs --------------------------------------------------------------------------------------------


def test_each_worker_has_an_instance_of_its_own_and_options_too(folder: Path) -> None:
    written(folder / "titles.py")
    titles = load([parse_spec("./titles.py:least=3,words=a,b")])[0]

    one, other = titles.make(), titles.make()

    assert vars(one) == vars(other) == {"least": 3, "words": ["a", "b"]}
    assert one is not other
    assert vars(one)["words"] is not vars(other)["words"]


def test_modules_keep_their_order() -> None:
    specs = [parse_spec(text) for text in ("jsonl", "noop", "jsonl:path=x.jsonl")]

    assert [each.spec for each in load(specs)] == specs


def jsonls(*paths: str) -> list[Loaded]:
    return load([parse_spec(f"jsonl:path={path}") for path in paths])


def test_the_files_to_merge_are_those_of_all_modules(folder: Path) -> None:
    modules = load([parse_spec(text) for text in ("noop", "jsonl", "jsonl:path=x.jsonl")])

    assert outputs(modules, a_crawl(folder)) == [Output(folder / "crawl.jsonl"), Output(Path("x.jsonl"))]


def test_two_modules_can_not_write_one_file() -> None:
    with pytest.raises(SettingsError, match=r"2 modules write .*x\.jsonl; give each a path of its own"):
        outputs(jsonls("x.jsonl", "a/../x.jsonl"), a_crawl())


def test_a_new_crawl_does_not_write_into_the_output_of_another(folder: Path) -> None:
    found = outputs(jsonls("x.jsonl"), a_crawl())
    refuse_taken(found)

    written(folder / "x.jsonl.parts" / "0-1.part", "")
    with pytest.raises(SettingsError, match=r"x\.jsonl has the output of an earlier crawl; name another path, or move it away"):
        refuse_taken(found)
