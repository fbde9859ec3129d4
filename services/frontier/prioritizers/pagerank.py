"""By the links seen so far: the live rank, which the owner's loop keeps fresh (services/frontier/rank/)."""

from collections.abc import Sequence

from gossamer.messages import Url
from services.frontier.rank.ranks import Ranks


class Pagerank:
    def __init__(self) -> None:
        self.ranks = Ranks()  #: the owner's loop puts another one here when it is the owner no more

    def __call__(self, urls: Sequence[Url]) -> list[int]:
        return self.ranks.rank(urls)
