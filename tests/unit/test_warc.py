"""The record format, judged by others: warcio and FastWARC read what we write, and `gzip` unpacks it."""

import gzip
import hashlib
import io
import random
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st
from isal import isal_zlib
from warcio.archiveiterator import ArchiveIterator as WarcioArchive

from adapters import warc
from gossamer.errors import BlobsUnavailable
from gossamer.ports.blobs import TRANSFER_HEADERS, BlobRef, Capture
from gossamer.testing.blobs import CAPTURES, capture

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)  # FastWARC warns of itself when it is imported
    from fastwarc.warc import ArchiveIterator as FastArchive

FORGED_RECORD = "\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: https://forged.test/\r\nContent-Length: 0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Seen:
    """What a reader of WARC files makes of one record."""

    kind: str
    url: str
    date: datetime
    address: str | None
    status: int
    headers: list[tuple[str, str]]
    body: bytes
    digest_is_right: bool
    record_id: str


def by_warcio(segment: bytes) -> list[Seen]:
    seen = []
    for record in WarcioArchive(io.BytesIO(segment), check_digests=True):
        body = record.raw_stream.read()
        seen.append(
            Seen(
                kind=record.rec_type,
                url=record.rec_headers["WARC-Target-URI"],
                date=datetime.fromisoformat(record.rec_headers["WARC-Date"]),
                address=record.rec_headers["WARC-IP-Address"],
                status=int(record.http_headers.get_statuscode()),
                headers=record.http_headers.headers,
                body=body,
                digest_is_right=record.digest_checker.passed is True,
                record_id=record.rec_headers["WARC-Record-ID"],
            )
        )
    return seen


def by_fastwarc(segment: bytes) -> list[Seen]:
    seen = []
    for record in FastArchive(io.BytesIO(segment), parse_http=True, auto_decode="none"):
        digest_is_right = record.verify_payload_digest()
        seen.append(
            Seen(
                kind=str(record.record_type),
                url=record.headers["WARC-Target-URI"],
                date=record.record_date,
                address=record.headers.get("WARC-IP-Address"),
                status=record.http_headers.status_code or 0,
                headers=list(record.http_headers.to_tuples()),
                body=record.reader.read(),
                digest_is_right=digest_is_right,
                record_id=record.headers["WARC-Record-ID"],
            )
        )
    return seen


Reader = Callable[[bytes], list[Seen]]
READERS = pytest.mark.parametrize("read_by", [pytest.param(by_warcio, id="warcio"), pytest.param(by_fastwarc, id="fastwarc")])


def members(segment: bytes, refs: Sequence[BlobRef]) -> list[bytes]:
    return [segment[ref.offset : ref.offset + ref.length] for ref in refs]


def write_one(one: Capture) -> tuple[bytes, bytes]:
    segment, (ref,) = warc.write("name", [one])
    return segment, ref.sha256


class TestOtherReaders:
    @READERS
    def test_they_read_what_was_written(self, read_by: Reader) -> None:
        captures = [
            capture(1),
            replace(capture(2), status=404, body=b"", address=None),
            replace(capture(3), status=299, address="2001:db8::1", headers=()),  # a status without a name
            replace(capture(4), body=b"\r\n\r\nWARC/1.1\r\n\r\n0\r\n\r\n" * 3),
            replace(capture(5), body=gzip.compress(b"<p>five</p>"), headers=(("Content-Encoding", "gzip"),)),
            replace(capture(6), body=bytes(range(256)) * 2_000),
        ]

        segment, _ = warc.write("name", captures)

        seen = read_by(segment)
        assert [one.kind for one in seen] == ["response"] * len(captures)
        assert [(one.url, one.status, one.body) for one in seen] == [(one.url, one.status, one.body) for one in captures]
        assert [one.address for one in seen] == [one.address for one in captures]
        assert all(one.digest_is_right for one in seen)
        assert len({one.record_id for one in seen}) == len(captures)
        assert {one.date for one in seen} == {datetime(2023, 11, 14, 22, 13, 20, 123456, tzinfo=UTC)}
        for one, its in zip(seen, captures, strict=True):
            assert one.headers == [*its.headers, ("Content-Length", str(len(its.body)))]

    @READERS
    @given(captures=st.lists(CAPTURES, min_size=1, max_size=4))
    def test_they_read_any_captures(self, read_by: Reader, captures: list[Capture]) -> None:
        segment, _ = warc.write("name", captures)

        seen = read_by(segment)

        assert [(one.url, one.status, one.body) for one in seen] == [(one.url, one.status, one.body) for one in captures]
        assert [len(one.headers) for one in seen] == [len(one.headers) + 1 for one in captures]
        assert all(one.digest_is_right for one in seen)

    @READERS
    def test_a_wrong_digest_would_be_noticed(self, read_by: Reader) -> None:
        """So that the two tests above mean something."""
        segment, _ = write_one(capture())
        record = gzip.decompress(segment).replace(b"<p>page", b"<p>PAGE")

        (seen,) = read_by(gzip.compress(record))

        assert not seen.digest_is_right

    @given(captures=st.lists(CAPTURES, min_size=1, max_size=4))
    def test_the_standard_library_unpacks_the_same_bytes(self, captures: list[Capture]) -> None:
        segment, refs = warc.write("name", captures)

        records = [gzip.decompress(member) for member in members(segment, refs)]

        assert gzip.decompress(segment) == b"".join(records)
        assert [record[: len(b"WARC/1.1\r\n")] for record in records] == [b"WARC/1.1\r\n"] * len(captures)
        # And ours unpacks what the standard library packs.
        for record, one, ref in zip(records, captures, refs, strict=True):
            assert warc.read(gzip.compress(record), ref.sha256) == one


