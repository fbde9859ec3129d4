"""Finding the modules that a crawl was asked for, and refusing what can't work before anything starts.

What a name may stand for, in the order in which it is tried:

1. `./file.py`, anything that ends in .py: that file, from the working directory. It stands alone: its neighbours are not on
   the path.
2. `package.module`, anything with a dot: imported as Python does, so installed or on PYTHONPATH.
3. `name`: the file of that name in modules/; then the entry point of that name in the group `gossamer.modules`; then, if a
   class is named too, the importable module of that name.

With `:Class` behind it that class is taken; else the only public subclass of `Module` that the file defines. Importing is running
their code: names come from the operator's settings and from nowhere else, least of all from a page.
Knows: names, files and classes. Must not know: pages, or when a module is called.
"""

import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from hashlib import blake2b
from importlib import import_module
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import Any, Final, TypeVar

from gossamer.errors import SettingsError
from gossamer.module import CrawlInfo, Module
from gossamer.options import ModuleSpec, keywords
from gossamer.parts import taken
from services.worker.blame import blame

T = TypeVar("T")

FOLDER: Final = Path(__file__).resolve().parents[2] / "modules"
GROUP: Final = "gossamer.modules"


@dataclass(frozen=True, slots=True)
class Loaded:
    """A module that was found and whose options are right."""

    spec: ModuleSpec
    cls: type[Module]

    def make(self) -> Module:
        """An instance of its own for each worker. Raises `SettingsError` if its class refuses the options."""
        # Converted anew each time: an option may be a list, and what one instance does to it must not reach the next.
        options = keywords(self.cls, self.spec.options, self.spec.name)
        return _theirs(lambda: self.cls(**options), self.spec, f"{self.cls.__name__} can't be made")


def load(specs: Iterable[ModuleSpec]) -> list[Loaded]:
    """Finds them all, in order. Raises `SettingsError`, one line, for the first that can't work."""
    loaded = [Loaded(spec, _class(spec)) for spec in specs]
    for each in loaded:
        each.make()  # and let go: modules open nothing before `open`, and a wrong option shows now
    return loaded


def outputs(loaded: Iterable[Loaded], crawl: CrawlInfo) -> list[Path]:
    """The files that are to be merged at the crawl's end. Raises `SettingsError` if two modules would write the same one."""
    paths = [
        path for each in loaded for path in _theirs(partial(each.make().outputs, crawl), each.spec, "it can't name its outputs")
    ]
    for path, count in Counter(path.resolve() for path in paths).items():
        if count > 1:
            raise SettingsError(f"{count} modules write {path}; give each a path of its own")
    return paths


def refuse_taken(paths: Iterable[Path]) -> None:
    """For a crawl that is new, not resumed: raises `SettingsError` if its output would be mixed with an earlier crawl's."""
    for path in paths:
        if taken(path):
            raise SettingsError(f"{path} has the output of an earlier crawl; name another path, or move it away")


def _class(spec: ModuleSpec) -> type[Module]:
    name, wanted = spec.name, spec.cls
    if name.endswith(".py"):
        return _class_in(_file(Path(name), spec), wanted, spec)
    if "." in name:
        return _class_in(_imported(name, spec), wanted, spec)
    if name in _names_in_folder():
        return _class_in(_imported(f"{FOLDER.name}.{name}", spec), wanted, spec)
    if entry := _entry_point(spec):
        return _class_in(_imported(entry.module, spec), wanted or entry.attr or None, spec)
    if wanted is not None and _is_importable(name):
        return _class_in(_imported(name, spec), wanted, spec)
    raise _refused(spec, f"there is no such module; {_nearest(name, _known_names(name))}")


def _file(path: Path, spec: ModuleSpec) -> ModuleType:
    if not path.is_file():
        raise _refused(spec, "there is no such file")
    # Named by its place, so that a file that is asked for twice is run once, and two of one name are not mixed up.
    name = f"gossamer_file_{blake2b(bytes(path.resolve()), digest_size=8).hexdigest()}"
    if name in sys.modules:
        return sys.modules[name]
    found = spec_from_file_location(name, path)
    assert found is not None, "a path that ends in .py has a loader"
    assert found.loader is not None
    module = sys.modules[name] = module_from_spec(found)  # entered before it runs, as import does: dataclasses look there
    try:
        _theirs(partial(found.loader.exec_module, module), spec, "it can't be imported")
    except SettingsError:
        del sys.modules[name]
        raise
    return module


