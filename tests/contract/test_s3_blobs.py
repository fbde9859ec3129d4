"""What an S3 store must do besides its contract: away, refused, shared with others, and swept with care."""

import asyncio
import logging
import secrets
import time
from collections.abc import AsyncIterator, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest

from adapters.distributed import blobs as blobs_module
from adapters.distributed.blobs import S3Blobs
from adapters.distributed.s3_place import Place
from gossamer.clock import SystemClock
from gossamer.errors import BlobsUnavailable, SettingsError
from gossamer.ids import CrawlId
from gossamer.ports.blobs import BlobRef, Capture
from gossamer.testing.blobs import NEIGHBOUR, OURS, all_gone, capture, gunzip, put_one
from tests.servers import S3, S3Credentials, s3_client, s3_credentials, s3_endpoint
from tests.servers.relay import Relay

HOUR_S = 3600.0
DAY_S = 24 * HOUR_S


@dataclass(frozen=True, slots=True)
class Ours:
    """A bucket of this test's own on the shared server, which is not there at first."""

    url: str
    bucket: str
    client: Any

    def keys(self) -> list[str]:
        return [found["Key"] for found in self.client.list_objects_v2(Bucket=self.bucket).get("Contents", ())]

    def put(self, key: str) -> None:
        self.client.put_object(Bucket=self.bucket, Key=key, Body=b"")

    def rules(self) -> list[dict[str, Any]]:
        rules: list[dict[str, Any]] = self.client.get_bucket_lifecycle_configuration(Bucket=self.bucket)["Rules"]
        return rules


@pytest.fixture
def ours() -> Iterator[Ours]:
    bucket, client = f"test-{secrets.token_hex(8)}", s3_client(s3_endpoint(), s3_credentials())
    yield Ours(f"{s3_endpoint()}/{bucket}", bucket, client)
    client.close()


def xml(code: str, message: str) -> bytes:
    return f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()


async def once_found(blobs: S3Blobs, ref: BlobRef) -> Capture:
    """What is there, however long a server that has just started needs to find its volumes again (a minute at most)."""
    deadline_s = time.monotonic() + 60
    while True:
        try:
            found = await blobs.get(ref)
            assert found is not None
            return found
        except BlobsUnavailable:
            if time.monotonic() > deadline_s:
                raise
            await asyncio.sleep(0.2)


