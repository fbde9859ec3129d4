"""All alike: what is fetched first is up to chance and politeness."""

from collections.abc import Sequence

from gossamer.messages import Url


def constant(urls: Sequence[Url]) -> list[int]:
    return [50] * len(urls)
