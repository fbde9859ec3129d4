"""Prioritizers by their names, and what becomes of one that misbehaves."""

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from textwrap import dedent

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer import Prioritizer
from gossamer.clock import ManualClock
from gossamer.errors import SettingsError
from gossamer.ids import UrlId
from gossamer.messages import Url
from services.frontier.prioritizers import ALONG, choose
from services.frontier.prioritizers.guarded import DEADLINE_S, FAILURES_MAX, SLOW_MAX, Guarded

MINE = """
    class Mine:
        def __init__(self, *, step: int = 1, words: list[str] = []) -> None:
            self.step = step

        def __call__(self, urls):
            return [min(url.depth * self.step, 100) for url in urls]
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    return tmp_path


def url(depth: int = 0) -> Url:
    return Url(UrlId(bytes(16)), "http://a.example/", "a.example", depth)


URLS = [url(depth) for depth in (0, 3, 500)]


def written(name: str, text: str = MINE) -> None:
    Path(name).write_text(dedent(text), encoding="utf-8")


def refusal(text: str) -> str:
    with pytest.raises(SettingsError) as refused:
        choose(text)
    message = str(refused.value)
    assert message.isprintable()
    return message


@pytest.mark.parametrize("name", ALONG)
def test_those_that_come_along_give_a_priority_for_each(name: str) -> None:
    chosen = choose(name)
    priorities = chosen.make()(URLS)
    assert chosen.is_ours
    assert [type(each) for each in priorities] == [int] * 3
    assert all(0 <= each <= 100 for each in priorities)


@pytest.mark.parametrize("spec", ["./mine.py", "mine.py:Mine", "./mine.py:Mine:step=2", "mine:Mine:step=2"])
def test_a_file_or_an_importable_class_is_a_prioritizer(spec: str) -> None:
    written("mine.py")
    chosen = choose(spec)
    assert not chosen.is_ours
    assert chosen.make()(URLS) == [0, 6 if "step" in spec else 3, 100]


def test_deriving_from_the_protocol_is_allowed_and_not_needed() -> None:
    written(
        "mine.py", "from gossamer import Prioritizer\nclass Mine(Prioritizer):\n    def __call__(self, urls):\n        return []"
    )
    assert Prioritizer in choose("./mine.py").cls.__mro__


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ("pagernak", "there is no such prioritizer; did you mean pagerank? There are breadth, constant, pagerank"),
        ("./none.py:Mine", "there is no such file"),
        ("nowhere.mine:Mine", "there is no nowhere; is it installed, or on PYTHONPATH?"),
        ("./mine.py:Yours", "it has no class Yours; did you mean Mine?"),
        ("./mine.py:json", "json is no class with a __call__"),
        ("./mine.py:Prioritizer", "Prioritizer has no __call__"),
    ],
)
def test_what_is_not_there_is_refused_with_the_right_ones(spec: str, reason: str) -> None:
    written("mine.py", "import json\nfrom gossamer import Prioritizer\n" + dedent(MINE))
    assert refusal(spec) == f"--prioritizer {spec.partition(':')[0]!r}: {reason}"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no class with a __call__ is defined in it"),
        ("class Mine: ...", "no class with a __call__ is defined in it"),
        ("from gossamer import Prioritizer\nclass Mine(Prioritizer): ...", "no class with a __call__ is defined in it"),
        ("1 / 0", "it can't be imported: ZeroDivisionError: division by zero (mine.py:1)"),
        (
            "class Mine:\n    async def __call__(self, urls): return []",
            "Mine.__call__ has to be a plain `def` that returns a list",
        ),
        ("class Mine:\n    def __call__(self, urls): yield 1", "Mine.__call__ has to be a plain `def` that returns a list"),
        (
            "class Mine:\n    def __init__(self): 1 / 0\n    def __call__(self, urls): return []",
            "Mine can't be made: ZeroDivisionError: division by zero (mine.py:2)",
        ),
        (
            "class Mine:\n    def __call__(self, urls): ...\nclass Other(Mine): ...",
            "it has several prioritizers; name one, as in ./mine.py:Mine",
        ),
    ],
)
def test_what_could_not_work_is_refused_in_one_line(text: str, reason: str) -> None:
    written("mine.py", text)
    assert refusal("./mine.py") == f"--prioritizer './mine.py': {reason}"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("breadth:step=1", "prioritizer breadth has no option 'step'; it takes none"),
        ("./mine.py:step=x", "prioritizer ./mine.py: step is 'x'; it takes a whole number"),
        (
            "./mine.py:stop=1",
            "prioritizer ./mine.py has no option 'stop'; it takes step (a whole number), words (texts with commas between)",
        ),
        ("", "--prioritizer '': it takes NAME, package.module:Class or ./file.py, each with :key=value,... behind it or not"),
    ],
)
def test_a_wrong_option_is_refused_with_the_right_ones(spec: str, message: str) -> None:
    written("mine.py")
    assert refusal(spec) == message


# --- One that misbehaves ---


class Shy(list[int]):
    def __repr__(self) -> str:
        raise RuntimeError


def raising(urls: Sequence[Url]) -> list[int]:
    raise ValueError("\x1b[31m no\nway")


def leaving(urls: Sequence[Url]) -> list[int]:
    raise SystemExit(3)


def guarded(rank: Callable[[Sequence[Url]], Sequence[int]], clock: ManualClock | None = None) -> Guarded:
    return Guarded(rank, "./mine.py", clock or ManualClock())


@pytest.mark.parametrize(
    ("rank", "said"),
    [
        (raising, r"ValueError: \x1b[31m no\nway (test_prioritizers.py:"),
        (leaving, "SystemExit: 3"),
        (lambda urls: [1], "1 priorities for 3 URLs"),
        (lambda urls: [1] * 4, "4 priorities for 3 URLs"),
        (lambda urls: [0, 101, 0], "101 is no whole number from 0 to 100"),
        (lambda urls: [0, -1, 0], "-1 is no whole number from 0 to 100"),
        (lambda urls: [0, 1.5, 0], "1.5 is no whole number from 0 to 100"),
        (lambda urls: [0, float("nan"), 0], "nan is no whole number from 0 to 100"),
        (lambda urls: [0, "1", 0], "'1' is no whole number from 0 to 100"),
        (lambda urls: [0, True, 0], "True is no whole number from 0 to 100"),
        (lambda urls: [0, None, 0], "None is no whole number from 0 to 100"),
        (lambda urls: [0, Shy(), 0], "RuntimeError"),
        (lambda urls: None, "TypeError"),
        (lambda urls: iter([1, 2, 3]), "TypeError"),
        (lambda urls: urls.clear(), "AttributeError"),
    ],
)
def test_whatever_it_does_costs_no_url(
    rank: Callable[[Sequence[Url]], Sequence[int]], said: str, caplog: pytest.LogCaptureFixture
) -> None:
    guard = guarded(rank)

    assert guard(URLS) == [50, 50, 50]
    assert guard(URLS) == [50, 50, 50]

    trouble = guard.trouble()
    assert trouble is not None
    assert (trouble.failures, trouble.switched_off) == (2, False)
    assert said in trouble.last
    assert trouble.last.isprintable()
    assert len(caplog.records) == 1, "told once"


def test_one_that_goes_on_so_is_switched_off_and_one_that_mends_is_not(caplog: pytest.LogCaptureFixture) -> None:
    asked: list[int] = []

    def moody(urls: Sequence[Url]) -> list[int]:
        asked.append(len(urls))
        if len(asked) == FAILURES_MAX:
            return [7] * len(urls)
        raise ValueError

    guard = guarded(moody)
    for _ in range(FAILURES_MAX - 1):
        guard(URLS)
    assert guard(URLS) == [7, 7, 7]
    for _ in range(FAILURES_MAX + 10):
        assert guard(URLS) == [50, 50, 50]

    assert len(asked) == 2 * FAILURES_MAX
    trouble = guard.trouble()
    assert trouble is not None
    assert trouble.switched_off
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.ERROR]


def test_a_slow_one_is_told_of_and_then_switched_off(caplog: pytest.LogCaptureFixture) -> None:
    clock = ManualClock()

    def slow(urls: Sequence[Url]) -> list[int]:
        clock.advance(DEADLINE_S + 1)
        return [7] * len(urls)

    guard = guarded(slow, clock)

    assert [guard(URLS) for _ in range(SLOW_MAX + 1)] == [[7, 7, 7]] * SLOW_MAX + [[50, 50, 50]]
    assert [record.levelno for record in caplog.records] == [logging.WARNING, logging.ERROR]
    assert "took 2.0 s over 3 URLs" in caplog.records[0].getMessage()


@given(st.lists(st.integers(0, 100), min_size=3, max_size=3))
def test_what_is_right_passes_through(priorities: list[int]) -> None:
    guard = guarded(lambda urls: tuple(priorities))
    assert guard(URLS) == priorities
    assert guard.trouble() is None
