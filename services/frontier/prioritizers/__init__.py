"""Ways to rank a URL. A prioritizer gives a priority from 0 (best) to 100 (worst) to each of a batch; it is chosen by name.

Those that come along are files here; others are found as `services/role/plugins.py` tells, and run guarded.
"""

import inspect
from typing import Final

import msgspec

from gossamer.options import ModuleSpec, parse_spec
from gossamer.prioritizer import Prioritizer
from services.role.plugins import PluginKind

GROUP: Final = "gossamer.prioritizers"
WORD: Final = "prioritizer"

#: By name.
ALONG: Final = {name: f"{__name__}.{name}" for name in ("breadth", "constant", "pagerank")}


class Chosen(msgspec.Struct, frozen=True):
    """A prioritizer that was found and whose options are right."""

    spec: ModuleSpec
    cls: type[Prioritizer]

    @property
    def is_ours(self) -> bool:
        return self.spec.name in ALONG

    def make(self) -> Prioritizer:
        """An instance of its own for each frontier. Raises `SettingsError` if its class refuses the options."""
        return PRIORITIZERS.make(self.cls, self.spec)


def choose(text: str) -> Chosen:
    """Raises `SettingsError`, one line, for one that can't work, with the right ones where there is a choice."""
    spec = parse_spec(text, WORD)
    chosen = Chosen(spec, PRIORITIZERS.find(spec))
    chosen.make()  # and let go: a wrong option shows now
    return chosen


def _is_one(cls: type) -> bool:
    """Its instances can be called; whether it says that it is a `Prioritizer` does not matter."""
    return any("__call__" in vars(base) for base in cls.__mro__)


def _wrong(cls: type[Prioritizer]) -> str | None:
    call = cls.__call__
    if inspect.isabstract(cls):
        return f"{cls.__name__} has no __call__"
    if inspect.iscoroutinefunction(call) or inspect.isasyncgenfunction(call) or inspect.isgeneratorfunction(call):
        return f"{cls.__name__}.__call__ has to be a plain `def` that returns a list"
    return None


PRIORITIZERS: Final = PluginKind(
    word=WORD,
    sort="class with a __call__",
    group=GROUP,
    along=lambda: ALONG,
    is_one=_is_one,
    wrong=_wrong,
)
