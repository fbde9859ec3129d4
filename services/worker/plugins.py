"""The modules that a crawl was asked for: found by their names, tried, and refused if they can't work, before anything starts.

A name is a file in modules/, an entry point of the group `gossamer.modules`, or what else `services/role/plugins.py` finds.
Must not know: pages, or when a module is called.
"""

import inspect
from collections import Counter
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import Final

import msgspec

from gossamer.errors import SettingsError
from gossamer.forms import Output
from gossamer.module import CrawlInfo, Module
from gossamer.options import ModuleSpec
from gossamer.parts import taken
from services.role.plugins import PluginKind

FOLDER: Final = Path(__file__).resolve().parents[2] / "modules"
GROUP: Final = "gossamer.modules"


class Loaded(msgspec.Struct, frozen=True):
    """A module that was found and whose options are right."""

    spec: ModuleSpec
    cls: type[Module]

    def make(self) -> Module:
        """An instance of its own for each worker. Raises `SettingsError` if its class refuses the options."""
        return MODULES.make(self.cls, self.spec)


def load(specs: Iterable[ModuleSpec]) -> list[Loaded]:
    """Finds them all, in order. Raises `SettingsError`, one line, for the first that can't work."""
    loaded = [Loaded(spec, MODULES.find(spec)) for spec in specs]
    for each in loaded:
        each.make()  # and let go: modules open nothing before `open`, and a wrong option shows now
    return loaded


def outputs(loaded: Iterable[Loaded], crawl: CrawlInfo) -> list[Output]:
    """The files that are to be merged at the crawl's end. Raises `SettingsError` if two modules would write the same one."""
    found = [output for each in loaded for output in _outputs(each, crawl)]
    for path, count in Counter(output.path.resolve() for output in found).items():
        if count > 1:
            raise SettingsError(f"{count} modules write {path}; give each a path of its own")
    return found


def _outputs(loaded: Loaded, crawl: CrawlInfo) -> list[Output]:
    module = loaded.make()
    paths = MODULES.theirs(partial(module.outputs, crawl), loaded.spec, "it can't name its outputs")
    return [Output(path, module.form) for path in paths]


def refuse_taken(outputs: Iterable[Output]) -> None:
    """For a crawl that is new, not resumed: raises `SettingsError` if its output would be mixed with an earlier crawl's."""
    for output in outputs:
        if taken(output.path):
            raise SettingsError(f"{output.path} has the output of an earlier crawl; name another path, or move it away")


def _along() -> dict[str, str]:
    return {path.stem: f"{FOLDER.name}.{path.stem}" for path in sorted(FOLDER.glob("*.py")) if not path.stem.startswith("_")}


def _wrong(cls: type[Module]) -> str | None:
    if cls is Module or inspect.isabstract(cls):
        return f"{cls.__name__} has no visit"
    if inspect.isgeneratorfunction(cls.visit) or inspect.isasyncgenfunction(cls.visit):
        return f"{cls.__name__}.visit yields, and nobody takes what it yields: it has to write it itself"
    for method in (cls.open, cls.flush, cls.close):
        if not inspect.iscoroutinefunction(method):
            return f"{cls.__name__}.{method.__name__} has to be `async def`; only visit may be plain"
    return None


MODULES: Final = PluginKind(
    word="module",
    sort="subclass of gossamer.Module",
    group=GROUP,
    along=_along,
    is_one=lambda cls: issubclass(cls, Module),
    wrong=_wrong,
)
