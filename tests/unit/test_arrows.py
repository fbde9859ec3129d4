"""Imports point one way: gossamer ← everything; services reach adapters through adapters.wiring alone, and never each other.

What they share as processes is services.role, which knows none of them.
"""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = ("gossamer", "adapters", "services", "modules", "bench", "tests")
FILES = sorted(path for folder in OURS for path in (ROOT / folder).rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """The modules of ours that a file imports, wherever in it."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.split(".")[0] in OURS)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] in OURS:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)
        assert not (isinstance(node, ast.ImportFrom) and node.level), f"{path}: relative imports hide the arrow"


def allowed(importer: tuple[str, ...], imports: str) -> bool:
    target = tuple(imports.split("."))
    match importer[0]:
        case "tests" | "bench":
            return True
        case "gossamer" | "modules":
            return target[0] == "gossamer" or target[:1] == importer[:1]
        case "adapters":
            return target[0] == "gossamer" or (target[0] == "adapters" and not crosses_engines(importer, target))
        case "services":
            ours = target[0] == "services" and (
                target[:2] == importer[:2] or target[:2] == ("services", "role") or runs_all(importer)
            )
            return target[0] == "gossamer" or target[:2] == ("adapters", "wiring") or target == ("adapters",) or ours
        case _:
            return False


def crosses_engines(importer: tuple[str, ...], target: tuple[str, ...]) -> bool:
    """One engine's adapters know nothing of the other's; wiring knows both."""
    engines = ("embedded", "distributed")
    there = target[1] if len(target) > 1 else ""
    return importer[1] in engines and there in engines and importer[1] != there


def runs_all(importer: tuple[str, ...]) -> bool:
    """The engines of the controller start the other services: the embedded one runs all of them in its process."""
    return importer[:3] == ("services", "controller", "engines")


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    importer = path.relative_to(ROOT).with_suffix("").parts
    assert [name for name in imported(path) if not allowed(importer, name)] == []


def test_the_check_sees_a_wrong_arrow() -> None:
    assert not allowed(("services", "worker", "walk"), "adapters.embedded.ledger")
    assert not allowed(("services", "worker", "walk"), "services.frontier.router")
    assert not allowed(("adapters", "embedded", "ledger"), "services.worker.walk")
    assert not allowed(("adapters", "distributed", "ledger"), "adapters.embedded.ledger")
    assert not allowed(("gossamer", "urls"), "adapters.wiring")
    assert not allowed(("modules", "jsonl"), "services.worker.visit")
    assert not allowed(("services", "role", "process"), "services.worker.walk")
    assert allowed(("services", "worker", "__main__"), "services.role.process")
    assert allowed(("services", "worker", "walk"), "adapters.wiring")
    assert allowed(("services", "controller", "engines", "embedded"), "services.worker.walk")