@asynccontextmanager
async def answering(status: int, body: bytes, headers: bytes = b"") -> AsyncIterator[str]:
    """A server that says the same to everybody."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        head = b"HTTP/1.1 %d \r\nContent-Length: %d\r\nConnection: close\r\n" % (status, len(body))
        writer.write(head + headers + b"\r\n" + body)
        writer.close()

    async with await asyncio.start_server(serve, "127.0.0.1", 0) as server:
        host, port = server.sockets[0].getsockname()
        yield f"http://{host}:{port}"


class Opener:
    def __init__(self) -> None:
        self.opened: list[S3Blobs] = []

    def __call__(self, url: str, crawl: CrawlId = OURS, *, ttl_s: float = 0.0, credentials: S3Credentials | None = None) -> S3Blobs:
        keys = credentials or s3_credentials()
        access_key, secret_key = keys.access_key, keys.secret_key
        self.opened.append(S3Blobs(url, crawl, clock=SystemClock(), ttl_s=ttl_s, access_key=access_key, secret_key=secret_key))
        return self.opened[-1]


@pytest.fixture
async def opened() -> AsyncIterator[Opener]:
    opener = Opener()
    yield opener
    for blobs in opener.opened:
        await blobs.close()


class TestBucket:
    async def test_it_is_made_when_it_is_missing_by_several_at_once(self, ours: Ours, opened: Opener) -> None:
        stores = [opened(ours.url) for _ in range(4)]

        refs = await asyncio.gather(*(put_one(store, capture(number)) for number, store in enumerate(stores)))

        assert [await stores[0].get(ref) for ref in refs] == [capture(number) for number in range(4)]

    async def test_it_is_made_by_the_check_at_the_start(self, ours: Ours, opened: Opener) -> None:
        await opened(ours.url).check()

        ours.client.head_bucket(Bucket=ours.bucket)

    async def test_segments_lie_below_the_prefix_and_the_crawl(self, ours: Ours, opened: Opener) -> None:
        ref = await put_one(opened(f"{ours.url}/some/where"), capture())

        assert ours.keys() == [f"some/where/{OURS}/segments/{ref.segment}.warc.gz"]

    async def test_many_copies_are_one_request_a_segment(self, ours: Ours, opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
        blobs = opened(ours.url)
        refs = [ref for group in range(3) for ref in await blobs.put([capture(10 * group + number) for number in range(10)])]
        asked: list[str] = []
        get = blobs._bucket.get

        def counted(key: str) -> bytes | None:
            asked.append(key)
            return get(key)

        monkeypatch.setattr(blobs._bucket, "get", counted)

        assert None not in await blobs.copies(refs[::-1])

        assert sorted(asked) == sorted(ours.keys())
        assert len(asked) == 3

    async def test_one_that_is_lost_is_made_again(self, ours: Ours, opened: Opener) -> None:
        blobs = opened(ours.url)
        ref = await put_one(blobs, capture(1))
        ours.client.delete_object(Bucket=ours.bucket, Key=ours.keys()[0])
        ours.client.delete_bucket(Bucket=ours.bucket)

        with pytest.raises(BlobsUnavailable, match="the bucket is gone"):
            await blobs.put([capture(2)])

        assert await blobs.get(await put_one(blobs, capture(2))) == capture(2)
        assert await blobs.get(ref) is None


class TestNet:
    """The rule by which the server itself deletes what nobody sweeps."""

    @pytest.mark.parametrize(
        ("ttl_s", "days"),
        [
            pytest.param(0.0, 7, id="nothing"),
            pytest.param(HOUR_S, 8, id="an hour"),
            pytest.param(DAY_S, 8, id="a day"),
            pytest.param(DAY_S + 1, 9, id="over a day"),
        ],
    )
    async def test_it_outlasts_the_time_to_live(self, ours: Ours, opened: Opener, ttl_s: float, days: int) -> None:
        await opened(f"{ours.url}/pages", ttl_s=ttl_s).check()

        (rule,) = ours.rules()
        assert rule["Status"] == "Enabled"
        assert rule["Filter"] == {"Prefix": "pages/"}
        assert rule["Expiration"] == {"Days": days}

    async def test_a_longer_crawl_widens_it_and_a_shorter_one_does_not_narrow_it(self, ours: Ours, opened: Opener) -> None:
        for ttl_s in (HOUR_S, 7 * DAY_S, HOUR_S):
            await opened(ours.url, ttl_s=ttl_s).check()

        (rule,) = ours.rules()
        assert rule["Expiration"] == {"Days": 14}

    async def test_the_rules_of_somebodys_own_bucket_stay(self, ours: Ours, opened: Opener) -> None:
        ours.client.create_bucket(Bucket=ours.bucket)
        theirs = {"ID": "theirs", "Status": "Enabled", "Filter": {"Prefix": "logs/"}, "Expiration": {"Days": 5}}
        ours.client.put_bucket_lifecycle_configuration(Bucket=ours.bucket, LifecycleConfiguration={"Rules": [theirs]})

        await put_one(opened(ours.url, ttl_s=HOUR_S), capture())

        assert ours.rules() == [theirs]

    async def test_a_bucket_without_rules_that_was_there_gets_none(self, ours: Ours, opened: Opener) -> None:
        ours.client.create_bucket(Bucket=ours.bucket)

        await put_one(opened(ours.url), capture())

        with pytest.raises(ours.client.exceptions.ClientError, match="NoSuchLifecycleConfiguration"):
            ours.rules()


class TestAway:
    async def test_a_server_that_comes_back_is_used_again(self, opened: Opener) -> None:
        with S3() as server:
            blobs = opened(server.url, credentials=server.credentials)
            ref = await put_one(blobs, capture(1))

            server.kill()
            started_s = time.monotonic()
            with pytest.raises(BlobsUnavailable, match=r"S3 bucket .* can't be reached") as put_failed:
                await blobs.put([capture(2)])
            with pytest.raises(BlobsUnavailable):
                await blobs.get(ref)
            with pytest.raises(BlobsUnavailable):
                await blobs.check()
            assert time.monotonic() - started_s < 30
            assert "\n" not in str(put_failed.value)

            server.start()
            await blobs.check()
            assert await once_found(blobs, ref) == capture(1)
            assert await blobs.get(await put_one(blobs, capture(2))) == capture(2)

    async def test_a_server_that_is_away_at_the_start_is_used_when_it_comes(self, opened: Opener) -> None:
        with S3() as server:
            blobs = opened(server.url, credentials=server.credentials)
            server.kill()
            with pytest.raises(BlobsUnavailable):
                await blobs.put([capture()])

            server.start()

            assert await blobs.get(await put_one(blobs, capture())) == capture()

    async def test_a_server_that_is_silent_is_not_well(self, ours: Ours, opened: Opener, monkeypatch: pytest.MonkeyPatch) -> None:
        async with Relay(ours.url) as relay:
            blobs = opened(relay.url)
            await blobs.check()

            monkeypatch.setattr(blobs_module, "CHECK_S", 0.2)
            relay.is_silent = True

            with pytest.raises(BlobsUnavailable, match="does not answer within"):
                await blobs.check()

    async def test_a_put_whose_answer_was_lost_does_no_harm(self, ours: Ours, opened: Opener) -> None:
        async with Relay(ours.url) as relay:
            blobs = opened(relay.url)
            before = await put_one(blobs, capture(1))

            relay.loses_answers = True
            with pytest.raises(BlobsUnavailable):
                await blobs.put([capture(2)])
            relay.loses_answers = False
            again = await put_one(blobs, capture(2))

            # The first try is there as well, whole, however often it was sent; nobody refers to it.
            first, lost, last = await blobs.segments()
            assert [first, last] == [before.segment, again.segment]
            assert await blobs.get(again) == capture(2)
            data = await blobs.read(lost)
            assert data is not None
            assert gunzip(data).endswith(capture(2).body + b"\r\n\r\n")

    async def test_a_connection_that_ends_before_the_body_leaves_no_segment(self, ours: Ours, opened: Opener) -> None:
        async with Relay(ours.url) as relay:
            blobs = opened(relay.url)
            whole = await put_one(blobs, capture())

            relay.cuts_bodies = True
            with pytest.raises(BlobsUnavailable):
                await blobs.put([capture(body=secrets.token_bytes(100_000))])
            relay.cuts_bodies = False

            await SystemClock().sleep(0.3)  # the server may still be at it
            assert await blobs.segments() == [whole.segment]


class TestRefused:
    @pytest.mark.parametrize(
        ("answer", "told"),
        [
            pytest.param((503, xml("SlowDown", "Please reduce\nyour rate")), "SlowDown Please reduce your rate", id="busy"),
            pytest.param((500, xml("InternalError", "no free volumes left")), "no free volumes left", id="a full disk"),
            pytest.param((507, b"Insufficient Storage"), "507", id="a full disk, told otherwise"),
            pytest.param((403, xml("AccessDenied", "Access Denied")), "the keys don't allow", id="not allowed"),
            pytest.param((200, b"<html>Welcome!</html"), "could not look into it", id="no S3 server"),
        ],
    )
    async def test_what_the_server_says_is_told_in_one_line(self, opened: Opener, answer: tuple[int, bytes], told: str) -> None:
        async with answering(*answer) as url:
            with pytest.raises(BlobsUnavailable) as refused:
                await opened(f"{url}/pages").check()

        assert told in str(refused.value)
        assert str(refused.value).startswith("S3 bucket pages at http://127.0.0.1:")
        assert "\n" not in str(refused.value)

    @pytest.mark.parametrize(
        ("answer", "full"),
        [
            ((507, b"Insufficient Storage"), True),
            ((507, xml("XMinioStorageFull", "Storage backend has reached its minimum free drive threshold.")), True),
            ((403, xml("QuotaExceeded", "")), True),
            ((503, xml("SlowDown", "")), False),
        ],
    )
    async def test_a_server_that_is_full_is_told_from_one_that_is_busy(
        self, opened: Opener, answer: tuple[int, bytes], full: bool
    ) -> None:
        async with answering(*answer) as url:
            with pytest.raises(BlobsUnavailable) as refused:
                await opened(f"{url}/pages").check()

        assert refused.value.full is full

    @pytest.mark.parametrize("date", [b"Mon, 05 Jan 2026 10:00:00 -0000", b"yesterday"])
    async def test_a_server_whose_time_is_of_no_zone_tells_no_time(self, opened: Opener, date: bytes) -> None:
        object = b"<Contents><Key>a</Key><LastModified>2026-01-05T09:00:00.000Z</LastModified><Size>1</Size></Contents>"
        rule = b"<Rule><ID>a</ID></Rule>"  # it is asked for those as well
        listing = b"<ListBucketResult><IsTruncated>false</IsTruncated>" + object + rule + b"</ListBucketResult>"
        async with answering(200, listing, b"Date: " + date + b"\r\n") as url:
            assert await opened(f"{url}/pages").segments() == []


class TestKeys:
    async def test_a_wrong_secret_is_told_and_not_shown(self, ours: Ours, opened: Opener) -> None:
        blobs = opened(ours.url, credentials=S3Credentials(s3_credentials().access_key, "not-the-secret"))

        with pytest.raises(BlobsUnavailable, match=r"the keys are wrong \(SignatureDoesNotMatch\)") as refused:
            await blobs.check()

        text = str(refused.value)
        assert "AWS_SECRET_ACCESS_KEY" in text
        assert "\n" not in text
        assert "not-the-secret" not in text
        assert s3_credentials().access_key not in text

    async def test_an_unknown_key_is_told(self, ours: Ours, opened: Opener) -> None:
        blobs = opened(ours.url, credentials=S3Credentials("nobody", "nothing"))

        with pytest.raises(BlobsUnavailable, match=r"the keys are wrong \(InvalidAccessKeyId\)"):
            await blobs.put([capture()])

    async def test_half_a_pair_of_keys_is_told(self, ours: Ours, opened: Opener) -> None:
        blobs = S3Blobs(ours.url, OURS, clock=SystemClock(), ttl_s=0.0, access_key="key", secret_key=None)
        opened.opened.append(blobs)

        with pytest.raises(BlobsUnavailable, match="set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"):
            await blobs.check()

    async def test_nothing_secret_is_logged(self, ours: Ours, opened: Opener, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        await put_one(opened(ours.url), capture())

        assert s3_credentials().secret_key not in caplog.text


class TestReading:
    async def test_one_page_costs_its_own_bytes_alone(self, ours: Ours, opened: Opener) -> None:
        async with Relay(ours.url) as relay:
            blobs = opened(relay.url)
            refs = await blobs.put([capture(number, body=secrets.token_bytes(100_000)) for number in range(10)])
            before = relay.answered_bytes
            relay.requests.clear()

            assert await blobs.get(refs[4]) is not None

            assert refs[4].length <= relay.answered_bytes - before < refs[4].length + 2_000
            assert b"Range: bytes=%d-%d\r\n" % (refs[4].offset, refs[4].offset + refs[4].length - 1) in relay.requests


class TestSweeping:
    async def test_a_crawl_of_thousands_of_segments_is_swept_whole(self, ours: Ours, opened: Opener) -> None:
        blobs = opened(ours.url)
        await put_one(blobs, capture())
        names = [f"{NEIGHBOUR}/segments/{number:016d}-00000000.warc.gz" for number in range(2_001)]
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(ours.put, names))

        assert await blobs.sweep(only(NEIGHBOUR)) == [NEIGHBOUR]

        assert await opened(ours.url, NEIGHBOUR).segments() == []
        assert len(await blobs.segments()) == 1

    async def test_what_was_written_within_the_time_to_live_stays(self, ours: Ours, opened: Opener) -> None:
        ref = await put_one(opened(ours.url, NEIGHBOUR), capture())

        assert await opened(ours.url, ttl_s=HOUR_S).sweep(all_gone) == []
        assert await opened(ours.url, NEIGHBOUR).get(ref) == capture()

        await SystemClock().sleep(3.1)  # there is no moving the server's clock
        assert await opened(ours.url, ttl_s=1.0).sweep(all_gone) == [NEIGHBOUR]

    async def test_what_others_keep_in_the_bucket_stays(self, ours: Ours, opened: Opener) -> None:
        blobs = opened(ours.url)
        await put_one(blobs, capture())
        theirs = ["photos/2026/cat.jpg", "photos/segments/cat.jpg", "segments/x.warc.gz", f"{OURS}/notes.txt", "readme"]
        for key in theirs:
            ours.put(key)

        assert await blobs.sweep(all_gone) == [OURS]

        assert ours.keys() == sorted(theirs)

    async def test_another_prefix_is_not_looked_into(self, ours: Ours, opened: Opener) -> None:
        one, other = opened(f"{ours.url}/one"), opened(f"{ours.url}/one-more")
        for store in (one, other):
            await put_one(store, capture())

        assert await one.sweep(all_gone) == [OURS]
        assert len(await other.segments()) == 1

    async def test_a_server_that_deletes_one_by_one_only_is_swept_as_well(
        self, ours: Ours, opened: Opener, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        blobs = opened(ours.url)
        await blobs.check()
        client = blobs._bucket._client

        def refuse(**_: Any) -> None:
            answer = {"Error": {"Code": "MissingContentMD5"}, "ResponseMetadata": {"HTTPStatusCode": 400}}
            raise client.exceptions.ClientError(answer, "DeleteObjects")

        monkeypatch.setattr(client, "delete_objects", refuse)
        for number in range(3):
            await put_one(blobs, capture(number))

        assert await blobs.sweep(all_gone) == [OURS]
        assert ours.keys() == []


@pytest.mark.parametrize(
    ("url", "place"),
    [
        ("http://127.0.0.1:8333/pages", Place("http://127.0.0.1:8333", "pages", "")),
        ("https://s3.example.test/pages/", Place("https://s3.example.test", "pages", "")),
        ("https://[::1]:9000/pages/a/b_c.d/", Place("https://[::1]:9000", "pages", "a/b_c.d/")),
    ],
)
def test_a_url_names_a_server_a_bucket_and_a_prefix(url: str, place: Place) -> None:
    assert Place.of(url) == place


@pytest.mark.parametrize(
    "url",
    [
        "",
        "s3://pages",
        "http:///pages",
        "http://host:port/pages",
        "http://host:0/pages",
        "http://host",
        "http://host/",
        "http://host/ab",
        "http://host/UPPER",
        "http://key:secret@host/pages",
        "http://host/pages?versions",
        "http://host/pages/a//b",
        "http://host/pages/../b",
        "http://host/pages/a b",
    ],
)
def test_what_is_no_such_url_is_refused_without_being_shown(url: str) -> None:
    with pytest.raises(SettingsError) as refused:
        Place.of(url)

    assert "\n" not in str(refused.value)
    assert "key:secret" not in str(refused.value)


def only(crawl: CrawlId) -> Any:
    async def gone(asked: CrawlId) -> bool:
        return asked == crawl

    return gone
