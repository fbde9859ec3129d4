"""What the benches of steps and the profile are made of: floors that do the same work, figures that add up, time in its place."""

from html.parser import HTMLParser

import pytest

from bench import floors
from bench.measuring import Cost, Measured, figures, table
from bench.profile import EVENT_LOOP, START, Stack, area, by_area, by_function, graph
from gossamer.urls import Finder
from services.worker.sketch import Sketcher

WORDS = [f"word{number * 7919 % 1000}" for number in range(800)]
TEXT = " ".join(WORDS)


# --- Floors ---


@pytest.mark.parametrize(
    "href",
    [
        pytest.param("/a/b.html", id="of the site"),
        pytest.param("c?b=2&a=1#top", id="of the folder, with parameters to be sorted"),
        pytest.param("../x?utm_source=a", id="nothing but tracking"),
        pytest.param("/%66oo%2Fbar", id="escapes of letters"),
        pytest.param("//127.0.0.2/größe/", id="another host, not in ASCII"),
        pytest.param("/find?q=café", id="a query that is not in ASCII"),
    ],
)
def test_the_floor_gives_a_link_the_id_that_we_give_it(href: str) -> None:
    base = "http://127.0.0.1/d/page"

    assert floors.Links().ids(base, [href], "utf-8") == [Finder().resolve(base, href).id]


def test_the_floor_knows_no_id_for_what_is_no_page() -> None:
    assert floors.Links().ids("http://127.0.0.1/", ["mailto:a@b.example", "http://[", "javascript:x"], "utf-8") == []


def test_a_link_means_the_same_on_the_next_page_of_the_floor() -> None:
    links = floors.Links()
    first = links.ids("http://127.0.0.1/a/", ["/x", "y"], "utf-8")
    second = links.ids("http://127.0.0.1/b/", ["/x", "y"], "utf-8")

    assert first[0] == second[0]
    assert first[1] != second[1]


@pytest.mark.parametrize("changed", [0, 10, 100, 400])
def test_the_floors_sketch_tells_how_alike_two_texts_are_as_ours_does(changed: int) -> None:
    other = " ".join(["else"] * changed + WORDS[changed:])
    ours = Sketcher(0.9)

    def alike(one: bytes, another: bytes) -> float:
        return sum(one[at : at + 4] == another[at : at + 4] for at in range(0, 1024, 4)) / 256

    by_floor = alike(floors.sketch(TEXT)[0], floors.sketch(other)[0])
    by_us = alike(ours(TEXT).signature, ours(other).signature)

    assert by_floor == pytest.approx(by_us, abs=0.1)


def test_the_floor_finds_twins_that_are_equal_or_nearly() -> None:
    twins = floors.Twins()
    near = " ".join([*WORDS[:-3], "a", "b", "c"])

    assert twins.judge(b"1", b"exact", *floors.sketch(TEXT)) is None
    assert twins.judge(b"2", b"exact", *floors.sketch("else")) == b"1"
    assert twins.judge(b"3", b"another", *floors.sketch(near)) == b"1"
    assert twins.judge(b"4", b"a third", *floors.sketch(" ".join(reversed(WORDS)))) is None


# --- Measuring ---


def test_sums_are_those_of_the_steps_and_what_has_no_floor_has_no_ratio() -> None:
    told = Measured({"parse": Cost(0.3, 0.2, "a library"), "rank": Cost(0.1, 0.0, "-")}, {})

    assert figures(told) == {
        "steps": {"parse": {"ms": 0.3, "floor_ms": 0.2}, "rank": {"ms": 0.1, "floor_ms": 0.0}},
        "sum_ms": 0.4,
        "floor_sum_ms": 0.2,
    }
    assert table(told).splitlines()[2:] == [
        "| parse | 0.300 | 0.200 | 1.50 | a library |",
        "| rank | 0.100 | 0.000 |  | - |",
        "| **sum** | 0.400 | 0.200 | 2.00 |  |",
    ]


# --- The profile ---

LOOP: tuple[tuple[str, str], ...] = (
    ("", "MainThread"),
    ("services/controller/run.py", "run"),
    ("/usr/lib/python3.11/asyncio/base_events.py", "_run_once"),
)


@pytest.mark.parametrize(
    ("stack", "whose"),
    [
        pytest.param((*LOOP, ("services/worker/parse.py", "parse")), "parse", id="the innermost file of ours"),
        pytest.param(
            (*LOOP, ("services/worker/links.py", "_judged"), ("/lib/ada_url/x.py", "join_url")), "links", id="a library's"
        ),
        pytest.param((*LOOP, ("/usr/lib/python3.11/selectors.py", "select")), EVENT_LOOP, id="the loop's own, not its starter's"),
        pytest.param(
            (*LOOP, ("<frozen importlib._bootstrap>", "_load"), ("services/worker/parse.py", "<module>")), START, id="import"
        ),
        pytest.param((("", "ledger"), ("/usr/lib/python3.11/concurrent/futures/thread.py", "_worker")), "ledger", id="a thread's"),
        pytest.param((*LOOP, ("services/worker/hand.py", "close")), "walk", id="a worker's file without an area of its own"),
    ],
)
def test_time_goes_to_the_area_that_it_was_spent_for(stack: Stack, whose: str) -> None:
    assert area(stack) == whose


def test_areas_and_functions_add_up_to_the_whole_and_the_dearest_come_first() -> None:
    parse, links = (*LOOP, ("services/worker/parse.py", "parse")), (*LOOP, ("services/worker/links.py", "_site"))
    stacks: dict[Stack, float] = {links: 0.25, parse: 1.0, (*parse, ("services/worker/parse.py", "_title")): 0.5}

    assert by_area(stacks) == {"parse": 1.5, "links": 0.25}
    assert list(by_function(stacks).items()) == [(parse[-1], 1.0), (("services/worker/parse.py", "_title"), 0.5), (links[-1], 0.25)]


def test_the_graph_has_a_box_for_each_call_as_wide_as_its_time() -> None:
    class Boxes(HTMLParser):
        def __init__(self) -> None:
            super().__init__()
            self.seen: list[tuple[str, str]] = []

        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            if tag == "div":
                given = {name: value or "" for name, value in attrs}
                self.seen.append((given["title"].split(" ")[0], given["style"]))

    boxes = Boxes()
    boxes.feed(graph({(("", "main"), ("a.py", "<a>")): 3.0, (("", "main"), ("a.py", "b")): 1.0}, "<title>"))

    assert boxes.seen == [
        ("main", "left:0.0000%;width:100.0000%;top:0px"),
        ("<a>", "left:0.0000%;width:75.0000%;top:16px"),
        ("b", "left:75.0000%;width:25.0000%;top:16px"),
    ]
