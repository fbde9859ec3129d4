"""One JSON object a page, one a line, in one file: what most programs that read crawls can read.

Written in parts, so that kills and resumes neither halve, lose nor double a line: see `gossamer.parts`.
"""

import json
from collections.abc import Sequence
from pathlib import Path

from gossamer import CrawlInfo, Module, Page
from gossamer.parts import PartFile


class Jsonl(Module):
    """Writes id, URL, title, links and the like of each page to `path`, by default `<crawl>.jsonl` among the outputs."""

    def __init__(self, *, path: Path | None = None) -> None:
        self._path = path

    def outputs(self, crawl: CrawlInfo) -> Sequence[Path]:
        return [self._path or crawl.out_dir / f"{crawl.id}.jsonl"]

    async def open(self, crawl: CrawlInfo) -> None:
        self._part = PartFile(self.outputs(crawl)[0], crawl)

    # Async, since it only adds to a buffer: a plain one would pay for the way into a thread and back, page by page.
    async def visit(self, page: Page) -> None:
        self._part.write(page.id, json.dumps(_record(page)))

    async def flush(self) -> None:
        await self._part.flush()

    async def close(self) -> None:
        await self._part.close()


def _record(page: Page) -> dict[str, object]:
    return {
        "id": page.id.hex(),  # first, for the merge finds it there
        "url": page.url,
        "status": page.status,
        "depth": page.depth,
        "fetched_at": page.fetched_at,
        "bytes": page.size,
        "sha256": page.sha256.hex(),
        "title": page.title,
        "links": page.links,
    }
