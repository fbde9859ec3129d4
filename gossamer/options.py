"""What stands behind `--module` and `--prioritizer`: the parts of its text, and its options as keyword arguments.

Options are texts on a command line and keywords with annotations in a class. Both are compared before anything starts, so that a
wrong option is an answer in a second and not a traceback in an hour.
Knows: texts and signatures. Must not know: where plug-ins are found, or how they are loaded.
"""

import inspect
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import MappingProxyType, NoneType, UnionType
from typing import Any, Final, NamedTuple, Union, get_args, get_origin, get_type_hints

from gossamer import kinds
from gossamer.errors import SettingsError
from gossamer.kinds import Kind


class ModuleSpec(NamedTuple):
    """A module, or a plug-in of another kind, as it was asked for."""

    name: str  #: of a file in modules/ or an entry point; or package.module; or the path of a .py file
    cls: str | None  #: the class in it; None: the only one that there is
    options: Mapping[str, str]


def parse_spec(text: str, word: str = "module") -> ModuleSpec:
    """Reads `NAME[:Class][:key=value,…]`, as it stands behind the flag that `word` names. Raises `SettingsError`.

    A value may have commas, unless there is an `=` between one and the next: `fields=url,title` is one option. `\\,` is a comma
    that never ends a value.
    """
    name, *parts = text.strip().split(":", 1)
    if not _NAME(name):
        raise _refused(text, word, "it takes NAME, package.module:Class or ./file.py, each with :key=value,... behind it or not")
    cls = None
    if parts and "=" not in (head := parts[0].partition(":")[0]):
        if not head.isidentifier():
            raise _refused(text, word, f"{head!r} is neither a class nor key=value")
        cls, *parts = parts[0].split(":", 1)
    if cls is None and "." in name and not name.endswith(".py"):
        raise _refused(text, word, f"it takes a class too, as in {name}:Class")
    return ModuleSpec(name, cls, MappingProxyType(_options(text, word, parts[0]) if parts else {}))


def keywords(make: Callable[..., object], options: Mapping[str, str], name: str, word: str = "module") -> dict[str, Any]:
    """The options as keyword arguments for `make` (a plug-in's class), converted by its annotations.

    Raises `SettingsError` for one that it does not take, one that is wrong and one that is missing, with those that it takes.
    """
    kinds_by_key, needed, takes_any = _parameters(make, f"{word} {name}")
    takes = ", ".join(f"{key} ({kind.accepts})" for key, kind in kinds_by_key.items()) or "none"
    for key in options:
        if key not in kinds_by_key and not takes_any:
            raise SettingsError(f"{word} {name} has no option {key!r}; it takes {takes}")
    for key in needed:
        if key not in options:
            raise SettingsError(f"{word} {name} needs the option {key}; it takes {takes}")
    return {key: _value(kinds_by_key.get(key, _ANY_TEXT), key, written, f"{word} {name}") for key, written in options.items()}


#: A file in modules/ or an entry point; a package with its modules; a file. Its path may have anything but a colon.
_NAME: Final = re.compile(r"[A-Za-z_][\w-]*(?:\.[A-Za-z_]\w*)*|[^:]+\.py").fullmatch

_ANY_TEXT: Final = Kind("a text", "TEXT", str)
_KINDS: Final[Mapping[Any, Kind[Any]]] = MappingProxyType(
    {
        inspect.Parameter.empty: _ANY_TEXT,
        str: _ANY_TEXT,
        int: kinds.whole(),
        float: kinds.number(),
        bool: kinds.yes_or_no(),
        Path: kinds.path(),
        list[str]: Kind("texts with commas between", "A,B", lambda written: [each.strip() for each in written.split(",")]),
    }
)


def _options(spec: str, word: str, text: str) -> dict[str, str]:
    options: dict[str, str] = {}
    key = ""
    for piece in re.split(r"(?<!\\),", text):
        piece = piece.replace("\\,", ",")
        if "=" not in piece and key:
            options[key] += "," + piece
            continue
        key, equals, value = piece.partition("=")
        if not equals or not key.isidentifier():
            raise _refused(spec, word, f"{piece!r} is not key=value (a comma inside a value is written \\,)")
        if key in options:
            raise _refused(spec, word, f"{key} is given twice")
        options[key] = value
    return options


def _parameters(make: Callable[..., object], name: str) -> tuple[dict[str, Kind[Any]], list[str], bool]:
    """What can be given by keyword and as a text; what has to be; and whether anything else may be as well."""
    if _takes_nothing(make):
        return {}, [], False
    parameters = inspect.signature(make).parameters.values()
    try:
        annotations = get_type_hints(make.__init__ if inspect.isclass(make) else make)
    except NameError as error:
        raise SettingsError(f"{name}: the types of its options can't be read: {error}") from error
    by_keyword = [each for each in parameters if each.kind in (each.POSITIONAL_OR_KEYWORD, each.KEYWORD_ONLY)]
    found = {each.name: _kind_of(annotations.get(each.name, each.empty)) for each in by_keyword}
    return (
        {key: kind for key, kind in found.items() if kind is not None},
        [each.name for each in by_keyword if each.default is each.empty],
        any(each.kind is each.VAR_KEYWORD for each in parameters),
    )


def _takes_nothing(make: Callable[..., object]) -> bool:
    """A class that says nothing of how it is made. `inspect` would parse Python's own words for it, which takes longest."""
    made: Any = make
    return type(made).__call__ is type.__call__ and made.__init__ is object.__init__ and made.__new__ is object.__new__


def _kind_of(annotation: Any) -> Kind[Any] | None:
    """None for a type that no text stands for: such a parameter is the author's own business, and no option."""
    if get_origin(annotation) in (Union, UnionType):
        others = [each for each in get_args(annotation) if each is not NoneType]
        kind = _kind_of(others[0]) if len(others) == 1 else None
        return kinds.optional(kind) if kind else None
    return _KINDS.get(annotation)


def _value(kind: Kind[Any], key: str, written: str, name: str) -> Any:
    try:
        return kind.parse(written)
    except ValueError:
        raise SettingsError(f"{name}: {key} is {written!r}; it takes {kind.accepts}") from None


def _refused(spec: str, word: str, reason: str) -> SettingsError:
    return SettingsError(f"--{word} {spec!r}: {reason}")
