"""Modules as their authors write them."""

import inspect
from collections.abc import Awaitable
from pathlib import Path

import pytest

from gossamer import CrawlInfo, Module, Page
from gossamer.ids import CrawlId, Epoch, UrlId, WorkerId

CRAWL = CrawlInfo(id=CrawlId("c"), out_dir=Path("out"), worker=WorkerId(0), epoch=Epoch(1))
PAGE = Page(
    id=UrlId(bytes(16)),
    url="http://h/",
    status=200,
    headers=(),
    fetched_at=0.0,
    depth=0,
    domain="h",
    html="",
    text="",
    title="A title",
    links=(),
    sha256=bytes(32),
    size=16,
)


class Titles(Module):
    """The least that a module is."""

    def __init__(self) -> None:
        self.titles: list[str] = []

    def visit(self, page: Page) -> None:
        self.titles.append(page.title)


class SlowTitles(Titles):
    async def visit(self, page: Page) -> None:  # type: ignore[override]  # of Titles; of Module it is fine
        self.titles.append(page.title)


class Waiting(Module):
    """That both forms pass the type checker is half of the test."""

    async def visit(self, page: Page) -> None: ...


async def called(module: Module) -> None:
    """As a worker calls one."""
    await module.open(CRAWL)
    done = module.visit(PAGE)
    if isinstance(done, Awaitable):
        await done
    await module.flush()
    await module.close()


@pytest.mark.parametrize("kind", [Titles, SlowTitles])
async def test_visit_may_be_plain_or_async_and_is_all_that_is_needed(kind: type[Titles]) -> None:
    module = kind()

    await called(module)

    assert module.titles == ["A title"]


async def test_an_async_module_needs_no_more() -> None:
    await called(Waiting())


def test_a_module_without_visit_is_none() -> None:
    class Forgetful(Module):
        pass

    with pytest.raises(TypeError, match="visit"):
        Forgetful()  # type: ignore[abstract]


def test_every_method_says_when_it_is_called() -> None:
    for name in ("open", "visit", "flush", "close"):
        assert (inspect.getdoc(getattr(Module, name)) or "").startswith("Called ")


def test_what_a_module_knows_of_its_crawl_can_not_be_changed() -> None:
    with pytest.raises(AttributeError):
        CRAWL.worker = WorkerId(1)  # type: ignore[misc]
