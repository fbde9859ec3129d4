"""Many records out of few segments: each segment is fetched once, and cut into the records that are wanted.

One request a page would be most of what copying a crawl costs, and neighbours lie in the same segment.
Must not know: where segments lie.
"""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

from adapters import warc
from gossamer.errors import BlobsUnavailable
from gossamer.ports.blobs import BlobRef, Copy


async def by_segment(
    refs: Sequence[BlobRef], copy: Callable[[str, Sequence[BlobRef]], Awaitable[Sequence[Copy | None]]]
) -> list[Copy | None]:
    """Asks `copy` about each segment once, with those of the references that lie in it; the answers in the references' order."""
    places: dict[str, list[int]] = {}
    for place, ref in enumerate(refs):
        places.setdefault(ref.segment, []).append(place)
    found: list[Copy | None] = [None] * len(refs)

    async def fetch(segment: str, at: Sequence[int]) -> None:
        for place, one in zip(at, await copy(segment, [refs[place] for place in at]), strict=True):
            found[place] = one

    try:
        async with asyncio.TaskGroup() as tasks:
            for segment, at in places.items():
                tasks.create_task(fetch(segment, at))
    except ExceptionGroup as failed:  # one reason is enough, and what a port raises is no group
        raise failed.exceptions[0] from failed
    return found


def cut(data: bytes | None, refs: Sequence[BlobRef]) -> list[Copy | None]:
    """The records of one segment, whose bytes these are; None: it is gone."""
    return [None if data is None else _copy(data[ref.offset : ref.offset + ref.length], ref.sha256) for ref in refs]


def _copy(member: bytes, sha256: bytes) -> Copy | None:
    try:
        return Copy(warc.read(member, sha256), member)
    except BlobsUnavailable:
        return None
