"""How often Python looks for garbage that holds on to itself.

By its own measure it would do so for each page or two, and walk over all that was ever imported every few seconds, to find next to
nothing: a twentieth of all CPU time, and a seventh of a process's start.
"""

import gc
from typing import Final

#: Of objects that came and did not go: those of some dozens of pages.
YOUNG: Final = 10_000
#: What is imported stays: of this many a start has no more than once or twice.
YOUNG_AT_START: Final = 100_000


def look_less_often() -> None:
    """To be said before much is imported."""
    gc.set_threshold(YOUNG_AT_START, 20, 20)


def keep_all(*, but_for_garbage: bool = False) -> None:
    """What there is by now stays, and is not looked at any more. `but_for_garbage`: there may be some, of an earlier crawl."""
    if but_for_garbage:
        gc.unfreeze()
        gc.collect()
    gc.freeze()
    gc.set_threshold(YOUNG, 20, 20)
