"""Modules by name, and their options: what is written, what is meant, what is refused."""

from pathlib import Path
from typing import Any, Optional

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer import Module, Page
from gossamer.errors import SettingsError
from gossamer.options import keywords, parse_spec


class Titles(Module):
    def __init__(  # type: ignore[no-untyped-def]
        self,
        *,
        path: Path = Path("titles.txt"),
        name: str = "t",
        least: int = 1,
        ratio: float = 0.5,
        append: bool = False,
        most: int | None = None,
        other: Optional[str] = None,  # noqa: UP045  # as many write it
        fields: list[str] = ["url"],  # noqa: B006  # read only
        bare="",
        clock: object = None,
    ) -> None:
        pass

    def visit(self, page: Page) -> None: ...


@pytest.mark.parametrize(
    ("text", "name", "cls", "options"),
    [
        ("noop", "noop", None, {}),
        (" my-module ", "my-module", None, {}),
        ("jsonl:path=out/x.jsonl", "jsonl", None, {"path": "out/x.jsonl"}),
        ("jsonl:path=x,least=3", "jsonl", None, {"path": "x", "least": "3"}),
        ("jsonl:path=", "jsonl", None, {"path": ""}),
        ("index:url=http://host:9200/?a=b", "index", None, {"url": "http://host:9200/?a=b"}),
        ("jsonl:fields=url,title,least=3", "jsonl", None, {"fields": "url,title", "least": "3"}),
        (r"x:query=a=1\,b=2,least=3", "x", None, {"query": "a=1,b=2", "least": "3"}),
        ("jsonl:Other", "jsonl", "Other", {}),
        ("package.module:Class", "package.module", "Class", {}),
        ("package.module:Class:key=value", "package.module", "Class", {"key": "value"}),
        ("package.module:Class:url=http://h:1/", "package.module", "Class", {"url": "http://h:1/"}),
        ("./file.py", "./file.py", None, {}),
        ("file.py", "file.py", None, {}),
        ("./file.py:Class", "./file.py", "Class", {}),
        ("./file.py:Class:key=value,other=x", "./file.py", "Class", {"key": "value", "other": "x"}),
        ("../my modules/file.py:key=value", "../my modules/file.py", None, {"key": "value"}),
    ],
)
def test_a_spec_has_a_name_a_class_and_options(text: str, name: str, cls: str | None, options: dict[str, str]) -> None:
    spec = parse_spec(text)

    assert (spec.name, spec.cls, dict(spec.options)) == (name, cls, options)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "it takes NAME, package.module:Class or ./file.py"),
        (":a=1", "it takes NAME"),
        ("./folder", "it takes NAME"),
        ("1x", "it takes NAME"),
        ("jsonl:", "'' is neither a class nor key=value"),
        ("jsonl:a b", "'a b' is neither a class nor key=value"),
        ("jsonl:Class:", "'' is not key=value"),
        ("jsonl:Class:x", "'x' is not key=value"),
        ("jsonl:path=x,min-length=3", "'min-length=3' is not key=value (a comma inside a value is written \\,)"),
        ("jsonl:path=x,path=y", "path is given twice"),
        ("package.module", "it takes a class too, as in package.module:Class"),
        ("package.module:key=value", "it takes a class too, as in package.module:Class"),
    ],
)
def test_a_spec_that_makes_no_sense_is_refused(text: str, reason: str) -> None:
    with pytest.raises(SettingsError) as refused:
        parse_spec(text)

    assert str(refused.value).startswith(f"--module {text!r}: {reason}")
    assert len(str(refused.value).splitlines()) == 1


@given(st.text() | st.from_regex(r"[a-z.]{1,5}(:[A-Z]{1,2})?(:[a-z=,\\]{0,12})?", fullmatch=True))
def test_any_text_is_a_spec_or_a_settings_error(text: str) -> None:
    try:
        spec = parse_spec(text)
    except SettingsError as refused:
        message = str(refused)
    else:
        message = spec.name

    assert len(message.splitlines()) == 1


@given(st.dictionaries(st.from_regex(r"[a-z]{1,4}", fullmatch=True), st.from_regex(r"[^,\\\n]*", fullmatch=True)))
def test_what_is_written_is_what_is_read(options: dict[str, str]) -> None:
    text = "name" + (":" + ",".join(f"{key}={value}" for key, value in options.items()) if options else "")

    if text == text.strip():
        assert dict(parse_spec(text).options) == options


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("path", "a/b", Path("a/b")),
        ("name", "x", "x"),
        ("name", "", ""),
        ("least", "-3", -3),
        ("ratio", "0.25", 0.25),
        ("append", "yes", True),
        ("append", "false", False),
        ("most", "5", 5),
        ("most", "none", None),
        ("other", "x", "x"),
        ("other", "none", None),
        ("fields", "url, title", ["url", "title"]),
        ("bare", "x", "x"),
    ],
)
def test_options_are_converted_by_their_annotations(key: str, text: str, value: object) -> None:
    assert keywords(Titles, {key: text}, "titles") == {key: value}


TAKEN = (
    "path (a path), name (a text), least (a whole number), ratio (a number), append (true or false), "
    "most (a whole number, or none), other (a text, or none), fields (texts with commas between), bare (a text)"
)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"colour": "red"}, f"module titles has no option 'colour'; it takes {TAKEN}"),
        ({"clock": "now"}, f"module titles has no option 'clock'; it takes {TAKEN}"),
        ({"least": "1.5"}, "module titles: least is '1.5'; it takes a whole number"),
        ({"ratio": "nan"}, "module titles: ratio is 'nan'; it takes a number"),
        ({"append": "maybe"}, "module titles: append is 'maybe'; it takes true or false"),
        ({"most": ""}, "module titles: most is ''; it takes a whole number, or none"),
    ],
)
def test_a_wrong_option_is_refused_with_the_right_ones(options: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError) as refused:
        keywords(Titles, options, "titles")

    assert str(refused.value) == message


def test_an_option_that_is_missing_is_named() -> None:
    def make(*, url: str, least: int = 1) -> None: ...

    assert keywords(make, {"url": "x"}, "m") == {"url": "x"}
    with pytest.raises(SettingsError, match=r"^module m needs the option url; it takes url \(a text\), least \(a whole number\)$"):
        keywords(make, {}, "m")


def test_a_module_without_options_takes_none() -> None:
    class Plain(Module):
        def visit(self, page: Page) -> None: ...

    assert keywords(Plain, {}, "plain") == {}
    with pytest.raises(SettingsError, match=r"^module plain has no option 'a'; it takes none$"):
        keywords(Plain, {"a": "1"}, "plain")


def test_a_module_that_takes_anything_gets_texts() -> None:
    def make(least: int = 1, **anything: Any) -> None: ...

    assert keywords(make, {"least": "2", "other": "3"}, "m") == {"least": 2, "other": "3"}


def test_annotations_may_be_texts_but_must_be_known() -> None:
    def make(*, least: "int" = 1) -> None: ...
    def unknown(*, least: "Missing" = 1) -> None: ...  # type: ignore[name-defined]  # noqa: F821

    assert keywords(make, {"least": "2"}, "m") == {"least": 2}
    with pytest.raises(SettingsError, match="the types of its options can't be read: name 'Missing' is not defined"):
        keywords(unknown, {}, "m")
