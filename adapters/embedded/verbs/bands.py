"""Which pages share a band, written behind: the newest entries wait on the desk until they are worth a walk over the index.

A page's bands are hashes, so each lies on another leaf of the index, and eight leaves a page would be half of all that the ledger
writes. Thousands of entries at once touch each leaf once. Nothing can be lost: a page's bands stand in its content entry as well,
and which of these are not in the index yet is noted with them.

Knows: the tables `band` and `unfiled`. Must not know: what makes pages alike.
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
INSERT INTO band SELECT each.value, n FROM unfiled JOIN content USING (n), json_each(content.bands) AS each ORDER BY 1, 2
"""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(list[bytes]).decode


class Bands:
    def __init__(self, connection: sqlite3.Connection) -> None:
        self._sql = connection
        self._unfiled: dict[bytes, list[int]] | None = None  # by band, the newest last; None: to be read
        self._pages = 0

    def tidy(self) -> None:
        """Everything is to be read from the file again."""
        self._unfiled, self._pages = None, 0

    def enter(self, n: int, keys: Iterable[bytes]) -> str:
        """Of a page that has none. As it is to stand in its content entry."""
        unfiled = self._all_unfiled()
        distinct = list(dict.fromkeys(keys))
        if distinct:
            self._sql.execute("INSERT INTO unfiled VALUES (?)", (n,))
            self._pages += 1
        for key in distinct:
            unfiled.setdefault(key, []).append(n)
        return _encode(distinct).decode()

    def withdraw(self, n: int, entered: str) -> None:
        """What `enter` gave for it, of a page whose content entry is gone already."""
        if not self._sql.execute("DELETE FROM unfiled WHERE n = ?", (n,)).rowcount:
            self._sql.execute("DELETE FROM band WHERE n = ? AND key IN (SELECT value FROM json_each(?))", (n, entered))
        elif self._unfiled is not None:  # else it will be read without this one
            self._pages -= 1
            for key in _decode(entered):
                self._unfiled[key].remove(n)

    def sharing(self, keys: Sequence[bytes], most: int) -> list[int]:
        """Pages that share the most bands with these keys; of those that share as many, the newest first."""
        unfiled = self._all_unfiled()
        shared = [n for key in keys if key in unfiled for n in unfiled[key][-LOOKED_AT:]]
        for (filed,) in self._sql.execute(_SHARING, (LOOKED_AT, _encode(keys).decode())):
            if filed is not None:
                shared += map(int, filed.split(","))
        if len(shared) < 2:
            return shared
        times = Counter(shared)
        return sorted(times, key=lambda n: (times[n], n), reverse=True)[:most]

    def file(self) -> None:
        """Puts them into the index, once they are enough."""
        if self._pages >= UNFILED_MAX:
            self._sql.execute(_FILE)
            self._sql.execute("DELETE FROM unfiled")
            self._unfiled, self._pages = {}, 0

    def _all_unfiled(self) -> dict[bytes, list[int]]:
        if self._unfiled is None:
            self._unfiled, self._pages = {}, 0
            for n, entered in self._sql.execute("SELECT n, bands FROM unfiled JOIN content USING (n) ORDER BY n"):
                self._pages += 1
                for key in _decode(entered):
                    self._unfiled.setdefault(key, []).append(n)
        return self._unfiled