class TestHostileHeaders:
    @READERS
    @pytest.mark.parametrize(
        ("name", "value"),
        [
            pytest.param("X", "a\r\nForged: yes", id="CR LF in the value"),
            pytest.param("X", "a\nForged: yes", id="LF in the value"),
            pytest.param("X", "a\rForged: yes", id="CR in the value"),
            pytest.param("X\r\nForged", "yes", id="CR LF in the name"),
            pytest.param("X: a\nForged", "yes", id="LF in the name"),
            pytest.param("X", "a\x00\x0b\x0c\x1c\x1d\x1e\x7fForged: yes", id="control characters"),
            pytest.param("X", "a\u2028Forged: yes\u2029", id="Unicode's line ends"),
            pytest.param("X", FORGED_RECORD, id="a record in the value"),
            pytest.param(FORGED_RECORD, "x", id="a record in the name"),
            pytest.param("", "no name", id="no name"),
            pytest.param(" X", "continued", id="a name that looks like a continuation"),
            pytest.param("X y", "z", id="a blank in the name"),
            pytest.param("X:", "z", id="a colon in the name"),
            pytest.param("Transfer-Encoding ", "chunked", id="a transfer header in disguise"),
            pytest.param("X", "  kept  ", id="blanks around the value"),
            pytest.param("X", "\udcff lone surrogate", id="a lone surrogate"),
            pytest.param("Ünïcode", "日本", id="beyond ASCII"),
            pytest.param("X-Crawler-Escaped", "X%0D%0AForged=yes", id="what we escape with"),
        ],
    )
    def test_they_become_one_header_and_come_back_as_they_were(self, read_by: Reader, name: str, value: str) -> None:
        one = replace(capture(), headers=(("Before", "1"), (name, value), ("After", "2")))

        segment, sha256 = write_one(one)

        assert warc.read(segment, sha256) == one
        (seen,) = read_by(segment)
        assert [header for header, _ in seen.headers] == ["Before", "X-Crawler-Escaped", "After", "Content-Length"]
        assert seen.url == one.url
        assert seen.body == one.body

    @READERS
    def test_bytes_beyond_ascii_are_written_as_the_site_sent_them(self, read_by: Reader) -> None:
        sent = "café – naïve".encode()
        one = replace(capture(), headers=(("X", sent.decode("latin-1")),))

        segment, sha256 = write_one(one)

        assert b"X: " + sent + b"\r\n" in gzip.decompress(segment)
        assert warc.read(segment, sha256) == one
        assert len(read_by(segment)) == 1

    @READERS
    @pytest.mark.parametrize("name", sorted(TRANSFER_HEADERS))
    def test_what_describes_the_transfer_can_not_mislead_a_reader(self, read_by: Reader, name: str) -> None:
        one = replace(capture(), headers=((name.title(), "chunked"), (name.upper(), "1\r\nX: y"), ("Kept", "1")))

        segment, _ = write_one(one)

        (seen,) = read_by(segment)
        assert seen.headers == [("Kept", "1"), ("Content-Length", str(len(one.body)))]
        assert seen.body == one.body

    @READERS
    @pytest.mark.parametrize("count", [1, 300])
    def test_more_headers_than_readers_bear_are_cut_and_the_record_says_so(self, read_by: Reader, count: int) -> None:
        room = warc.HEAD_BYTES_MAX // count
        fitting = tuple(("X", "a" * (room - len("X: \r\n"))) for _ in range(count))
        assert sum(len(f"{name}: {value}\r\n") for name, value in fitting) <= warc.HEAD_BYTES_MAX
        whole, cut = replace(capture(), headers=fitting), replace(capture(), headers=(*fitting, ("Y", "b" * 400), ("Z", "")))

        segment, (first, second) = warc.write("name", [whole, cut])

        one, two = members(segment, [first, second])
        assert warc.read(one, first.sha256) == whole
        assert warc.read(two, second.sha256) == whole  # a later, shorter header does not slip in: what is there is a beginning
        assert b"WARC-Truncated: length\r\n" not in gzip.decompress(one)
        assert b"WARC-Truncated: length\r\n" in gzip.decompress(two)
        assert [len(seen.headers) for seen in read_by(segment)] == [count + 1, count + 1]

    @READERS
    @pytest.mark.parametrize("text", [f"https://example.test/{FORGED_RECORD}", "https://example.test/é \udcff\x00"])
    def test_a_url_that_nobody_normalised_forges_nothing(self, read_by: Reader, text: str) -> None:
        one = replace(capture(), url=text, address=text)

        segment, sha256 = write_one(one)

        (seen,) = read_by(segment)
        assert seen.body == one.body
        assert seen.url == seen.address
        assert seen.url.isascii()
        assert warc.read(segment, sha256).url == seen.url


