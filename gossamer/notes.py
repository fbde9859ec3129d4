"""What roles tell whoever watches the crawl, across processes: notes in the ledger, one of each worker's seat and each frontier."""

from collections.abc import Iterable

import msgspec

from gossamer.errors import MessageError
from gossamer.records import Seat

#: Of the domains that were asked in the closest succession: there it shows first whether the delay was kept.
GAPS_KEPT = 20


class ModuleNote(msgspec.Struct, frozen=True):
    """What is held against a module."""

    failures: int
    last: str  #: the newest, in words; may hold text from the web
    switched_off: bool


class WorkerNote(msgspec.Struct, frozen=True, kw_only=True):
    least_gap_s: dict[str, float] = {}  #: by domain: the least time between the starts of two requests
    modules: dict[str, ModuleNote] = {}  #: those that are in trouble
    paused: tuple[str, ...] = ()  #: what is waited for in its process


class RankApiNote(msgspec.Struct, frozen=True, kw_only=True):
    """How the rank API stands with a frontier."""

    asked: int  #: requests so far
    ranked: int  #: domains that have a rank from outside
    away_since: float | None = None  #: when it failed, if it has not answered since
    last: str = ""  #: why, in our own words


class FrontierNote(msgspec.Struct, frozen=True, kw_only=True):
    prioritizer: ModuleNote | None = None  #: if it is in trouble
    rank_api: RankApiNote | None = None  #: if one is asked
    noted_at: float = 0.0


NOTHING_TO_SAY = FrontierNote()


_decoder = msgspec.json.Decoder(WorkerNote)
_frontier_decoder = msgspec.json.Decoder(FrontierNote)


def note_name(seat: Seat) -> str:
    return f"worker {seat.worker} {seat.epoch}"


def frontier_note_name(frontier: str) -> str:
    return f"{_FRONTIER}{frontier}"


def is_frontiers(name: str) -> bool:
    """Whether the note of this name is a frontier's."""
    return name.startswith(_FRONTIER)


_FRONTIER = "frontier "


def encode_frontier_note(note: FrontierNote) -> str:
    return msgspec.json.encode(note).decode()


def decode_frontier_note(text: str) -> FrontierNote:
    """Raises `MessageError`."""
    try:
        return _frontier_decoder.decode(text)
    except msgspec.DecodeError as error:
        raise MessageError(f"no note: {error}") from error


def together(notes: Iterable[FrontierNote]) -> FrontierNote:
    """What all frontiers of a crawl say, also those that are gone: sums, and how it stands as the latest tells."""
    latest_last = sorted(notes, key=lambda note: note.noted_at)
    prioritizers = [note.prioritizer for note in latest_last if note.prioritizer is not None]
    apis = [note.rank_api for note in latest_last if note.rank_api is not None]
    return FrontierNote(
        prioritizer=msgspec.structs.replace(
            prioritizers[-1],
            failures=sum(each.failures for each in prioritizers),
            switched_off=any(each.switched_off for each in prioritizers),
        )
        if prioritizers
        else None,
        rank_api=msgspec.structs.replace(apis[-1], asked=sum(each.asked for each in apis)) if apis else None,
        noted_at=latest_last[-1].noted_at if latest_last else 0.0,
    )


def encode_note(note: WorkerNote) -> str:
    closest = sorted(note.least_gap_s.items(), key=lambda each: (each[1], each[0]))[:GAPS_KEPT]
    return msgspec.json.encode(msgspec.structs.replace(note, least_gap_s=dict(closest))).decode()


def decode_note(text: str) -> WorkerNote:
    """Raises `MessageError`."""
    try:
        return _decoder.decode(text)
    except msgspec.DecodeError as error:
        raise MessageError(f"no note: {error}") from error
