"""docs/prioritizers.md is right: its prioritizer ranks as it says, and its figures are those of the code."""

import re
from pathlib import Path

import pytest

from gossamer.ids import UrlId
from gossamer.messages import Url
from services.frontier.outside import asking, breaker, client, file
from services.frontier.prioritizers import ALONG, GROUP, choose, guarded

DOC = (Path(__file__).parents[2] / "docs" / "prioritizers.md").read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The working directory of somebody who copied all the code."""
    for name, code in re.findall(r"^```python\n# (\S+)\n(.*?)^```", DOC, re.DOTALL | re.MULTILINE):
        (tmp_path / name).write_text(code, encoding="utf-8")
    monkeypatch.chdir(tmp_path)


def test_the_example_ranks_as_it_says() -> None:
    (spec,) = re.findall(r"--prioritizer (\./by_path\.py\S*)", DOC)
    urls = ["http://a.example/blog/a-very-long-name", "http://a.example/", "http://a.example/news/", "http://a.example/" + "x" * 50]

    rank = choose(spec).make()

    assert rank([Url(UrlId(bytes(16)), url, "a.example") for url in urls]) == [0, 3, 18, 100]


def test_every_prioritizer_that_comes_along_and_every_field_of_a_url_is_named() -> None:
    assert [name for name in (*ALONG, *Url.__struct_fields__) if f"`{name}`" not in DOC] == []


def test_the_figures_are_those_of_the_code() -> None:
    text = " ".join(DOC.split())
    assert f"After {guarded.FAILURES_MAX} failures in a row it is switched off; also after {guarded.SLOW_MAX} calls" in text
    assert f"longer than {guarded.DEADLINE_S:g} s" in text
    assert f"`{GROUP}`" in text
    assert f"for up to {asking.DOMAINS_AT_ONCE} registered domains a call and at most twice a second" in text
    assert asking.EVERY_S == 0.5
    assert f"holds for {asking.KEPT_S / 3600:g} hours" in text
    assert asking.TRIES == 3
    assert f"after {breaker.FAILURES_MAX} failures in a row the API is left alone for {breaker.LEFT_ALONE_S:g} s" in text
    assert breaker.ASKED_FOR_MAX_S == 3600
    assert f"{client.ANSWER_BYTES_MAX // 1024} KiB and {client.REQUEST_S:g} s at most" in text
    assert file.LINES_MAX == 1_000_000
