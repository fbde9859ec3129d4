"""Which pages share a band, written behind: the newest entries wait on the desk until they are worth a walk over the index.

The whole of a page is a band as well, the widest: of those that share it one is enough. Bands are hashes, so each lies on another
leaf of the index, and nine leaves a page would be half of all that the ledger writes. Thousands of entries at once touch each leaf
once. Nothing can be lost: a page's bands stand in its content entry as well, and up to which of these the index goes is noted. Most
bands are new, and a sieve in memory says so of nearly all of them: so the index is hardly ever asked in vain, but for a crawl that
was resumed, of whose bands no sieve was kept.

Knows: the tables `band` and `filed`, and those columns of `content`. Must not know: what makes pages alike.
"""

import sqlite3
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Final

import msgspec

#: Pages, of some 2 KB each.
UNFILED_MAX: Final = 4096
#: Looked at in each band, the newest first, of those in the index and of those that are not in it yet: a band that a whole site
#: shares must not cost a walk over the site.
LOOKED_AT: Final = 64

_SHARING: Final = """
SELECT (SELECT group_concat(n) FROM (SELECT n FROM band WHERE key = each.value ORDER BY n DESC LIMIT ?)) FROM json_each(?) AS each
"""
#: In one statement, and in order: in Python it would take ten times as long.
_FILE: Final = """
INSERT INTO band SELECT each.value, n FROM content, json_each(content.bands) AS each WHERE place > ? ORDER BY 1, 2
"""
#: SQLite gives the last place again once it is free, to an entry that is not in the index.
_FREE: Final = "UPDATE filed SET place = min(place, (SELECT coalesce(max(place), 0) FROM content))"
_UNFILED: Final = "SELECT n, bands FROM content WHERE place > ? ORDER BY place"

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[bytes]).decode


class Sieve:
    """Keys that were let in, as one bit each: it never takes one of them for new, and hardly ever a new one for one of them.

    Two megabytes: of a million pages nearly half of the new keys meet somebody's bit, and are looked up for nothing.
    """

    def __init__(self) -> None:
        self._bits = bytearray(1 << _SIEVE_BITS - 3)

    def let_in(self, keys: Iterable[bytes]) -> None:
        bits = self._bits
        for key in keys:
            at = _place(key)
            bits[at >> 3] |= 1 << (at & 7)

    def maybe(self, keys: Iterable[bytes]) -> list[bytes]:
        """Those that may have been let in."""
        bits = self._bits
        return [key for key in keys if bits[(at := _place(key)) >> 3] >> (at & 7) & 1]


_SIEVE_BITS: Final = 24


def _place(key: bytes) -> int:
    return int.from_bytes(key[-_SIEVE_BITS // 8 :], "big")


class Bands:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._sql = connection
        self._place: int | None = None  # of the last content entry whose bands are in the index; None, here and below: to be read
        self._unfiled: dict[bytes, list[int]] | None = None  # by band, the newest last
        self._pages = 0  # that are in there
        # Of all that was ever filed; None: of a file that was there before nobody knows.
        self._filed = Sieve() if connection.execute("SELECT 1 FROM band").fetchone() is None else None

    def tidy(self) -> None:
        """Everything is to be read from the file again. Not what was filed: more in the sieve than in the file does no harm.

        Nor is there ever less: only the process that crawls files, and a file has one of these.
        """
        self._place, self._unfiled, self._pages = None, None, 0

    def enter(self, n: int, keys: Iterable[bytes]) -> str:
        """Of a page that has none. As it is to stand in its content entry."""
        unfiled = self._all_unfiled()
        distinct = list(dict.fromkeys(keys))
        self._pages += 1
        for key in distinct:
            unfiled.setdefault(key, []).append(n)
        return _encode(distinct).decode()

    def withdraw(self, n: int, place: int, entered: str) -> None:
        """What `enter` gave for it, of a page whose content entry was at this place, and is gone already."""
        if place <= self._filed_to():
            self._sql.execute("DELETE FROM band WHERE n = ? AND key IN (SELECT value FROM json_each(?))", (n, entered))
        elif self._unfiled is not None:  # else it will be read without this one
            self._pages -= 1
            for key in _decode(entered):
                self._unfiled[key].remove(n)
        self._sql.execute(_FREE)  # also of one that was not filed: the last that was may have gone before it
        self._place = None

    def sharing(self, keys: Sequence[bytes], most: int) -> list[int]:
        """Pages that share the most bands with these keys; of those that share as many, the newest first."""
        unfiled = self._all_unfiled()
        shared = [n for key in keys if key in unfiled for n in unfiled[key][-LOOKED_AT:]]
        if filed := keys if self._filed is None else self._filed.maybe(keys):
            for (found,) in self._sql.execute(_SHARING, (LOOKED_AT, _encode(filed).decode())):
                if found is not None:
                    shared += map(int, found.split(","))
        if len(shared) < 2:
            return shared
        times = Counter(shared)
        return sorted(times, key=lambda n: (times[n], n), reverse=True)[:most]

    def file(self) -> None:
        """Puts them into the index, once they are enough."""
        if self._pages >= UNFILED_MAX:
            if self._filed is not None:
                self._filed.let_in(self._all_unfiled())
            self._sql.execute(_FILE, (self._filed_to(),))
            self._sql.execute("INSERT OR REPLACE INTO filed SELECT 1, coalesce(max(place), 0) FROM content")
            self._place, self._unfiled, self._pages = None, {}, 0

    def _filed_to(self) -> int:
        if self._place is None:
            (self._place,) = self._sql.execute("SELECT coalesce(max(place), 0) FROM filed").fetchone()
        return self._place

    def _all_unfiled(self) -> dict[bytes, list[int]]:
        if self._unfiled is None:
            self._unfiled, self._pages = {}, 0
            for n, entered in self._sql.execute(_UNFILED, (self._filed_to(),)):
                self._pages += 1
                for key in _decode(entered):
                    self._unfiled.setdefault(key, []).append(n)
        return self._unfiled
