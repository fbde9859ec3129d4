"""The ledger's Lua: a script's header says what it takes, and the script takes just that."""

import inspect
import re
from collections.abc import Iterator
from importlib.resources import files

import pytest

from adapters.distributed.ledger_scripts import script, source, uses
from gossamer.ports.ledger import Ledger

FOLDER = files("adapters.distributed").joinpath("lua")
SCRIPTS = sorted(entry.name.removesuffix(".lua") for entry in FOLDER.iterdir() if entry.name.endswith(".lua"))
SHARED = sorted(entry.name.removesuffix(".lua") for entry in FOLDER.joinpath("shared").iterdir())
#: A table that a shared file defines, and others may use: its one public name.
DEFINES = {name: set(re.findall(r"^local ([A-Z][a-z]\w*) = \{", source(f"shared/{name}"), re.MULTILINE)) for name in SHARED}


def header_and_code(text: str) -> tuple[str, str]:
    """The comment lines at the beginning, and the rest."""
    lines = text.splitlines()
    code_at = next(number for number, line in enumerate(lines) if not line.startswith("--"))
    return "\n".join(lines[:code_at]), "\n".join(lines[code_at:])


def arguments(text: str) -> list[str]:
    return re.findall(r"\b(?:KEYS|ARGV)\[\d+\]", text)


def without_comments(code: str) -> str:
    return re.sub(r"--.*", "", code)


def test_every_verb_of_the_port_is_a_script_and_no_script_is_anything_else() -> None:
    verbs = {name for name, _ in inspect.getmembers(Ledger, inspect.iscoroutinefunction)} - {"close"}

    assert set(SCRIPTS) == verbs


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_scripts_header_names_what_the_script_takes_and_nothing_else(name: str) -> None:
    header, code = header_and_code(source(name))

    named = re.findall(r"^-- ((?:KEYS|ARGV)\[\d+\]) +(\w+)", header, re.MULTILINE)
    assert [argument for argument, _ in named] == [*_numbered("KEYS", header), *_numbered("ARGV", header)], "in order, without gaps"
    assert sorted(arguments(code)) == sorted(argument for argument, _ in named), "each is used, once"
    first_lines = "\n".join(code.splitlines()[:2])
    assert arguments(first_lines) == arguments(code), "they get their names in the first lines, and are not indexed again"
    for _, meaning in named:
        assert re.search(rf"\blocal [^=]*\b{meaning}\b[^=]*=", first_lines), f"{meaning} is called otherwise in the script"


def _numbered(kind: str, header: str) -> Iterator[str]:
    count = len(re.findall(rf"^-- {kind}\[\d+\]", header, re.MULTILINE))
    return (f"{kind}[{number}]" for number in range(1, count + 1))


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_scripts_header_says_what_it_does_returns_and_why_it_is_lua(name: str) -> None:
    header, _ = header_and_code(source(name))

    assert header.startswith(f"-- {name}.lua: ")
    for line in ("-- Uses     ", "-- Returns  ", "-- In Lua because "):
        assert header.count(f"\n{line}") == 1, line


@pytest.mark.parametrize("part", [*SCRIPTS, *(f"shared/{name}" for name in SHARED)])
def test_a_file_uses_what_it_says_and_says_what_it_uses(part: str) -> None:
    code = without_comments(source(part))
    owners = {table: f"shared/{name}" for name, tables in DEFINES.items() for table in tables}
    needed = {owners[table] for table in owners if re.search(rf"\b{table}\.", code)} - {part}

    reached: set[str] = set()
    waiting = uses(part)
    while waiting:
        used = waiting.pop()
        if used not in reached:
            reached.add(used)
            waiting += uses(used)
    assert needed <= reached, "a table that would be nil"
    assert set(uses(part)) <= needed, "what is not used costs with each call"


@pytest.mark.parametrize("name", SHARED)
def test_a_shared_file_defines_one_table_and_says_what_it_is_for(name: str) -> None:
    assert len(DEFINES[name]) == 1
    assert source(f"shared/{name}").startswith(f"-- {name}.lua: ")


def test_a_script_begins_with_the_words_that_python_has_for_them() -> None:
    text = script("begin").text

    assert "local FETCHING = 3" in text
    assert 'local POISON = "poison"' in text
    assert "local Gate = { GO = 0, " in text
