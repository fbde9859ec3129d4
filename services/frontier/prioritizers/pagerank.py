"""By the links seen so far: the live rank, which the owner's loop keeps fresh (services/frontier/rank/)."""

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from gossamer.messages import Url

if TYPE_CHECKING:
    from services.frontier.rank.ranks import Ranks


class Pagerank:
    @cached_property
    def ranks(self) -> "Ranks":
        """The owner's loop puts another one here when it is the owner no more."""
        from services.frontier.rank.ranks import Ranks  # whoever only looks whether there is such a prioritizer needs no numpy

        return Ranks()

    def __call__(self, urls: Sequence[Url]) -> list[int]:
        return self.ranks.rank(urls)
