"""Arrays that grow, since numpy's own have one size for life; and what is distinct in one."""

from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

D = TypeVar("D", bound=np.generic)


class Row(Generic[D]):
    """Numbers of one type, with room behind them: doubled when it is used up, so that appending is cheap on the whole."""

    def __init__(self, type: DTypeLike) -> None:
        self._room: NDArray[D] = np.empty(16, type)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    @property
    def all(self) -> NDArray[D]:
        """A view: what is written to it is written here. To be used at once, since appending may move it."""
        return self._room[: self._size]

    @property
    def size_bytes(self) -> int:
        return self._room.nbytes

    def append(self, more: NDArray[Any]) -> None:
        size = self._size + len(more)
        if size > len(self._room):
            room: NDArray[D] = np.empty(max(size, len(self._room) * 2), self._room.dtype)
            room[: self._size] = self.all
            self._room = room
        self._room[self._size : size] = more
        self._size = size

    def keep(self, kept: slice | NDArray[np.bool_]) -> None:
        """Only these, in order."""
        self._room = self.all[kept].copy()
        self._size = len(self._room)


def distinct(numbers: NDArray[D]) -> NDArray[D]:
    """In order, each once: `np.unique`, which hashes, takes four times as long, and imports masked arrays."""
    in_order = np.sort(numbers)
    return in_order[_is_first(in_order)]


def firsts(numbers: NDArray[D]) -> tuple[NDArray[D], NDArray[np.intp]]:
    """The same, and the place where each of them is first."""
    places = np.argsort(numbers, kind="stable")
    in_order = numbers[places]
    is_first = _is_first(in_order)
    return in_order[is_first], places[is_first]


def _is_first(in_order: NDArray[Any]) -> NDArray[np.bool_]:
    is_first = np.ones(len(in_order), np.bool_)
    is_first[1:] = in_order[1:] != in_order[:-1]
    return is_first
