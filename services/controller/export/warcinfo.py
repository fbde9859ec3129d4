"""The first record of an archive: who made it, of which crawl, and under which rules the pages in it were chosen.

Archives are handed on, so nothing is in it that only this machine's operator should know: no folder, no server, no module.
"""

import uuid
import zlib
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import Final

from gossamer import __version__
from gossamer.ids import CrawlId
from gossamer.settings import Settings, shown
from services.controller.wording import safe

#: The settings that decide which pages there are, how much of each, and whom the sites saw.
TOLD: Final = (
    "scope", "include", "exclude", "nofollow", "max_depth", "max_pages", "max_bytes", "max_page_bytes", "similarity",
    "delay", "user_agent", "contact",
)  # fmt: skip
SEEDS_TOLD: Final = 10
VALUE_CHARACTERS: Final = 1_000

_GZIP: Final = 31  # wbits: a gzip header and trailer, and the largest window


def warcinfo(crawl: CrawlId, seeds: Sequence[str], settings: Settings, *, filename: str, now: float) -> bytes:
    """The record, as a gzip member of its own."""
    block = "".join(f"{name}: {safe(value, VALUE_CHARACTERS)}\r\n" for name, value in _fields(crawl, seeds, settings)).encode()
    head = (
        "WARC/1.1\r\n"
        "WARC-Type: warcinfo\r\n"
        f"WARC-Record-ID: <urn:uuid:{uuid.uuid4()}>\r\n"
        f"WARC-Date: {datetime.fromtimestamp(now, UTC):%Y-%m-%dT%H:%M:%SZ}\r\n"
        f"WARC-Filename: {safe(filename, 255)}\r\n"
        "Content-Type: application/warc-fields\r\n"
        f"Content-Length: {len(block)}\r\n"
        "\r\n"
    )
    gzip = zlib.compressobj(wbits=_GZIP)
    return gzip.compress(head.encode() + block + b"\r\n\r\n") + gzip.flush()


def _fields(crawl: CrawlId, seeds: Sequence[str], settings: Settings) -> Iterator[tuple[str, str]]:
    values = shown(settings)
    yield "software", f"Gossamer/{__version__}"
    yield "format", "WARC File Format 1.1"
    yield "isPartOf", crawl
    yield "robots", "classic"  # the specification's word for: obeyed
    yield from (("gossamer-seed", seed) for seed in seeds[:SEEDS_TOLD])
    yield from ((f"gossamer-{key.replace('_', '-')}", values[key]) for key in TOLD if values[key] not in ("", "none"))
