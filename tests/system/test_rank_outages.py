"""A rank API in every bad mood, and crawls that don't care: no URL is lost, none is late, and who watches is told.

A frontier is run over the embedded engine's ports; whole crawls, on both engines, as commands.
"""

import asyncio
import random
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from adapters.wiring import Ports, open_embedded
from gossamer.clock import SystemClock
from gossamer.ids import URL_ID_BYTES, CrawlId, UrlId
from gossamer.messages import Found, Url, encode, in_hints
from gossamer.notes import decode_frontier_note, is_frontiers
from gossamer.ports.broker import URLS
from gossamer.records import Rules
from gossamer.settings import Settings
from gossamer.states import State
from services.frontier import frontier
from services.frontier.bands import BandTable
from services.frontier.outside.breaker import FAILURES_MAX
from tests.rank_server import Mood, RankServer, rank_server
from tests.system.stack import running_stack
from tests.system.web import FREELY, PERFECT, run, synthetic_web, verdict

CRAWL = CrawlId("c-1")
URLS_IN_ALL = 1_000
PATIENCE_S = 60
#: Twenty pages of a host take four seconds: the API is asked, and its failures noted, in two.
UNHURRIED = (*FREELY, "--delay", "0.2")


def url(number: int, domain: str = "") -> Url:
    host = domain or f"{number % 50}.example"
    return Url(UrlId(number.to_bytes(URL_ID_BYTES)), f"http://{host}/{number}", host)


@asynccontextmanager
async def a_frontier(folder: Path, api: str) -> AsyncIterator[Ports]:
    """At work on a crawl with room for everything."""
    clock = SystemClock()
    ports = await open_embedded(folder, CRAWL, clock)
    settings = Settings()
    settings = replace(settings, frontier=replace(settings.frontier, prioritizer="constant", rank_api=api))
    await ports.ledger.create(Rules())
    await ports.ledger.register("worker")
    await ports.broker.declare(dict.fromkeys((URLS, "worker.0", *BandTable(settings.frontier.bands).queues()), 10_000))
    running = asyncio.ensure_future(frontier.run(ports.broker, ports.ledger, settings, clock, random.Random(1), "one"))
    try:
        yield ports
        assert not running.done() or running.result()
    finally:
        running.cancel()
        await asyncio.wait((running,))
        await ports.close()


async def found(ports: Ports, urls: list[Url]) -> None:
    await ports.ledger.add(urls)
    await ports.broker.publish(URLS, [encode(Found(each)) for each in in_hints(urls)])


