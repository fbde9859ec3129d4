"""The door for prioritizers: what somebody writes who knows better which URLs should be fetched first.

docs/prioritizers.md shows how to write one. Must not know: anything of the crawler.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from gossamer.messages import Url  # not at run time: it takes more than the standard library


class Prioritizer(Protocol):
    """Gives each URL of a batch its priority.

    Options are the keyword parameters of `__init__`, given as `--prioritizer name:key=value` and converted by their annotations
    (str, int, float, bool, Path, list[str], or one of these or None). What has to be read, a file for one, is read there.

    Each frontier has an instance of its own, and a URL may come again, to any of them. Whatever a prioritizer raises, or gives
    that is no priority, costs no URL: the batch is taken as if nobody had ranked it. One that goes on so is switched off, loudly.
    """

    @abstractmethod
    def __call__(self, urls: Sequence["Url"], /) -> Sequence[int]:
        """A whole number from 0 (best) to 100 (worst) for each URL, in order.

        Quick, and without I/O: nothing else of the frontier goes on meanwhile. Some hundreds of URLs come at once.
        """
        ...
