"""The door for modules: what somebody writes who wants to do something with each page.

A module is a class with a `visit`; the rest has defaults. It is handed pages after they are stored, and changes nothing: its
output is its own (a file, a table, a call). docs/modules.md shows how to write one.
Must not know: anything of the crawler. This file and `page.py` are all that a module's author has to read; `parts.py` helps
those who write files.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from gossamer.forms import LINES, Form
from gossamer.ids import CrawlId, Epoch, WorkerId
from gossamer.page import Page


@dataclass(frozen=True, slots=True, kw_only=True)
class CrawlInfo:
    """What a module may know of the crawl that it works in."""

    id: CrawlId
    out_dir: Path  #: where outputs go by default
    worker: WorkerId  #: whose module this is: each worker has an instance of its own
    epoch: Epoch  #: grows with each start of this worker. A file named by both is nobody else's


class Module(ABC):
    """Something to do with each page.

    Options are the keyword parameters of `__init__`, given as `--module name:key=value` and converted by their annotations
    (str, int, float, bool, Path, list[str], or one of these or None). Open nothing there: that is what `open` is for.

    Each worker has an instance of its own. A plain `visit` is called for one page at a time, an async one may be under way for
    several. Whatever a module raises is logged and counted with the page, and costs neither the page nor its links; so does
    taking longer than `--module-timeout` (30 s). A module that goes on so is switched off, loudly. A disk without room (an OSError
    with ENOSPC) is nobody's fault: the crawl pauses, and the same call is made again until there is room.
    """

    #: False for a module that has nothing to do with pages: its `visit` is never called, and no page is made for it.
    wants_pages: ClassVar[bool] = True

    #: What the files of `outputs` look like: the lines of the parts, unless a module has a form of its own (`gossamer.forms`).
    form: Form = LINES

    def outputs(self, crawl: CrawlInfo) -> Sequence[Path]:
        """Called before the crawl and after it: the files that this module writes as parts (`gossamer.parts`).

        At the end of the crawl the parts of all workers are merged into each of them. The answer must not depend on the
        worker or the epoch. Not for files that a module writes by itself: those are its own business.
        """
        return ()

    async def open(self, crawl: CrawlInfo) -> None:  # noqa: B027  # optional, not forgotten
        """Called once, before the first page. If it raises, the worker does not start."""

    @abstractmethod
    def visit(self, page: Page) -> Awaitable[None] | None:
        """Called for each page that was stored; duplicates and pages that forbid it (noindex) are not.

        Write `def visit`, which runs in a thread, or `async def visit`, which must not block. A page comes *at least* once:
        after a crash it may come again, to any worker, with the same `page.id`.
        """

    async def flush(self) -> None:  # noqa: B027
        """Called before the pages visited since the last time are closed; they won't come again once it has returned.

        What must not be lost is made durable here: a buffer written out, a batch sent. Never called while a plain `visit`
        runs; an async one may be under way for later pages, so take what there is before the first await. If it raises it is
        called once more, so it must not forget what it could not write.
        """

    async def close(self) -> None:  # noqa: B027
        """Called once, after the last page and a last `flush`. Not called when the worker is killed."""
