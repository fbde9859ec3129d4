"""The contract of the port `Blobs`, for any adapter.

Provide `open_blobs`: an async callable that returns a store of the crawl it is given, always in the same place, which is empty
at first; the fixture closes them in the end. Called twice for one crawl it stands for a second process, or a restart.
Must not know: any engine, or how a segment's name is made.
"""

import asyncio
import hashlib
import zlib
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from gossamer.clock import SystemClock
from gossamer.errors import BlobsUnavailable
from gossamer.ids import CrawlId
from gossamer.ports.blobs import TRANSFER_HEADERS, BlobRef, Blobs, Capture

OpenBlobs = Callable[[CrawlId], Awaitable[Blobs]]

OURS: Final = CrawlId("crawl-1")
NEIGHBOUR: Final = CrawlId("crawl-2")
STRANGER: Final = CrawlId("Crawl-2026-01-31-abc")

# Names and values as a hostile site sends them: rubbish of all planes, and text that is rich in what a format is made of.
_rubbish = st.text(st.characters(), max_size=30)
_pointed = st.text("\r\n\0\t :=%;<>aZ\x7f\x85\xa0é€", max_size=30)
_headers = st.tuples(
    st.sampled_from(["Content-Type", "Set-Cookie", "Content-Encoding", "WARC-Type", "X-Crawler-Escaped"]) | _rubbish | _pointed,
    st.sampled_from(["text/html", "gzip", "a=b", "x\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\n"]) | _rubbish | _pointed,
).filter(lambda header: header[0].lower() not in TRANSFER_HEADERS)

#: Any response: its URL normalised, as all are by the time they are asked for, its body and headers as they please.
CAPTURES: Final = st.builds(
    Capture,
    url=st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=50).map("https://example.test/".__add__),
    fetched_at=st.integers(0, 4_000_000_000_000_000).map(lambda microseconds: microseconds / 1_000_000),
    status=st.integers(100, 999),
    headers=st.lists(_headers, max_size=6).map(tuple),
    body=st.binary(max_size=300) | st.sampled_from([b"\r\n\r\n", b"0\r\n\r\n", b"WARC/1.1\r\n", b"a" * 100_000]),
    address=st.none() | st.ip_addresses().map(str),
)


async def all_gone(_: CrawlId) -> bool:
    return True


async def none_gone(_: CrawlId) -> bool:
    return False


def capture(number: int = 0, *, body: bytes | None = None) -> Capture:
    return Capture(
        url=f"https://example.test/{number}",
        fetched_at=1_700_000_000.123456,
        status=200,
        headers=(("Content-Type", "text/html; charset=utf-8"), ("Set-Cookie", "a=1"), ("Set-Cookie", "b=2")),
        body=b"<p>page %d</p>" % number if body is None else body,
        address="192.0.2.1",
    )


async def put_one(blobs: Blobs, one: Capture) -> BlobRef:
    (ref,) = await blobs.put([one])
    return ref


def gunzip(data: bytes) -> bytes:
    """What a series of gzip members holds; fails if the last one is not whole."""
    whole = b""
    while data:
        inflater = zlib.decompressobj(wbits=31)
        whole += inflater.decompress(data)
        assert inflater.eof
        data = inflater.unused_data
    return whole


