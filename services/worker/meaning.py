"""What an answer means: a page, a redirect, an end, or "not now". Pure, by its status and two headers."""

import re
from typing import Final

import msgspec

from gossamer.outcomes import Outcome
from services.worker.types import Headers


class IsPage(msgspec.Struct, frozen=True):
    """A success with a body to read."""


class IsRedirect(msgspec.Struct, frozen=True):
    location: str


class IsEnd(msgspec.Struct, frozen=True):
    """Final: asking again would give the same."""

    outcome: Outcome
    reason: str


class IsNotNow(msgspec.Struct, frozen=True):
    """The server is unwell or has had enough of us: worth one retry, or a pause that it names."""

    reason: str
    retry_after: str | None


Meaning = IsPage | IsRedirect | IsEnd | IsNotNow

REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
UNWELL: Final = frozenset({429, 500, 502, 503, 504})
_PAGE: Final = IsPage()


def meaning(status: int, headers: Headers) -> Meaning:
    if status in REDIRECTS:
        return _redirect(status, headers)
    if status in UNWELL:
        return IsNotNow(f"status {status}", header(headers, "retry-after"))
    if status in (204, 205):
        return IsEnd(Outcome.NO_CONTENT, f"status {status}")
    if status == 206:
        return IsEnd(Outcome.MALFORMED, "a part of a page, which nobody asked for")
    if 200 <= status <= 299:
        return _PAGE
    if status in (404, 410):
        return IsEnd(Outcome.GONE, f"status {status}")
    return IsEnd(Outcome.HTTP_ERROR, f"status {status}")


def header(headers: Headers, name: str) -> str | None:
    """The first header of that name; `name` in lower case."""
    for each, value in headers:
        if each.lower() == name:
            return value
    return None


def _redirect(status: int, headers: Headers) -> Meaning:
    # Bytes that are no ASCII are the server's own spelling of an escape, in whatever charset its paths are.
    targets = {_RAW(_escaped, value.strip()) for name, value in headers if name.lower() == "location"}
    if len(targets) != 1 or targets == {""}:
        return IsEnd(Outcome.HTTP_ERROR, f"status {status} with {'no' if len(targets - {''}) == 0 else 'more than one'} target")
    return IsRedirect(targets.pop())


def _escaped(raw: re.Match[str]) -> str:
    return f"%{ord(raw[0]):02X}"


_RAW: Final = re.compile(r"[\x80-\xff]").sub
