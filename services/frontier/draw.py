"""The draw: which band is read next. Better bands more often, and the worst one still.

A number 0 … 100 is drawn, and the band of that priority read: by the law `square` as 100 · u² with u even in 0 … 1, so with ten
bands the best is read in 32 % of the draws and the worst in 5 %; by `even` as 100 · u; by `strict` always as 0. Whichever band has
not been drawn for `PATIENCE` draws is drawn next, whatever the number: so each is read once in 1,000 draws, by construction.
Time and randomness are handed in: with the same seed and the same inputs the order is the same.
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Final

from gossamer.settings import Law
from services.frontier.bands import PRIORITY_MAX, BandTable

#: As many bands as there may be, 100, fit between it and a thousand, should all of them be overdue at once.
PATIENCE: Final = 900

#: How far down a number that is even in 0 … 1 leads.
LAWS: Final[Mapping[Law, Callable[[float], float]]] = {
    Law.SQUARE: lambda even: even**2,
    Law.EVEN: lambda even: even,
    Law.STRICT: lambda even: 0.0,
}


class Draw:
    def __init__(self, table: BandTable, rng: random.Random, law: Law = Law.SQUARE) -> None:
        self._table, self._rng, self._law = table, rng, LAWS[law]
        self._waited = [0] * table.bands

    def band(self, ready: Sequence[bool]) -> int | None:
        """The band to read, of those that have something; None if none has. An empty band passes the draw on."""
        if not any(ready):
            return None
        overdue = max(range(len(ready)), key=lambda band: self._waited[band] if ready[band] else -1)
        drawn = (
            overdue if self._waited[overdue] >= PATIENCE else self._table.band(int(PRIORITY_MAX * self._law(self._rng.random())))
        )
        chosen = nearest(drawn, ready)
        for band in range(len(ready)):
            self._waited[band] = 0 if band == chosen else self._waited[band] + ready[band]
        return chosen


def nearest(drawn: int, ready: Sequence[bool]) -> int:
    """The drawn band if it has something, else the next better one that has, else the next worse one."""
    better = [band for band in range(drawn, -1, -1) if ready[band]]
    worse = [band for band in range(drawn, len(ready)) if ready[band]]
    return (better or worse)[0]
