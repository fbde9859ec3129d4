"""Breadth first: the fewer links from a seed, the better."""

from collections.abc import Sequence

from gossamer.messages import Url

DEPTH_STEP = 10  #: a band a click, with ten bands


class Breadth:
    def __call__(self, urls: Sequence[Url]) -> list[int]:
        return [min(url.depth * DEPTH_STEP, 100) for url in urls]