def _imported(name: str, spec: ModuleSpec) -> ModuleType:
    try:
        return _theirs(lambda: import_module(name), spec, "it can't be imported")
    except SettingsError as error:
        cause = error.__cause__
        if isinstance(cause, ModuleNotFoundError) and cause.name is not None and f"{name}.".startswith(f"{cause.name}."):
            raise _refused(spec, f"there is no {cause.name}; is it installed, or on PYTHONPATH?") from cause
        raise


def _is_importable(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # ValueError: one that was never imported as such, like __main__
        return False


def _entry_point(spec: ModuleSpec) -> EntryPoint | None:
    found = sorted(set(entry_points(group=GROUP, name=spec.name)))
    if len(found) > 1:
        values = ", ".join(each.value for each in found)
        raise _refused(spec, f"several packages have a module of that name; take one of {values}")
    return found[0] if found else None


def _class_in(module: ModuleType, wanted: str | None, spec: ModuleSpec) -> type[Module]:
    if wanted is None:
        names = [cls.__name__ for cls in _classes(module)]
        if len(names) != 1:
            several = f"it has several modules; name one, as in {spec.name}:{names[0]}" if names else ""
            raise _refused(spec, several or "no subclass of gossamer.Module is defined in it")
        wanted = names[0]
    found = getattr(module, wanted, None)
    if found is None:
        raise _refused(spec, f"it has no class {wanted}; {_nearest(wanted, [cls.__name__ for cls in _classes(module)])}")
    return _checked(found, wanted, spec)


def _classes(module: ModuleType) -> list[type[Module]]:
    """Those that somebody may mean who names none: not imported ones, base classes or private ones."""
    return [
        each
        for each in vars(module).values()
        if inspect.isclass(each) and issubclass(each, Module) and each.__module__ == module.__name__
        if not each.__name__.startswith("_") and not inspect.isabstract(each)
    ]


def _checked(found: Any, name: str, spec: ModuleSpec) -> type[Module]:
    """What would only show at the first page, or never, shows here."""
    if not inspect.isclass(found) or not issubclass(found, Module):
        raise _refused(spec, f"{name} is no subclass of gossamer.Module")
    if found is Module or inspect.isabstract(found):
        raise _refused(spec, f"{name} has no visit")
    if inspect.isgeneratorfunction(found.visit) or inspect.isasyncgenfunction(found.visit):
        raise _refused(spec, f"{name}.visit yields, and nobody takes what it yields: it has to write it itself")
    for method in (found.open, found.flush, found.close):
        if not inspect.iscoroutinefunction(method):
            raise _refused(spec, f"{name}.{method.__name__} has to be `async def`; only visit may be plain")
    return found


def _theirs(call: Callable[[], T], spec: ModuleSpec, what: str) -> T:
    """Runs code that is not ours. SystemExit is an error of theirs as any; KeyboardInterrupt is the operator's."""
    try:
        return call()
    except (Exception, SystemExit) as error:
        raise _refused(spec, f"{what}: {blame(error)}") from error


def _names_in_folder() -> list[str]:
    return sorted(path.stem for path in FOLDER.glob("*.py") if not path.stem.startswith("_"))


def _known_names(name: str) -> list[str]:
    in_reach = [f"./{name}.py"] if Path(f"{name}.py").is_file() else []
    return sorted({*in_reach, *_names_in_folder(), *entry_points(group=GROUP).names})


def _nearest(name: str, names: Sequence[str]) -> str:
    if not names:
        return "it has no module at all"
    nearest = get_close_matches(name[:80], names, n=1, cutoff=0.0)[0]
    return f"did you mean {nearest}?" + (f" There are {', '.join(names)}" if len(names) > 1 else "")


def _refused(spec: ModuleSpec, reason: str) -> SettingsError:
    return SettingsError(f"--module {spec.name!r}: {reason}")
