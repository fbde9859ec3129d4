"""Mixing: a priority of the crawl's own, and one from outside.

The law, in one sentence: the priority is the mean of the two, and a domain that nobody outside knows, or not yet, has the crawl's
own alone.
"""

from collections.abc import Callable, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from gossamer.messages import Url

#: By domain, what somebody outside says of it; None: nothing. Quick.
Outside = Callable[[str], int | None]


def mixed(own: int, outside: int | None) -> int:
    return own if outside is None else (own + outside + 1) // 2


def mix(urls: Sequence[Url], own: Sequence[int], outside: Outside) -> list[int]:
    """The priorities of these URLs, with what is known from outside."""
    return [mixed(priority, outside(url.domain)) for url, priority in zip(urls, own, strict=True)]


def mix_hosts(own: NDArray[np.uint8], host_of: NDArray[np.int32], hosts: Sequence[str], outside: Outside) -> NDArray[np.uint8]:
    """The same for many at once: `host_of` each, its place among the hosts; below 0, nobody knows it."""
    of_hosts = np.array([_NONE if (found := outside(host)) is None else found for host in hosts] + [_NONE], np.int16)
    theirs = of_hosts[np.where(host_of < 0, len(hosts), host_of)]
    return np.where(theirs == _NONE, own, (own.astype(np.int16) + theirs + 1) // 2).astype(np.uint8)


_NONE: Final = -1
