"""Kinds of values: how a text becomes a number, a size, a duration, a choice, and what to say when it doesn't.

Settings and the options of modules are both written by people, so both take the same spellings and refuse in the same words.
Knows: a text and the value in it. Must not know: where the text came from, or which setting it is for.
Standard library only, since `controller.py --help` has to work before anything is installed.
"""

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Final, Generic, TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")
Choice = TypeVar("Choice", bound=StrEnum)

#: The largest whole number that every engine keeps exactly: Lua's numbers are doubles.
COUNT_MAX: Final = 2**53 - 1

#: Some thirty years: nothing waits longer, and no clock overflows.
DURATION_MAX_S: Final = 1e9


@dataclass(frozen=True, slots=True)
class Kind(Generic[T]):
    """One kind of value. `parse(show(value)) == value`."""

    accepts: str  #: what may be written, in words that fit behind "it takes"
    metavar: str  #: what stands for the value in a line of help
    parse: Callable[[str], T]  #: raises ValueError for a text that is not of this kind, with a reason if it is not plain
    show: Callable[[T], str] = str
    bare: str | None = None  #: what a flag means that stands there without a value; None: it needs one


def text(accepts: str = "a text", metavar: str = "TEXT") -> Kind[str]:
    """Any text on one line, but for none at all."""

    def parse(written: str) -> str:
        _require(bool(written) and written.isprintable())
        return written

    return Kind(accepts, metavar, parse)


def header(accepts: str, metavar: str) -> Kind[str]:
    """A text that can stand in an HTTP header: a line break in it would begin a header of its own."""

    def parse(written: str) -> str:
        _require(bool(written) and written.isascii() and written.isprintable())
        return written

    return Kind(f"{accepts} (printable ASCII)", metavar, parse)


def count(least: int = 0, most: int = COUNT_MAX) -> Kind[int]:
    """A whole number within bounds. `10_000` is 10000, as in Python and TOML."""

    def parse(written: str) -> int:
        _require(_COUNT(written) is not None)
        number = int(written)
        _require(least <= number <= most)
        return number

    return Kind(f"a whole number {_bounds(str(least), None if most == COUNT_MAX else str(most))}", "N", parse)


def size(least: int = 0) -> Kind[int]:
    """A number of bytes. KB and MB are powers of ten, KiB and MiB powers of two, and a plain number is bytes."""

    def parse(written: str) -> int:
        match = _require_match(_SIZE(written))
        decimals, unit = match["decimals"] or "", _SIZE_UNITS[(match["unit"] or "B").lower()][1]
        # In whole numbers: 0.3MB is exactly 300000, which floats would not promise.
        scale: int = 10 ** len(decimals)
        number, rest = divmod(int(match["whole"] + decimals) * unit, scale)
        _require(rest == 0)
        _require(least <= number <= COUNT_MAX)
        return number

    return Kind(f"a size {_bounds(str(least))}, such as 500KB, 50MB, 2MiB or 4096", "SIZE", parse, _show_size)


def duration(*, positive: bool = False) -> Kind[float]:
    """A time span in seconds, or with s, m or h behind it."""

    def parse(written: str) -> float:
        match = _require_match(_DURATION(written))
        seconds = float(match["number"]) * _DURATION_UNITS[match["unit"] or "s"]
        _require(seconds <= DURATION_MAX_S)
        _require(seconds > 0 or not positive)
        return seconds

    above = " above 0" if positive else ""
    return Kind(f"a duration{above}, such as 1.5, 90s, 5m or 1h", "TIME", parse, _show_duration)


def share() -> Kind[float]:
    """A part of a whole: above 0, up to 1."""

    def parse(written: str) -> float:
        _require(_NUMBER(written) is not None)
        number = float(written)
        _require(0 < number <= 1)
        return number

    return Kind("a number above 0, up to 1", "SHARE", parse)


def number() -> Kind[float]:
    """A finite number, of either sign."""

    def parse(written: str) -> float:
        _require(_NUMBER(written.removeprefix("-")) is not None)
        value = float(written)
        _require(abs(value) != float("inf"))  # 1e999 is written as a number, and is none
        return value

    return Kind("a number", "X", parse)


def whole() -> Kind[int]:
    """A whole number, of either sign."""

    def parse(written: str) -> int:
        _require(_COUNT(written.removeprefix("-")) is not None)
        return int(written)

    return Kind("a whole number", "N", parse)


def yes_or_no() -> Kind[bool]:
    """True or false, as an option of a module."""
    return Kind("true or false", "true|false", _switched, lambda value: "true" if value else "false")


def switch() -> Kind[bool]:
    """On or off, as a setting: the flag alone turns it on."""
    return Kind("on or off", "on|off", _switched, lambda value: "on" if value else "off", bare="on")


def choice(of: type[Choice]) -> Kind[Choice]:
    """One of an enum's values."""
    names = [member.value for member in of]

    def parse(written: str) -> Choice:
        _require(written in names)
        return of(written)

    return Kind(f"{', '.join(names[:-1])} or {names[-1]}", "|".join(names), parse)


def regex() -> Kind[str]:
    """A regular expression, compiled to see that it is one."""

    def parse(written: str) -> str:
        try:
            re.compile(text().parse(written))
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(str(error)) from error
        return written

    return Kind("a regular expression", "REGEX", parse)


def network() -> Kind[str]:
    """An IP network, as its own shortest text."""

    def parse(written: str) -> str:
        _require("%" not in written)  # a zone belongs to one machine's interfaces, not to a network
        return str(ipaddress.ip_network(written))

    return Kind("a network such as 10.0.0.0/8 or fd00::/8", "CIDR", parse)


