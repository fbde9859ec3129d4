"""Worth → priority: by quantiles of what waits, so that all bands are used however unevenly worth is spread.

Worth lies in few URLs, so the best are told apart more finely: priority p has the URLs between (p / 100)³ and ((p + 1) / 100)³ of
all, the best first. With ten bands the first has the best thousandth, the sixth a tenth, and the last a quarter.
"""

from typing import Final

import numpy as np
from numpy.typing import NDArray

from services.frontier.rank.rows import distinct

Numbers = NDArray[np.float64]

#: A cut for each: a priority is how many of them lie above.
CUTS: Final = 100
POWER: Final = 3


def cuts(worth: Numbers) -> Numbers:
    """The least worth of those that get 0, of those that get 1 or less, and so on to the least of all. Falling."""
    assert len(worth)
    lasts = np.maximum((np.arange(1, CUTS + 1) / CUTS) ** POWER * len(worth), 1).astype(np.int64) - 1
    places = len(worth) - 1 - lasts
    return np.partition(worth, distinct(places))[places]


def priorities(worth: Numbers, cuts: Numbers) -> NDArray[np.uint8]:
    """0 (best) … 99 for what the cuts were made of, and 100 for what is worth less than all of it."""
    return np.searchsorted(-cuts, -worth).astype(np.uint8)
