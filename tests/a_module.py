"""What tests of modules need: pages, a crawl, and modules that were never in a file."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from gossamer import CrawlInfo, Module, Page
from gossamer.clock import SystemClock
from gossamer.ids import CrawlId, Epoch, UrlId, WorkerId
from gossamer.options import ModuleSpec, parse_spec
from gossamer.parts import merge
from gossamer.pauses import Pauses
from services.worker.plugins import Loaded, load, outputs
from services.worker.visit import Visitor


def a_page(number: int = 1, **fields: object) -> Page:
    """A page whose id and URL are made of its number."""
    page = Page(
        id=an_id(number),
        url=f"http://host/{number}",
        status=200,
        headers=(("content-type", "text/html"),),
        fetched_at=1_700_000_000.5,
        depth=1,
        domain="host",
        html=f"<title>Title {number}</title>",
        text="",
        title=f"Title {number}",
        links=("http://host/a", "http://host/b"),
        sha256=bytes(32),
        size=24,
    )
    return replace(page, **fields)  # type: ignore[arg-type]


def an_id(number: int) -> UrlId:
    return UrlId(number.to_bytes(16, "big"))


def a_crawl(out_dir: Path = Path("out"), *, worker: int = 0, epoch: int = 1) -> CrawlInfo:
    return CrawlInfo(id=CrawlId("crawl"), out_dir=out_dir, worker=WorkerId(worker), epoch=Epoch(epoch))


def loaded(cls: type[Module], name: str = "theirs", **options: str) -> Loaded:
    return Loaded(ModuleSpec(name, None, options), cls)


async def all_of_them(ids: Sequence[UrlId]) -> list[bool]:
    """As a ledger says that has them all as stored."""
    return [True] * len(ids)


async def crawled(spec: str, out_dir: Path, *pages: Page, epoch: int = 1) -> list[Path]:
    """What a module has written, used as a worker and a controller use it."""
    modules = load([parse_spec(spec)])
    visitor = Visitor(modules, timeout_s=30, pauses=Pauses(SystemClock()))
    await visitor.open(a_crawl(out_dir, epoch=epoch))
    for page in pages:
        assert await visitor.visit(page) == frozenset()
    assert await visitor.flush() == frozenset()
    await visitor.close()
    found = outputs(modules, a_crawl(out_dir))
    for output in found:
        await merge(output.path, all_of_them, form=output.form)
    return [output.path for output in found]