async def until(condition: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await condition():  # noqa: ASYNC110  # the ledger tells nobody
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("mood", [mood for mood in Mood if mood is not Mood.FINE])
async def test_whatever_the_api_does_every_url_is_routed_meanwhile(mood: Mood, tmp_path: Path) -> None:
    urls = [url(number) for number in range(URLS_IN_ALL)]
    async with rank_server(mood) as server, a_frontier(tmp_path, server.url) as ports:
        await found(ports, urls)

        async def all_routed() -> bool:
            return bool(server.asked) and not (await ports.ledger.counts()).states[State.WAITING]

        await until(all_routed)

        records = await ports.ledger.records([each.id for each in urls])
        assert [record.priority for record in records if record] == [50] * URLS_IN_ALL, "by the crawl's own rank alone"
        if mood in (Mood.HANGING, Mood.TRICKLING, Mood.HUGE):
            assert server.answered == 0, "nobody waited for it"
        assert len(server.asked) <= FAILURES_MAX


async def test_an_api_that_is_not_there_is_noted_for_who_watches(tmp_path: Path) -> None:
    async with rank_server() as gone:
        address = gone.url
    async with a_frontier(tmp_path, address) as ports:
        await found(ports, [url(1)])

        async def away() -> bool:
            notes = [decode_frontier_note(text) for name, text in (await ports.ledger.notes()).items() if is_frontiers(name)]
            return any(note.rank_api is not None and note.rank_api.away_since is not None for note in notes)

        await until(away)
        assert (await ports.ledger.counts()).states[State.WAITING] == 0


async def test_what_comes_after_the_answer_has_the_mean_of_both(tmp_path: Path) -> None:
    async with rank_server(good_example=10.0) as server, a_frontier(tmp_path, server.url) as ports:
        await found(ports, [url(1, "good.example"), url(2, "unknown.example")])

        async def known() -> bool:
            return await ports.ledger.known_ranks(["good.example", "unknown.example"]) != {}

        await until(known)
        await found(ports, [url(3, "www.good.example"), url(4, "unknown.example")])

        async def all_routed() -> bool:
            return not (await ports.ledger.counts()).states[State.WAITING]

        await until(all_routed)
        records = await ports.ledger.records([url(3).id, url(4).id])
        assert [record.priority for record in records if record] == [25, 75]
        assert server.asked == [["good.example", "unknown.example"]]


# --- Whole crawls ---


@contextmanager
def in_a_thread(mood: Mood) -> Iterator[RankServer]:
    """The server, while the test waits for a command."""
    up, down = threading.Event(), asyncio.Event()
    made: list[tuple[RankServer, asyncio.AbstractEventLoop]] = []

    async def serve() -> None:
        async with rank_server(mood) as server:
            made.append((server, asyncio.get_running_loop()))
            up.set()
            await down.wait()

    thread = threading.Thread(target=asyncio.run, args=(serve(),))
    thread.start()
    assert up.wait(PATIENCE_S)
    server, loop = made[0]
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(down.set)
        thread.join(PATIENCE_S)


def test_a_crawl_is_the_same_and_says_so_in_one_line(tmp_path: Path) -> None:
    with synthetic_web(tmp_path, "--sites", "5", "--pages", "100", "--seed", "2") as web, in_a_thread(Mood.ERROR) as server:
        environ = {"GOSSAMER_RANK_API_KEY": "very-hidden"}
        ran = run(tmp_path, "--seed", web.seeds[0], "--rank-api", server.url, *UNHURRIED, environ=environ)

        assert (ran.code, ran.report["pages"]) == (0, 100), ran.said
        assert verdict(web.score()) == PERFECT
    asked = len(server.asked)
    assert 1 <= asked <= FAILURES_MAX
    (line,) = [line for line in ran.said.splitlines() if line.startswith("  rank API")]
    assert "away since " in line
    assert line.endswith("; URLs are ranked without it: it answers with status 500")
    assert "api-opr: very-hidden" in server.heads[0].lower()
    for file in [path for path in tmp_path.rglob("*") if path.is_file()]:
        assert b"very-hidden" not in file.read_bytes(), file


def test_on_servers_too_and_the_key_reaches_the_frontier_alone(tmp_path: Path) -> None:
    (tmp_path / "spy.py").write_text(
        "import os\nfrom gossamer import Module\n\n\nclass Spy(Module):\n    def visit(self, page):\n"
        "        assert 'GOSSAMER_RANK_API_KEY' not in os.environ\n"
    )
    (tmp_path / "by_path.py").write_text(
        "class ByPath:\n    def __init__(self, *, step: int = 10):\n        self.step = step\n\n"
        "    def __call__(self, urls):\n        return [min(len(url.url) * self.step // 10, 100) for url in urls]\n"
    )
    words = ("--engine", "external", "--state", "state", "--module", "./spy.py", "--prioritizer", "./by_path.py:ByPath:step=5")
    with (
        running_stack() as stack,
        synthetic_web(tmp_path, "--sites", "5", "--pages", "100", "--seed", "2") as web,
        in_a_thread(Mood.HTML) as server,
    ):
        environ = {**stack.environ, "GOSSAMER_RANK_API_KEY": "very-hidden"}
        ran = run(tmp_path, "--seed", web.seeds[0], "--rank-api", server.url, *words, *UNHURRIED, environ=environ)

        assert (ran.code, ran.report["pages"]) == (0, 100), ran.said
        assert verdict(web.score()) == PERFECT
    assert "module" not in ran.said, "the spy saw no key"
    assert "api-opr: very-hidden" in server.heads[0].lower()
    assert "its answer is not in the form of Open PageRank" in ran.said


def test_a_prioritizer_that_fails_costs_no_page_and_is_shown(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("class Broken:\n    def __call__(self, urls):\n        raise ValueError(urls[0].url)\n")
    with synthetic_web(tmp_path, "--sites", "5", "--pages", "100", "--seed", "2") as web:
        ran = run(tmp_path, "--seed", web.seeds[0], "--prioritizer", "./broken.py", *FREELY)

        assert (ran.code, ran.report["pages"]) == (0, 100), ran.said
        assert verdict(web.score()) == PERFECT
    assert ran.said.count("prioritizer ./broken.py: ValueError: http://") == 1, "logged once"
    assert "  plug-in   prioritizer: " in ran.said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--prioritizer", "./none.py:Mine"), "controller.py: --prioritizer './none.py': there is no such file\n"),
        (("--prioritizer", "deep"), "there is no such prioritizer; did you mean breadth? There are breadth, constant, pagerank\n"),
        (("--prioritizer", "breadth:step=1"), "controller.py: prioritizer breadth has no option 'step'; it takes none\n"),
        (("--rank-file", "none.csv"), "controller.py: --rank-file none.csv can't be read: No such file or directory\n"),
        (("--rank-api", "https://u:p@r.example/"), "--rank-api is 'https://u:p@r.example/'; it takes a URL such as https://"),
    ],
)
def test_what_can_not_work_is_said_in_one_line_before_anything_starts(words: tuple[str, ...], said: str, tmp_path: Path) -> None:
    ran = run(tmp_path, "--seed", "http://127.0.0.1/", *FREELY, *words)

    assert ran.code == 2
    assert said in ran.said
    assert len(ran.said.splitlines()) == 1
    assert not (tmp_path / "crawls").exists()
