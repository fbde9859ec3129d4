"""Finding the classes that an operator names, modules and prioritizers, and refusing what can't work before anything starts.

What a name may stand for, in the order in which it is tried:

1. `./file.py`, anything that ends in .py: that file, from the working directory. It stands alone: its neighbours are not on
   the path.
2. `package.module`, anything with a dot: imported as Python does, so installed or on PYTHONPATH.
3. `name`: the one of that name that comes along; then the entry point of that name; then, if a class is named too, the importable
   module of that name.

With `:Class` behind it that class is taken; else the only public one of its kind that the file defines. Importing is running
their code: names come from the operator's settings and from nowhere else, least of all from a page.
Knows: names, files and classes. Must not know: what a plug-in is for, or when it is called.
"""

import inspect
import sys
from collections.abc import Callable, Mapping, Sequence
from difflib import get_close_matches
from functools import partial
from hashlib import blake2b
from importlib import import_module
from importlib.util import find_spec, module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from gossamer.errors import SettingsError
from gossamer.options import ModuleSpec, keywords
from services.role.blame import blame

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint, EntryPoints

T = TypeVar("T")


class PluginKind(msgspec.Struct, frozen=True):
    """What all plug-ins of one kind share."""

    word: str  #: what one is called, and the flag that asks for it
    sort: str  #: what its class is, in words that fit behind "no": "subclass of gossamer.Module"
    group: str  #: of entry points
    along: Callable[[], Mapping[str, str]]  #: those that come along: by name, the importable module that has the class
    is_one: Callable[[type], bool]  #: whether a class is of this kind
    wrong: Callable[[type], str | None]  #: why one that is would not work

    def find(self, spec: ModuleSpec) -> type[Any]:
        """Raises `SettingsError`, one line, also for what would only show when it is first called."""
        return _Search(self, spec).found()

    def make(self, cls: Callable[..., T], spec: ModuleSpec) -> T:
        """An instance, with its options. Raises `SettingsError` if it refuses them."""
        # Converted anew each time: an option may be a list, and what one instance does to it must not reach the next.
        options = keywords(cls, spec.options, spec.name, self.word)
        return self.theirs(lambda: cls(**options), spec, f"{getattr(cls, '__name__', spec.name)} can't be made")

    def theirs(self, call: Callable[[], T], spec: ModuleSpec, what: str) -> T:
        """Runs code that is not ours. SystemExit is an error of theirs as any; KeyboardInterrupt is the operator's."""
        try:
            return call()
        except (Exception, SystemExit) as error:
            raise self.refused(spec, f"{what}: {blame(error)}") from error

    def refused(self, spec: ModuleSpec, reason: str) -> SettingsError:
        return SettingsError(f"--{self.word} {spec.name!r}: {reason}")


class _Search:
    """For one of them."""

    def __init__(self, kind: PluginKind, spec: ModuleSpec) -> None:
        self._kind, self._spec = kind, spec

    def found(self) -> type[Any]:
        name, wanted = self._spec.name, self._spec.cls
        if name.endswith(".py"):
            return self._class_in(self._file(Path(name)), wanted)
        if "." in name:
            return self._class_in(self._imported(name), wanted)
        if name in (along := self._kind.along()):
            return self._class_in(self._imported(along[name]), wanted)
        if entry := self._entry_point():
            return self._class_in(self._imported(entry.module), wanted or entry.attr or None)
        if wanted is not None and _is_importable(name):
            return self._class_in(self._imported(name), wanted)
        raise self._refused(f"there is no such {self._kind.word}; {self._nearest(name, self._known_names())}")

    def _file(self, path: Path) -> ModuleType:
        if not path.is_file():
            raise self._refused("there is no such file")
        # Named by its place, so that a file that is asked for twice is run once, and two of one name are not mixed up.
        name = f"gossamer_file_{blake2b(bytes(path.resolve()), digest_size=8).hexdigest()}"
        if name in sys.modules:
            return sys.modules[name]
        found = spec_from_file_location(name, path)
        assert found is not None, "a path that ends in .py has a loader"
        assert found.loader is not None
        module = sys.modules[name] = module_from_spec(found)  # entered before it runs, as import does: dataclasses look there
        try:
            self._theirs(partial(found.loader.exec_module, module), "it can't be imported")
        except SettingsError:
            del sys.modules[name]
            raise
        return module

    def _imported(self, name: str) -> ModuleType:
        try:
            return self._theirs(lambda: import_module(name), "it can't be imported")
        except SettingsError as error:
            cause = error.__cause__
            if isinstance(cause, ModuleNotFoundError) and cause.name is not None and f"{name}.".startswith(f"{cause.name}."):
                raise self._refused(f"there is no {cause.name}; is it installed, or on PYTHONPATH?") from cause
            raise

    def _entry_point(self) -> "EntryPoint | None":
        found = sorted(set(_entry_points(self._kind.group).select(name=self._spec.name)))
        if len(found) > 1:
            values = ", ".join(each.value for each in found)
            raise self._refused(f"several packages have a {self._kind.word} of that name; take one of {values}")
        return found[0] if found else None

    def _class_in(self, module: ModuleType, wanted: str | None) -> type[Any]:
        if wanted is None:
            names = self._class_names(module)
            if len(names) != 1:
                several = f"it has several {self._kind.word}s; name one, as in {self._spec.name}:{names[0]}" if names else ""
                raise self._refused(several or f"no {self._kind.sort} is defined in it")
            wanted = names[0]
        found = getattr(module, wanted, None)
        if found is None:
            raise self._refused(f"it has no class {wanted}; {self._nearest(wanted, self._class_names(module))}")
        return self._checked(found, wanted)

    def _class_names(self, module: ModuleType) -> list[str]:
        """Those that somebody may mean who names none: not imported ones, base classes or private ones."""
        return [
            each.__name__
            for each in vars(module).values()
            if inspect.isclass(each) and self._kind.is_one(each) and each.__module__ == module.__name__
            if not each.__name__.startswith("_") and not inspect.isabstract(each)
        ]

    def _checked(self, found: Any, name: str) -> type[Any]:
        """What would only show when it is first called, or never, shows here."""
        if not inspect.isclass(found) or not self._kind.is_one(found):
            raise self._refused(f"{name} is no {self._kind.sort}")
        if (wrong := self._kind.wrong(found)) is not None:
            raise self._refused(wrong)
        return found

    def _known_names(self) -> list[str]:
        name = self._spec.name
        in_reach = [f"./{name}.py"] if Path(f"{name}.py").is_file() else []
        return sorted({*in_reach, *self._kind.along(), *_entry_points(self._kind.group).names})

    def _nearest(self, name: str, names: Sequence[str]) -> str:
        if not names:
            return f"it has no {self._kind.word} at all"
        nearest = get_close_matches(name[:80], names, n=1, cutoff=0.0)[0]
        return f"did you mean {nearest}?" + (f" There are {', '.join(names)}" if len(names) > 1 else "")

    def _theirs(self, call: Callable[[], T], what: str) -> T:
        return self._kind.theirs(call, self._spec, what)

    def _refused(self, reason: str) -> SettingsError:
        return self._kind.refused(self._spec, reason)


def _entry_points(group: str) -> "EntryPoints":
    from importlib.metadata import entry_points  # slow to import, and hardly ever asked

    return entry_points(group=group)


def _is_importable(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except (ImportError, ValueError):  # ValueError: one that was never imported as such, like __main__
        return False
