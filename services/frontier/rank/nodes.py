"""Which URL is which number: the ids of all URLs that the rank knows, in the order in which it met them.

A dictionary would take a hundred bytes a URL; two sorted arrays take twelve, and a batch is looked up at once.
Ids are told apart by their first eight bytes: what a hostile site could make collide with them is its own URLs, at great expense.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from gossamer.ids import URL_ID_BYTES, UrlId
from services.frontier.rank.rows import Row, firsts

#: A whole id, and its beginning as a number.
ID: Final = np.dtype((np.void, URL_ID_BYTES))
Places = NDArray[np.int32]

#: The place of a URL that is not known.
UNKNOWN: Final = -1


class Nodes:
    """Ids ↔ places 0, 1, 2 …"""

    def __init__(self) -> None:
        self._ids: Row[np.void] = Row(ID)
        self._keys: NDArray[np.uint64] = np.empty(0, np.uint64)  # sorted
        self._places: Places = np.empty(0, np.int32)  # of those keys

    def __len__(self) -> int:
        return len(self._ids)

    @property
    def size_bytes(self) -> int:
        return self._ids.size_bytes + self._keys.nbytes + self._places.nbytes

    def find(self, ids: NDArray[np.void]) -> Places:
        """The place of each, or `UNKNOWN`."""
        return self._find(_keys(ids))

    def enter(self, ids: NDArray[np.void]) -> Places:
        """The place of each; those that are unknown get one, in order."""
        keys = _keys(ids)
        places = self._find(keys)
        if (places == UNKNOWN).any():
            unknown = np.flatnonzero(places == UNKNOWN)
            new_keys, first = firsts(keys[unknown])
            new_places = len(self) + np.argsort(np.argsort(first)).astype(np.int32)  # in the order in which they came
            self._ids.append(ids[unknown[np.sort(first)]])
            at = np.searchsorted(self._keys, new_keys)
            self._keys = np.insert(self._keys, at, new_keys)
            self._places = np.insert(self._places, at, new_places)
            places = self._find(keys)
        return places

    def ids(self, places: NDArray[np.integer]) -> list[UrlId]:
        return [UrlId(bytes(id)) for id in self._ids.all[places]]

    def keep(self, kept: NDArray[np.bool_]) -> None:
        """Forgets all others; those that stay close ranks, in order."""
        self._ids.keep(kept)
        keys = _keys(self._ids.all)
        self._places = np.argsort(keys, kind="stable").astype(np.int32)
        self._keys = keys[self._places]

    def _find(self, keys: NDArray[np.uint64]) -> Places:
        if not len(self._keys):
            return np.full(len(keys), UNKNOWN, np.int32)
        at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        return np.where(self._keys[at] == keys, self._places[at], np.int32(UNKNOWN))


def as_ids(packed: bytes) -> NDArray[np.void]:
    """Ids that lie one behind another."""
    return np.frombuffer(packed, ID)


def _keys(ids: NDArray[np.void]) -> NDArray[np.uint64]:
    return np.ascontiguousarray(ids).view(np.uint64)[::2]
