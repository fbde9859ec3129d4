"""Registered domains: which part of a host's name somebody bought, by the Public Suffix List, which lies inside its package."""

from functools import cache, lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from publicsuffixlist import PublicSuffixList


@lru_cache(maxsize=4096)
def registrable(host: str) -> str:
    """The registered domain of a host, by the Public Suffix List; an address, and a name that has none, is its own."""
    if host[:1] == "[" or host.rpartition(".")[2].isdigit():
        return host
    return _suffixes().privatesuffix(host) or host


@cache
def _suffixes() -> "PublicSuffixList":
    from publicsuffixlist import PublicSuffixList  # a tenth of a second, which most crawls don't need

    return PublicSuffixList()
