"""A crawl's folder: where it lies, whose it is, and who is at work in it.

`./crawls/<id>/`, or the folder of `--state`. The engine keeps its own files there; ours are two. `crawl.json` says what was asked
for (id, engine and seeds) and makes the folder a crawl's; `lock` is held by the process that runs the crawl, with its number in
it, and is void the moment that process is dead, however it died.
Knows: folders and names. Must not know: how a crawl stands (its ledger does), or what its settings are.
"""

import fcntl
import json
import os
import re
import shutil
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, TextIO

import msgspec

from gossamer.errors import SettingsError
from gossamer.ids import CrawlId
from gossamer.settings import Engine
from services.controller.whole import write_whole

#: Under the directory that the command is called in.
CRAWLS: Final = Path("crawls")

_ABOUT: Final = "crawl.json"
_LOCK: Final = "lock"
_ID: Final = re.compile(r"[a-z0-9-]{1,100}").fullmatch
_HOST_CHARACTERS: Final = 40

#: `status` holds a lock for the blink that it needs to see whether one is held; a start that meets it tries again.
_TRIES: Final = 3
_PAUSE_S: Final = 0.05


class Place(msgspec.Struct, frozen=True):
    """A crawl, and where it is kept."""

    id: CrawlId
    folder: Path
    seeds: tuple[str, ...]  #: in the form that is requested
    engine: Engine = Engine.EMBEDDED  #: where its ledger is to be looked for


def new_id(now: float, host: str, token: str) -> CrawlId:
    """When, where from, and which: `20261118-142501-en-wikipedia-org-3f2a`. Sorts by time; letters, digits and hyphens alone."""
    when = datetime.fromtimestamp(now, UTC).strftime("%Y%m%d-%H%M%S")
    where = re.sub(r"[^a-z0-9]+", "-", host.lower())[:_HOST_CHARACTERS].strip("-") or "seed"
    id = f"{when}-{where}-{token}"
    assert _ID(id)
    return CrawlId(id)


def named_id(name: str) -> CrawlId:
    """The id that somebody else chose. Raises `SettingsError` for what can't be one: it names folders, queues and keys."""
    if not _ID(name):
        raise SettingsError(f"CRAWL is {name[:60]!r}; it takes up to 100 small letters, digits and hyphens")
    return CrawlId(name)


@contextmanager
def begin(id: CrawlId, state: Path | None, seeds: Sequence[str], engine: Engine = Engine.EMBEDDED) -> Iterator[Place]:
    """Makes the folder of a new crawl, and holds its lock. Raises `SettingsError` if there is something in it already."""
    place = Place(id, state or CRAWLS / id, tuple(seeds), engine)
    with _refused_if_it_fails(place.folder):
        place.folder.mkdir(parents=True, exist_ok=True)
    with hold(place.folder):
        with _refused_if_it_fails(place.folder):
            _refuse_used(place.folder)
            write_whole(place.folder / _ABOUT, json.dumps({"id": id, "engine": engine, "seeds": seeds}, indent=1) + "\n")
        yield place


@contextmanager
def hold(folder: Path) -> Iterator[None]:
    """Holds the folder's lock, this process's number in it. Raises `SettingsError` if another process is at work there."""
    with _refused_if_it_fails(folder):
        file = (folder / _LOCK).open("a")
    with file:
        for _ in range(_TRIES):
            if _take(file, fcntl.LOCK_EX):
                break
            time.sleep(_PAUSE_S)
        else:
            raise SettingsError(f"the crawl in {folder} runs already, in process {_number_in(folder) or 'unknown'}")
        with _refused_if_it_fails(folder):
            file.truncate(0)
            os.write(file.fileno(), f"{os.getpid()}\n".encode())  # a buffer would fail again when it is closed
        yield


def runner(folder: Path) -> int | None:
    """The process that is at work in the folder; None if nobody is. 0: somebody, who has not written a number yet."""
    try:
        with (folder / _LOCK).open("r") as file:
            return None if _take(file, fcntl.LOCK_SH) else _number_in(folder)
    except FileNotFoundError:
        return None


def find(crawl: str | None, state: Path | None) -> Place:
    """The crawl of this id, in this folder, or else the one that was started or resumed last. Raises `SettingsError`."""
    if state is not None:
        return _read(state)
    known = all_here()
    if crawl is not None:
        if not _ID(crawl) or not (CRAWLS / crawl / _ABOUT).is_file():
            there = f"; the latest is {known[-1].id}" if known else ""
            raise SettingsError(f"there is no crawl {crawl[:100]!r} in {CRAWLS.resolve()}{there}")
        return _read(CRAWLS / crawl)
    if not known:
        raise SettingsError(f"there is no crawl in {CRAWLS.resolve()}; start one with --seed URL")
    return known[-1]


def all_here() -> list[Place]:
    """All crawls under this directory, in the order in which they were last started or resumed."""
    found = []
    for about in CRAWLS.glob(f"*/{_ABOUT}"):
        with suppress(FileNotFoundError, SettingsError):  # swept at this very moment, or no crawl of ours
            found.append(((about.parent / _LOCK).stat().st_mtime_ns, about.parent.name, _read(about.parent)))
    return [place for *_, place in sorted(found, key=lambda each: each[:2])]


def untouched_s(place: Place, now: float) -> float:
    """How long ago the crawl was last started or resumed here."""
    return now - (place.folder / _LOCK).stat().st_mtime


def remove(place: Place) -> None:
    """Deletes the folder with all that is in it. For whoever holds its lock."""
    shutil.rmtree(place.folder, ignore_errors=True)


def _read(folder: Path) -> Place:
    try:
        about = json.loads((folder / _ABOUT).read_text(encoding="utf-8"))
        id, seeds, engine = about["id"], tuple(about["seeds"]), Engine(about["engine"])
        if _ID(id) and all(isinstance(seed, str) for seed in seeds):
            return Place(CrawlId(id), folder, seeds, engine)
    except OSError:
        raise SettingsError(f"there is no crawl in {folder}") from None
    except (ValueError, KeyError, TypeError):
        pass
    raise SettingsError(f"{folder / _ABOUT} is not one of ours")


def _refuse_used(folder: Path) -> None:
    there = {path.name for path in folder.iterdir()} - {_LOCK}
    if _ABOUT in there:
        raise SettingsError(f"{folder} holds a crawl already; resume it, or choose another folder")
    # A crawl is removed with its folder when its time is over: what is somebody else's must not lie there.
    if there:
        raise SettingsError(f"{folder} is not empty, and what is in it is no crawl; choose another folder")


@contextmanager
def _refused_if_it_fails(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise SettingsError(f"{folder} can't be used: {error.strerror}") from error


def _take(file: TextIO, how: int) -> bool:
    try:
        fcntl.flock(file, how | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _number_in(folder: Path) -> int:
    text = (folder / _LOCK).read_text()
    return int(text) if text.strip().isdecimal() else 0
