"""The rank by host: what stands in for a URL that nothing links to yet, and what other tools ask for.

Links tell ids and no hosts; which host a URL is on is learnt from hints and, little by little, from the ledger's records.
"""

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from services.frontier.rank.nodes import UNKNOWN, Places
from services.frontier.rank.rows import Row

#: Hosts past these are not told apart: their URLs are ranked by page alone.
HOSTS_MAX: Final = 200_000


class Hosts:
    def __init__(self) -> None:
        self.of: Row[np.int32] = Row(np.int32)  #: each URL's host, by its place, as far as it is known
        self._numbers: dict[str, int] = {}
        self._sums: NDArray[np.float64] = np.empty(0)
        self._counts: NDArray[np.int64] = np.empty(0, np.int64)

    def learn(self, places: Places, names: Sequence[str]) -> None:
        for place, name in zip(places, names, strict=True):
            number = self._numbers.get(name)
            if number is None and len(self._numbers) < HOSTS_MAX:
                number = self._numbers[name] = len(self._numbers)
            if number is not None:
                self.of.all[place] = number

    @property
    def names(self) -> list[str]:
        """In the order of their numbers."""
        return list(self._numbers)

    def sum_up(self, worth: NDArray[np.float64]) -> None:
        """Of all URLs whose host is known."""
        known = self.of.all != UNKNOWN
        self._sums = np.bincount(self.of.all[known], worth[known]).astype(np.float64)  # of none it would be whole numbers
        self._counts = np.bincount(self.of.all[known])

    def mean(self, name: str) -> float | None:
        """What a URL of this host is worth; None if none is known."""
        number = self._numbers.get(name)
        if number is None or number >= len(self._counts) or not self._counts[number]:
            return None
        return float(self._sums[number] / self._counts[number])

    def best(self, most: int) -> dict[str, float]:
        """The hosts whose URLs are worth most together, with that sum, the best first."""
        names = self.names
        return {names[number]: float(self._sums[number]) for number in np.argsort(-self._sums, kind="stable")[:most]}
