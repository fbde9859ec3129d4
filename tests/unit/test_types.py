"""Types: what the head and the first bytes say of a body."""

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from services.worker.types import FIRST_BYTES, NO_LABEL, Label, in_two_bytes, label_of, refusal_by_bytes, refusal_by_head

HTML = Label("text/html", None)
PAGE = b"<html><title>t</title><p>hello</p></html>"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([], NO_LABEL, id="none"),
        pytest.param(["text/html"], HTML, id="a type"),
        pytest.param(["TEXT/HTML;foo"], HTML, id="in capitals, with a tail"),
        pytest.param([" text/html ;charset=UTF-8"], Label("text/html", "UTF-8"), id="with a charset"),
        pytest.param(['text/html; a=b; charset = "utf-8"'], Label("text/html", "utf-8"), id="with a charset in quotes"),
        pytest.param(['text/html; charset="utf-8'], Label("text/html", "utf-8"), id="with a quote left open"),
        pytest.param(["text/html; charset='utf-8'"], Label("text/html", "utf-8"), id="with the wrong quotes"),
        pytest.param(["text/html; mycharset=x"], HTML, id="with another parameter that ends so"),
        pytest.param(["image/png", "text/html"], HTML, id="the last of two"),
        pytest.param(["text/html", "nonsense"], HTML, id="the last of two that is one"),
        pytest.param(["image/png, text/html; charset=x"], Label("text/html", "x"), id="the last in a list"),
        pytest.param(["*/*"], NO_LABEL, id="any"),
        pytest.param(["html"], NO_LABEL, id="half a type"),
        pytest.param([""], NO_LABEL, id="empty"),
        pytest.param(["text/html" + " " * 10_000 + ";charset=x"], Label("text/html", "x"), id="overlong"),
    ],
)
def test_the_label_is_the_last_type_that_is_one(values: list[str], expected: Label) -> None:
    assert label_of((("X", "y"), *(("Content-Type", value) for value in values))) == expected


@pytest.mark.parametrize(
    ("name", "value", "refused"),
    [
        ("content-type", "text/html", False),
        ("Content-Type", "application/xhtml+xml; charset=utf-8", False),
        ("Content-Type", "text/plain", False),
        ("Content-Type", "*/*", False),
        ("Content-Type", "text/css", True),
        ("Content-Type", "text/xml", True),
        ("Content-Type", "application/octet-stream", True),
        ("Content-Type", "image/png", True),
        ("Content-Type", "multipart/x-mixed-replace; boundary=x", True),
        ("Content-Disposition", "Attachment; filename=a.html", True),
        ("content-disposition", "inline; filename=attachment", False),
    ],
)
def test_only_html_and_plain_text_are_read(name: str, value: str, refused: bool) -> None:
    assert (refusal_by_head(((name, value),)) is not None) is refused


NO_PAGES = {
    "PNG": b"\x89PNG\r\n\x1a\n" + bytes(50),
    "JPEG": b"\xff\xd8\xff\xe0" + b"abc" * 30,
    "GIF and HTML at once": b"GIF89a/*" + PAGE,
    "WebP": b"RIFF\x10\x20\x30\x40WEBPVP8 " + b"abc" * 30,
    "PDF": b"%PDF-1.7 text alone",
    "MP4": b"\x00\x00\x00\x20ftypisom" + b"abc" * 30,
    "ZIP": b"PK\x03\x04" + b"abc" * 30,
    "ELF": b"\x7fELF" + b"abc" * 30,
    "gzip": b"\x1f\x8b\x08\x00" + b"abc" * 30,
    "WebAssembly": b"\x00asm\x01\x00\x00\x00",
    "noise": random.Random(1).randbytes(65_536),
    "NULs": bytes(100),
    "one NUL": bytes(1),
}


@pytest.mark.parametrize("label", [NO_LABEL, HTML], ids=["without label", "as HTML"])
@pytest.mark.parametrize("body", NO_PAGES.values(), ids=NO_PAGES)
def test_no_label_makes_a_page_of_something_else(body: bytes, label: Label) -> None:
    assert refusal_by_bytes(body, label) is not None


PAGES = {
    "HTML": PAGE,
    "words": b"just words",
    "JSON": b'{"a": 1}',
    "a word that begins as a bitmap does": b"BMW",
    "PDF's mark further down": b"x" * 800 + b"%PDF-1.7",
    "a NUL between letters": PAGE[:20] + b"\0" + PAGE[20:],
    "UTF-8": "Zürich, 東京".encode() * 50,
    "windows-1251": "Москва".encode("cp1251") * 50,
    "Shift_JIS": "東京".encode("shift_jis") * 50,
    "ISO-2022-JP": "東京".encode("iso2022_jp") * 50,
    "UTF-16 with its BOM": "東京".encode("utf-16"),
    "UTF-16 without": "hello".encode("utf-16-le"),
    "noise behind the first bytes": b"x" * FIRST_BYTES + bytes(5000),
    "nothing": b"",
}


@pytest.mark.parametrize("label", [NO_LABEL, HTML], ids=["without label", "as HTML"])
@pytest.mark.parametrize("body", PAGES.values(), ids=PAGES)
def test_text_is_a_page_in_any_charset(body: bytes, label: Label) -> None:
    assert refusal_by_bytes(body, label) is None


@pytest.mark.parametrize(
    ("body", "label", "refused"),
    [
        pytest.param(b"<?xml version='1.0'?><rss/>", NO_LABEL, True, id="a feed"),
        pytest.param(b" <?xml version='1.0'?><HTML>", NO_LABEL, False, id="XHTML"),
        pytest.param(b"<?xml version='1.0'?><rss/>", HTML, False, id="a feed that says it is HTML"),
    ],
)
def test_xml_without_label_is_a_page_if_it_is_html(body: bytes, label: Label, refused: bool) -> None:
    assert (refusal_by_bytes(body, label) is not None) is refused


@given(st.text(st.characters(min_codepoint=0x20, max_codepoint=0x7E), min_size=2))
def test_ascii_in_two_bytes_is_seen_as_that_and_in_one_is_not(text: str) -> None:
    assert in_two_bytes(text.encode("utf-16-le"))
    assert in_two_bytes(text.encode("utf-16-be"))
    assert not in_two_bytes(text.encode())


@given(st.binary(max_size=2000))
def test_any_bytes_get_an_answer(body: bytes) -> None:
    assert refusal_by_bytes(body, NO_LABEL) == refusal_by_bytes(body[:FIRST_BYTES], NO_LABEL)