class BlobsContract:
    """Every promise of `Blobs`."""

    @pytest.fixture
    async def blobs(self, open_blobs: OpenBlobs) -> Blobs:
        return await open_blobs(OURS)

    # --- what was put is what is got

    @settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
    @given(captures=st.lists(CAPTURES, min_size=1, max_size=4))
    async def test_whatever_was_put_comes_back_unchanged(self, blobs: Blobs, captures: list[Capture]) -> None:
        refs = await blobs.put(captures)

        assert [await blobs.get(ref) for ref in refs] == captures

    async def test_what_describes_the_transfer_does_not_come_back(self, blobs: Blobs) -> None:
        stays = (("Content-Type", "text/html"), ("Content-Encoding", "br"), ("content-encodinG", "gzip"))
        goes = (("Transfer-Encoding", "chunked"), ("connection", "close"), ("CONTENT-LENGTH", "7"), ("Keep-Alive", "5"))
        one = replace(capture(), headers=(*stays[:1], *goes, *stays[1:]))

        assert await blobs.get(await put_one(blobs, one)) == replace(one, headers=stays)

    async def test_the_time_is_kept_to_the_microsecond(self, blobs: Blobs) -> None:
        exact_s = 1_700_000_000.1234564

        back = await blobs.get(await put_one(blobs, replace(capture(), fetched_at=exact_s)))

        assert back is not None
        assert back.fetched_at == 1_700_000_000.123456

    @pytest.mark.parametrize("size", [0, 1, 5_000_000])
    async def test_a_body_may_be_empty_or_large(self, blobs: Blobs, size: int) -> None:
        one = capture(body=hashlib.shake_128(b"any bytes").digest(size))

        assert await blobs.get(await put_one(blobs, one)) == one

    async def test_a_store_that_is_opened_later_has_what_was_put(self, blobs: Blobs, open_blobs: OpenBlobs) -> None:
        ref = await put_one(blobs, capture())
        await blobs.close()

        later = await open_blobs(OURS)

        assert await later.get(ref) == capture()
        assert await later.segments() == [ref.segment]

    # --- segments

    async def test_a_group_becomes_one_segment_with_a_reference_for_each_in_order(self, blobs: Blobs) -> None:
        captures = [capture(number) for number in range(5)]

        refs = await blobs.put(captures)

        assert [await blobs.get(ref) for ref in refs] == captures
        assert [ref.sha256 for ref in refs] == [hashlib.sha256(one.body).digest() for one in captures]
        assert await blobs.segments() == [refs[0].segment]
        assert {ref.segment for ref in refs} == {refs[0].segment}

    async def test_a_segment_is_its_members_and_nothing_else(self, blobs: Blobs) -> None:
        captures = [capture(number) for number in range(3)]
        refs = await blobs.put(captures)

        data = await blobs.read(refs[0].segment)

        assert data is not None
        assert [ref.offset for ref in refs] == [0, refs[0].length, refs[0].length + refs[1].length]
        assert sum(ref.length for ref in refs) == len(data)
        for ref, one in zip(refs, captures, strict=True):
            record = gunzip(data[ref.offset : ref.offset + ref.length])
            assert record.startswith(b"WARC/1.1\r\n")
            assert record.endswith(b"\r\n\r\n" + one.body + b"\r\n\r\n")

    async def test_an_empty_group_makes_no_segment(self, blobs: Blobs) -> None:
        assert await blobs.put([]) == []
        assert await blobs.segments() == []

    async def test_the_same_captures_put_again_make_a_second_segment(self, blobs: Blobs) -> None:
        first = await put_one(blobs, capture())
        second = await put_one(blobs, capture())

        assert first.segment != second.segment
        assert await blobs.get(first) == await blobs.get(second) == capture()

    async def test_segments_are_named_oldest_first_also_after_a_restart(self, blobs: Blobs, open_blobs: OpenBlobs) -> None:
        put = [(await put_one(blobs, capture(number))).segment for number in range(12)]
        restarted = await open_blobs(OURS)
        put += [(await put_one(restarted, capture(number))).segment for number in range(12)]

        assert await blobs.segments() == await restarted.segments() == put

    async def test_groups_may_be_put_at_once(self, blobs: Blobs, open_blobs: OpenBlobs) -> None:
        captures = [capture(number) for number in range(20)]
        stores = [blobs, await open_blobs(OURS)]

        async with asyncio.TaskGroup() as tasks:
            puts = [tasks.create_task(put_one(stores[at % 2], one)) for at, one in enumerate(captures)]

        refs = [put.result() for put in puts]
        assert [await blobs.get(ref) for ref in refs] == captures
        assert sorted(await blobs.segments()) == sorted({ref.segment for ref in refs})

    async def test_a_put_that_is_cut_off_leaves_nothing_half(self, blobs: Blobs) -> None:
        one = capture(body=hashlib.shake_128(b"any bytes").digest(2_000_000))
        for turns in range(6):
            putting = asyncio.create_task(put_one(blobs, one))
            for _ in range(turns):
                await SystemClock().sleep(0)
            putting.cancel()
            await asyncio.gather(putting, return_exceptions=True)

        await put_one(blobs, one)
        for segment in await blobs.segments():
            data = await blobs.read(segment)
            assert data is not None
            assert gunzip(data).endswith(one.body + b"\r\n\r\n")

    # --- what is not there, or not what it should be

    async def test_an_empty_store_has_nothing(self, blobs: Blobs) -> None:
        assert await blobs.segments() == []
        assert await blobs.sweep(all_gone) == []

    async def test_another_body_than_the_one_put_is_not_handed_out(self, blobs: Blobs) -> None:
        mine, other = await blobs.put([capture(1), capture(2)])

        for wrong in (
            replace(mine, sha256=other.sha256),
            replace(mine, offset=other.offset, length=other.length),
            replace(mine, length=mine.length - 1),
            replace(mine, length=mine.length + 1),
            replace(mine, offset=mine.offset + 1),
            replace(mine, offset=mine.offset + 1_000_000),
        ):
            with pytest.raises(BlobsUnavailable):
                await blobs.get(wrong)

    async def test_a_store_has_the_segments_of_its_own_crawl_alone(self, blobs: Blobs, open_blobs: OpenBlobs) -> None:
        neighbour = await open_blobs(NEIGHBOUR)
        mine = await put_one(blobs, capture(1))
        theirs = await put_one(neighbour, capture(2))

        assert await blobs.segments() == [mine.segment]
        assert await blobs.get(theirs) is None
        assert await blobs.read(theirs.segment) is None

    # --- copying

    async def test_copies_are_the_records_as_they_stand_in_the_order_they_are_asked_for(self, blobs: Blobs) -> None:
        captures = [capture(number) for number in range(5)]
        refs = [*await blobs.put(captures[:3]), *await blobs.put(captures[3:])]
        asked = [4, 0, 3, 2, 0]

        copies = await blobs.copies([refs[at] for at in asked])

        assert [copy.capture for copy in copies if copy is not None] == [captures[at] for at in asked]
        for copy, at in zip(copies, asked, strict=True):
            data = await blobs.read(refs[at].segment)
            assert copy is not None
            assert data is not None
            assert copy.member == data[refs[at].offset : refs[at].offset + refs[at].length]
        assert await blobs.copies([]) == []

    async def test_what_is_gone_or_damaged_costs_the_other_copies_nothing(self, blobs: Blobs, open_blobs: OpenBlobs) -> None:
        mine, other = await blobs.put([capture(1), capture(2)])
        theirs = await put_one(await open_blobs(NEIGHBOUR), capture(3))
        wrong = [
            theirs,
            replace(mine, segment="../../etc/passwd"),
            replace(mine, sha256=other.sha256),
            replace(mine, length=mine.length - 1),
            replace(mine, offset=mine.offset + 1_000_000),
        ]

        copies = await blobs.copies([mine, *wrong, other])

        assert [copy and copy.capture for copy in copies] == [capture(1), *[None] * len(wrong), capture(2)]

    # --- sweeping

    async def test_sweeping_deletes_all_of_the_crawls_that_are_gone_and_names_them(
        self, blobs: Blobs, open_blobs: OpenBlobs
    ) -> None:
        neighbour, stranger = await open_blobs(NEIGHBOUR), await open_blobs(STRANGER)
        mine, theirs = await put_one(blobs, capture(1)), await put_one(neighbour, capture(2))
        await put_one(neighbour, capture(3))
        strangers = await put_one(stranger, capture(4))
        asked: list[CrawlId] = []

        async def gone(crawl: CrawlId) -> bool:
            asked.append(crawl)
            return crawl != OURS

        swept = await blobs.sweep(gone)

        assert sorted(asked) == sorted([OURS, NEIGHBOUR, STRANGER])
        assert sorted(swept) == sorted([NEIGHBOUR, STRANGER])
        assert await neighbour.segments() == []
        assert await neighbour.get(theirs) is None
        assert await stranger.read(strangers.segment) is None
        assert await blobs.get(mine) == capture(1)

    async def test_what_was_swept_is_not_swept_again_and_may_come_back(self, blobs: Blobs, open_blobs: OpenBlobs) -> None:
        neighbour = await open_blobs(NEIGHBOUR)
        await put_one(neighbour, capture(1))

        assert await blobs.sweep(all_gone) == [NEIGHBOUR]
        assert await blobs.sweep(all_gone) == []

        again = await put_one(neighbour, capture(2))
        assert await neighbour.get(again) == capture(2)
        assert await neighbour.segments() == [again.segment]
