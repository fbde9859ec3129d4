"""How segments are named, the same in every store: `<crawl>/segments/<name>.warc.gz`.

A name is made here and never from anything that came from the web: the microsecond it was made in, so that names sort by age,
and eight hex digits that tell apart two of the same one.
Must not know: where segments lie.
"""

import re
import secrets
from collections.abc import Awaitable, Callable, Iterable
from typing import Final

from gossamer.clock import Clock

SUFFIX: Final = ".warc.gz"
NAME: Final = re.compile(r"[0-9]{16}-[0-9a-f]{8}")

_CRAWL: Final = re.compile(r"[A-Za-z0-9-]+")


def is_crawl(text: str) -> bool:
    return _CRAWL.fullmatch(text) is not None


def is_segment(text: str) -> bool:
    """Whether this is a segment's name. A path out of the store is none."""
    return NAME.fullmatch(text) is not None


def segments_of(files: Iterable[str]) -> list[str]:
    """The names of the segments among these files, oldest first."""
    names = (file.removesuffix(SUFFIX) for file in files if file.endswith(SUFFIX))
    return sorted(filter(is_segment, names))


class Names:
    """New names, each later than all before it, also if the machine's clock was set back, and nobody else's."""

    def __init__(self, clock: Clock, segments: Callable[[], Awaitable[list[str]]]) -> None:
        self._clock = clock
        self._segments = segments
        self._newest_us: int | None = None  # None: what an earlier process left has not been looked at yet

    async def next(self) -> str:
        if self._newest_us is None:
            found = await self._segments()
            found_us = int(found[-1].partition("-")[0]) if found else 0
            self._newest_us = max(found_us, self._newest_us or 0)  # another call may have been quicker
        self._newest_us = max(round(self._clock.now() * 1_000_000), self._newest_us + 1)
        return f"{self._newest_us:016d}-{secrets.token_hex(4)}"