class TestReading:
    @given(captures=st.lists(CAPTURES, max_size=4))
    def test_what_was_written_is_what_is_read(self, captures: list[Capture]) -> None:
        segment, refs = warc.write("name", captures)

        assert sum(ref.length for ref in refs) == len(segment)
        assert [ref.sha256 for ref in refs] == [hashlib.sha256(one.body).digest() for one in captures]
        assert [warc.read(m, ref.sha256) for m, ref in zip(members(segment, refs), refs, strict=True)] == captures

    def test_a_member_that_is_torn_anywhere_is_noticed(self) -> None:
        segment, sha256 = write_one(capture())

        for length in range(len(segment)):
            with pytest.raises(BlobsUnavailable):
                warc.read(segment[:length], sha256)

    def test_a_bit_that_fell_over_is_noticed_or_means_nothing(self) -> None:
        segment, sha256 = write_one(capture())
        # gzip's flags, time and system; and the last byte of deflate's, filled up with any bits.
        may_mean_nothing = {*range(3, 10), len(segment) - 9}

        for at in range(8 * len(segment)):
            broken = bytearray(segment)
            broken[at // 8] ^= 1 << at % 8
            try:
                assert warc.read(bytes(broken), sha256) == capture()
                assert at // 8 in may_mean_nothing
            except BlobsUnavailable:
                continue

    @pytest.mark.parametrize("after", [b"x", "a second member"])
    def test_more_than_one_member_is_refused(self, after: bytes | str) -> None:
        segment, sha256 = write_one(capture())

        with pytest.raises(BlobsUnavailable):
            warc.read(segment + (segment if isinstance(after, str) else after), sha256)

    def test_another_body_is_refused(self) -> None:
        segment, _ = write_one(capture(1))
        _, other = write_one(capture(2))

        with pytest.raises(BlobsUnavailable, match="another body"):
            warc.read(segment, other)

    @pytest.mark.parametrize("says", [0, 1_000])
    def test_a_member_never_decodes_to_more_than_it_says(self, monkeypatch: pytest.MonkeyPatch, says: int) -> None:
        bomb = bytearray(gzip.compress(b"\0" * 50_000_000))
        bomb[-4:] = says.to_bytes(4, "little")
        allowed: list[int] = []
        inflate = isal_zlib.decompressobj

        class Watched:
            def __init__(self, wbits: int) -> None:
                self._inflater = inflate(wbits=wbits)

            def decompress(self, data: bytes, most: int) -> bytes:
                allowed.append(most)
                out = self._inflater.decompress(data, most)
                assert len(out) <= most
                return out

            def __getattr__(self, name: str) -> object:
                return getattr(self._inflater, name)

        monkeypatch.setattr(isal_zlib, "decompressobj", Watched)
        with pytest.raises(BlobsUnavailable):
            warc.read(bytes(bomb), b"")

        assert allowed == ([says] if says else [])  # to isal, 0 would be no limit at all

    @pytest.mark.parametrize(
        "record",
        [
            pytest.param(b"", id="nothing"),
            pytest.param(b"WARC/1.1\r\nContent-Length: 5\r\n\r\nhello\r\n\r\n", id="no response"),
            pytest.param(b"rubbish", id="rubbish"),
            pytest.param(b"\xff\xfe: \r\n\r\n", id="not text"),
            pytest.param(b"WARC/1.1\r\nContent-Length: -9\r\n\r\n\r\n\r\n", id="a negative length"),
            pytest.param(b"WARC/1.1\r\nContent-Length: " + b"9" * 5_000 + b"\r\n\r\n", id="a length of many digits"),
        ],
    )
    def test_what_is_no_record_of_ours_is_refused(self, record: bytes) -> None:
        with pytest.raises(BlobsUnavailable):
            warc.read(gzip.compress(record), hashlib.sha256(b"").digest())

    @pytest.mark.parametrize("end", [b"", b"\r\n\r\nmore"])
    def test_a_record_that_ends_too_early_or_too_late_is_refused(self, end: bytes) -> None:
        segment, sha256 = write_one(capture())
        record = gzip.decompress(segment).removesuffix(b"\r\n\r\n")

        with pytest.raises(BlobsUnavailable):
            warc.read(gzip.compress(record + end), sha256)

    @given(st.floats(0, 4_000_000_000))
    def test_times_are_kept_to_the_microsecond(self, fetched_at: float) -> None:
        once = warc.read(*write_one(replace(capture(), fetched_at=fetched_at)))
        twice = warc.read(*write_one(once))

        assert abs(once.fetched_at - fetched_at) <= 0.000_001
        assert twice.fetched_at == once.fetched_at


@pytest.mark.parametrize(("coding", "is_smaller"), [("identity", True), ("", True), ("gzip", False)])
def test_what_came_plain_is_compressed_whatever_it_says(coding: str, is_smaller: bool) -> None:
    page = replace(capture(1), body=b"<p>a page " * 1_000, headers=(("Content-Encoding", coding),))

    segment, _ = warc.write("name", [page])

    assert (len(segment) < len(page.body)) == is_smaller


def test_what_came_compressed_stands_there_as_it_came_whatever_its_length() -> None:
    """Also where the record fills the blocks that it is stored in to the last byte: one of these does."""
    encoded = replace(capture(1), headers=(("Content-Encoding", "gzip"),))
    records = []
    for length in range(0xFFFF - 1_000, 0xFFFF + 2):
        page = replace(encoded, body=random.Random(length).randbytes(length))
        segment, sha256 = write_one(page)
        records.append(len(record := gzip.decompress(segment)))

        assert record.endswith(b"\r\n\r\n" + page.body + b"\r\n\r\n")
        assert page.body in segment or len(record) > 0xFFFF
        assert warc.read(segment, sha256).body == page.body

    assert {0xFFFF, 0x1_0000} <= set(records)


def test_what_came_compressed_and_is_large_is_read_by_others() -> None:
    pages = [replace(capture(1), headers=(("Content-Encoding", "gzip"),), body=bytes([each]) * 300_000) for each in range(3)]

    segment, _ = warc.write("name", pages)

    for read in (by_warcio, by_fastwarc):
        assert [(seen.body, seen.digest_is_right) for seen in read(segment)] == [(page.body, True) for page in pages]


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param((("A", "b\r\nC: d"),), id="a line in a value"),
        pytest.param((("A", "b\r\n\r\n"), ("C", "d")), id="the head's end in a value"),
        pytest.param((("A", "b\n"), ("C", "d")), id="the end of a line"),
        pytest.param((("A", " b"), ("C", "d\t")), id="blanks around"),
        pytest.param((("A", "\xa0b"), ("A", "\x85")), id="blanks to some"),
        pytest.param((("", "b"), ("A b", "c"), ("A", "")), id="names that are none, and no value"),
        pytest.param(((warc.ESCAPED, "A=b"), ("X", warc.ESCAPED)), id="the name of ours"),
        pytest.param((("A: b", "c"), ("D", "e: f: g")), id="a value in a name"),
        pytest.param((("Transfer-Encoding: chunked", "x"),), id="another header in a name"),
        pytest.param(tuple((f"X-{number}", "y" * 500) for number in range(80)), id="more than find room"),
    ],
)
def test_no_header_can_be_taken_for_another(headers: tuple[tuple[str, str], ...]) -> None:
    segment, (ref,) = warc.write("name", [replace(capture(1), headers=headers)])

    back = warc.read(segment, ref.sha256).headers
    assert back == headers[: len(back)]
    assert len(back) == len(headers) or sum(len(name) + len(value) for name, value in headers) > warc.HEAD_BYTES_MAX
