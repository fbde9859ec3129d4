"""Arrays that grow. Numpy's own have one size for life."""

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