def host() -> Kind[str]:
    """The name of a host or domain, as it stands in URLs: in lower case, Punycode where it needs it, no dot at the end."""

    def parse(written: str) -> str:
        name = text().parse(written).encode("idna").decode().lower().removesuffix(".")
        _require(_HOST(name) is not None)
        return name

    return Kind("a name such as example.com", "DOMAIN", parse)


def path(accepts: str = "a path", metavar: str = "PATH") -> Kind[Path]:
    """A path, which need not exist."""

    def parse(written: str) -> Path:
        # A URL where a file is wanted is a slip that would otherwise show up as a missing file called "http:".
        _require("://" not in written)
        return Path(text().parse(written))

    return Kind(accepts, metavar, parse)


def server(*schemes: str, example: str, path: bool = False) -> Kind[str]:
    """The URL of a server; with `path`, one that names something there (a bucket)."""

    def parse(written: str) -> str:
        parts = urlsplit(text().parse(written))
        _require(parts.scheme in schemes)
        _require(bool(parts.hostname))
        _require(parts.port is None or parts.port > 0)
        _require(not path or len(parts.path) > 1)
        return written

    return Kind(f"a URL such as {example}", "URL", parse)


def endpoint(*schemes: str, example: str) -> Kind[str]:
    """The URL of a service, with nothing in it that is secret: it is kept with the crawl, and shown."""

    def parse(written: str) -> str:
        parts = urlsplit(text().parse(written))
        _require(parts.scheme in schemes and bool(parts.hostname))
        _require(parts.port is None or parts.port > 0)
        _require(written.isascii() and not {"@", "?", "#", " "} & set(written))
        return written

    return Kind(f"a URL such as {example}, without a password or a query", "URL", parse)


def token() -> Kind[str]:
    """A key as services hand it out: it can stand in an HTTP header."""

    def parse(written: str) -> str:
        _require(_TOKEN(written) is not None)
        return written

    return Kind("a key (letters, digits and . _ ~ + / = -)", "KEY", parse)


def optional(kind: Kind[T], none: str = "none") -> Kind[T | None]:
    """The same, or none: with a word for it, so that a flag can undo what a file says."""

    def parse(written: str) -> T | None:
        return None if written == none else kind.parse(written)

    def show(value: T | None) -> str:
        return none if value is None else kind.show(value)

    return Kind(f"{kind.accepts}, or {none}", kind.metavar, parse, show)


def masked(url: str) -> str:
    """A secret as it may be logged: of a server's URL no password, and nothing behind a `?`, where some drivers take one as well.

    Of what is no URL, nothing at all.
    """
    if "://" not in url:
        return "***"
    return _QUERY.sub("?***", _PASSWORD.sub(r"\1***@", url))


#: Up to the last @: an @, a / or a ? that somebody forgot to escape must not bring out half of a password.
#: A user name with no password behind it is hidden too, since it may be a token.
_PASSWORD: Final = re.compile(r"(?<=://)([^:@/?]*:)?.*@", re.DOTALL)
_QUERY: Final = re.compile(r"\?.*", re.DOTALL)

_TOKEN: Final = re.compile(r"[A-Za-z0-9._~+/=-]{1,200}").fullmatch
_HOST: Final = re.compile(r"[a-z0-9_-]{1,63}(?:\.[a-z0-9_-]{1,63})*").fullmatch
_COUNT: Final = re.compile(r"[0-9][0-9_]{0,30}").fullmatch
_NUMBER: Final = re.compile(r"(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?").fullmatch

_DURATION: Final = re.compile(
    r"(?P<number>(?:[0-9]{1,30}(?:\.[0-9]{0,30})?|\.[0-9]{1,30})(?:[eE][+-]?[0-9]{1,3})?) ?(?P<unit>[smh])?"
).fullmatch
_DURATION_UNITS: Final = {"s": 1, "m": 60, "h": 3600}

_SIZE: Final = re.compile(r"(?P<whole>[0-9]{1,30})(?:\.(?P<decimals>[0-9]{1,30}))? ?(?P<unit>(?:[kmg]i?)?b)?", re.I).fullmatch
_SIZE_UNITS: Final = {
    "gib": ("GiB", 2**30),
    "gb": ("GB", 10**9),
    "mib": ("MiB", 2**20),
    "mb": ("MB", 10**6),
    "kib": ("KiB", 2**10),
    "kb": ("KB", 10**3),
    "b": ("", 1),
}

_SWITCH: Final = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def _switched(written: str) -> bool:
    _require(written.lower() in _SWITCH)
    return _SWITCH[written.lower()]


def _show_size(value: int) -> str:
    """In the largest unit that it is a whole number of."""
    return next(f"{value // unit}{name}" for name, unit in _SIZE_UNITS.values() if (value and value % unit == 0) or unit == 1)


def _show_duration(value: float) -> str:
    for unit, seconds in (("h", 3600), ("m", 60)):
        if value and value % seconds == 0:
            return f"{value / seconds:.0f}{unit}"
    return f"{value:.0f}s" if value == int(value) else f"{value!r}s"


def _bounds(least: str, most: str | None = None) -> str:
    return f"from {least} to {most}" if most else f"from {least} up"


def _require(holds: bool) -> None:
    if not holds:
        raise ValueError


def _require_match(match: re.Match[str] | None) -> re.Match[str]:
    if match is None:
        raise ValueError
    return match
