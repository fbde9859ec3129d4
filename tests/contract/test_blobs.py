"""The blob store's contract over every adapter, and what a directory must do besides: full, crashed, beside others."""

import errno
import os
import secrets
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from adapters.distributed.blobs import S3Blobs
from adapters.embedded.blobs import DirectoryBlobs
from gossamer.clock import ManualClock, SystemClock
from gossamer.errors import BlobsUnavailable
from gossamer.ids import CrawlId
from gossamer.ports.blobs import BlobRef, Blobs
from gossamer.testing.blobs import NEIGHBOUR, OURS, BlobsContract, OpenBlobs, all_gone, capture, gunzip, none_gone, put_one
from tests.servers import s3_credentials, s3_url


@asynccontextmanager
async def directory(room: Path) -> AsyncIterator[OpenBlobs]:
    opened: list[DirectoryBlobs] = []

    async def open_blobs(crawl: CrawlId) -> Blobs:
        opened.append(DirectoryBlobs(room / "blobs", crawl))
        return opened[-1]

    yield open_blobs
    for blobs in opened:
        await blobs.close()


@asynccontextmanager
async def s3(room: Path) -> AsyncIterator[OpenBlobs]:
    opened: list[S3Blobs] = []
    url, keys = f"{s3_url()}/{secrets.token_hex(8)}", s3_credentials()

    async def open_blobs(crawl: CrawlId) -> Blobs:
        access_key, secret_key = keys.access_key, keys.secret_key
        opened.append(S3Blobs(url, crawl, clock=SystemClock(), ttl_s=0.0, access_key=access_key, secret_key=secret_key))
        return opened[-1]

    yield open_blobs
    for blobs in opened:
        await blobs.close()


@dataclass(frozen=True, slots=True)
class Adapter:
    open: Callable[[Path], AbstractAsyncContextManager[OpenBlobs]]


class TestBlobs(BlobsContract):
    @pytest.fixture(params=[pytest.param(Adapter(directory), id="directory"), pytest.param(Adapter(s3), id="s3")])
    def adapter(self, request: pytest.FixtureRequest) -> Adapter:
        chosen: Adapter = request.param
        return chosen

    @pytest.fixture
    async def open_blobs(self, adapter: Adapter, tmp_path: Path) -> AsyncIterator[OpenBlobs]:
        async with adapter.open(tmp_path) as open_blobs:
            yield open_blobs


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "crawls"


@pytest.fixture
def segments(root: Path) -> Path:
    return root / OURS / "segments"


@pytest.fixture
async def blobs(root: Path) -> AsyncIterator[DirectoryBlobs]:
    blobs = DirectoryBlobs(root, OURS)
    yield blobs
    await blobs.close()


def files(directory: Path) -> list[str]:
    return sorted(str(path.relative_to(directory)) for path in directory.rglob("*"))


class TestDirectory:
    async def test_a_segment_is_a_warc_file_that_can_be_copied(self, blobs: DirectoryBlobs, segments: Path) -> None:
        ref = await put_one(blobs, capture())

        assert files(segments) == [f"{ref.segment}.warc.gz"]
        assert (segments / f"{ref.segment}.warc.gz").read_bytes() == await blobs.read(ref.segment)

    async def test_opening_and_reading_change_nothing(self, root: Path, blobs: DirectoryBlobs) -> None:
        assert await blobs.segments() == []
        assert await blobs.read("1700000000000000-00000000") is None

        assert files(root.parent) == []

    async def test_names_go_on_when_the_clock_is_set_back(self, root: Path) -> None:
        before = DirectoryBlobs(root, OURS, ManualClock(2_000_000_000.0))
        put = [(await put_one(before, capture(number))).segment for number in range(3)]
        await before.close()

        after = DirectoryBlobs(root, OURS, ManualClock(1_000_000_000.0))
        put += [(await put_one(after, capture(number))).segment for number in range(3)]

        assert await after.segments() == put
        await after.close()

    async def test_two_processes_do_not_share_a_name_even_in_the_same_microsecond(self, root: Path) -> None:
        clock = ManualClock()
        stores = [DirectoryBlobs(root, OURS, clock) for _ in range(2)]
        for store in stores:
            await put_one(store, capture())  # each knows by now what was there before it
        clock.advance(1)

        refs = [await put_one(store, capture(number)) for number, store in enumerate(stores)]

        assert refs[0].segment.partition("-")[0] == refs[1].segment.partition("-")[0]
        assert [await stores[0].get(ref) for ref in refs] == [capture(0), capture(1)]
        for store in stores:
            await store.close()

    @pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "", ".", "x\0y", "1700000000000000-00000000/../../x"])
    async def test_a_path_is_no_segment(self, blobs: DirectoryBlobs, segments: Path, name: str) -> None:
        ref = await put_one(blobs, capture())
        (segments.parent / "secret.warc.gz").write_bytes(b"not to be read")

        assert await blobs.read(name) is None
        assert await blobs.get(replace(ref, segment=name)) is None

    async def test_files_that_are_not_ours_are_no_segments(self, blobs: DirectoryBlobs, segments: Path) -> None:
        ref = await put_one(blobs, capture())
        (segments / "notes.warc.gz").write_bytes(b"")
        (segments / "1700000000000000-0000000g.warc.gz").write_bytes(b"")

        assert await blobs.segments() == [ref.segment]


class TestDurability:
    async def test_bytes_are_on_the_disk_before_the_name_and_the_name_before_the_reference(
        self, blobs: DirectoryBlobs, segments: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        await put_one(blobs, capture())  # the directories are there from now on
        steps: list[str] = []
        fsync, rename = os.fsync, os.replace

        def record_fsync(descriptor: int) -> None:
            if os.path.samestat(os.fstat(descriptor), os.stat(segments)):
                steps.append("fsync directory")
            else:
                (part,) = segments.glob(".*.part")
                assert os.path.samestat(os.fstat(descriptor), os.stat(part))
                assert gunzip(part.read_bytes()).endswith(capture(1).body + b"\r\n\r\n")  # no byte is still in a buffer of ours
                steps.append("fsync .part")
            fsync(descriptor)

        def record_rename(source: Path, target: Path) -> None:
            steps.append(f"rename {Path(source).suffix} to {Path(target).suffix}")
            rename(source, target)

        monkeypatch.setattr(os, "fsync", record_fsync)
        monkeypatch.setattr(os, "replace", record_rename)
        await put_one(blobs, capture(1))

        assert steps == ["fsync .part", "rename .part to .gz", "fsync directory"]

    async def test_new_directories_are_durable_in_their_parents(
        self, blobs: DirectoryBlobs, root: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        synced: list[int] = []
        fsync = os.fsync

        def record(descriptor: int) -> None:
            synced.append(os.fstat(descriptor).st_ino)
            fsync(descriptor)

        monkeypatch.setattr(os, "fsync", record)
        await put_one(blobs, capture())

        assert synced[:3] == [os.stat(parent).st_ino for parent in (root.parent, root, root / OURS)]

    @pytest.mark.parametrize("call", ["fsync", "replace"])
    async def test_a_disk_that_fails_leaves_nothing_behind(
        self, blobs: DirectoryBlobs, segments: Path, monkeypatch: pytest.MonkeyPatch, call: str
    ) -> None:
        before = await put_one(blobs, capture())

        def fail(*_: object) -> None:
            raise OSError(errno.EIO, "the disk is unwell")

        with monkeypatch.context() as broken:
            broken.setattr(os, call, fail)
            with pytest.raises(BlobsUnavailable, match="unwell"):
                await blobs.put([capture()])

        assert files(segments) == [f"{before.segment}.warc.gz"]
        assert await blobs.get(await put_one(blobs, capture())) == capture()  # and it goes on when the disk is well

    def test_a_full_disk_leaves_nothing_behind(self, root: Path, segments: Path) -> None:
        """The system itself refuses to let a file grow, in the middle of a segment."""
        run_child(
            """
            resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, resource.RLIM_INFINITY))
            small = await put_one(blobs, capture(1))
            try:
                await blobs.put([capture(body=os.urandom(150_000))])
            except BlobsUnavailable as error:
                assert error.__cause__.errno == errno.EFBIG, error
            else:
                raise AssertionError("it did not fit")
            assert await blobs.segments() == [small.segment]
            """,
            root,
        )

        assert len(files(segments)) == 1

    async def test_a_crash_in_mid_write_leaves_nothing_that_reads_as_whole(self, root: Path, segments: Path) -> None:
        run_child("os.replace = lambda *_: os._exit(9); await put_one(blobs, capture())", root, exit_code=9)
        (leftover,) = files(segments)
        reader, owner = DirectoryBlobs(root, OURS), DirectoryBlobs(root, OURS)

        # A second process that only looks sees nothing of it, and lets it be: it may be a living writer's.
        assert await reader.segments() == []
        assert await reader.read(leftover.removesuffix(".part")) is None
        assert await reader.sweep(none_gone) == []
        assert files(segments) == [leftover]

        # The owner, coming back, clears it away and nothing else.
        kept = await put_one(owner, capture())
        (segments / "notes.part").touch()
        await owner.remove_leftovers()
        assert files(segments) == [f"{kept.segment}.warc.gz", "notes.part"]
        for store in (reader, owner):
            await store.close()

    async def test_a_directory_that_can_not_be_used_is_unavailable(self) -> None:
        blobs = DirectoryBlobs(Path(__file__), OURS)  # a file where the directory should be

        with pytest.raises(BlobsUnavailable):
            await blobs.put([capture()])
        with pytest.raises(BlobsUnavailable):
            await blobs.segments()
        with pytest.raises(BlobsUnavailable):
            await blobs.copies([BlobRef(f"{number:016d}-00000000", 0, 1, bytes(32)) for number in range(3)])
        await blobs.close()


class TestSweeping:
    async def test_what_others_keep_beside_the_segments_stays(self, root: Path, blobs: DirectoryBlobs) -> None:
        await put_one(blobs, capture())
        (root / OURS / "ledger.sqlite").touch()
        for name in ("notes.txt", "no crawl"):
            (root / name).mkdir()
        (root / "empty-crawl").mkdir()

        assert await blobs.sweep(all_gone) == [OURS]

        assert files(root) == [OURS, f"{OURS}/ledger.sqlite", "empty-crawl", "no crawl", "notes.txt"]

    async def test_a_crawl_that_had_nothing_but_segments_leaves_no_directory(self, root: Path, blobs: DirectoryBlobs) -> None:
        await put_one(blobs, capture())

        await blobs.sweep(all_gone)

        assert files(root) == []

    async def test_symbolic_links_are_not_followed(self, root: Path, blobs: DirectoryBlobs, tmp_path: Path) -> None:
        outside = DirectoryBlobs(tmp_path / "outside", NEIGHBOUR)
        await put_one(outside, capture())
        before = files(tmp_path / "outside")
        await put_one(blobs, capture())
        (root / "linked-crawl").symlink_to(tmp_path / "outside" / NEIGHBOUR)
        (root / "linked-segments").mkdir()
        (root / "linked-segments" / "segments").symlink_to(tmp_path / "outside" / NEIGHBOUR / "segments")
        (root / OURS / "segments" / "link").symlink_to(tmp_path / "outside" / NEIGHBOUR)

        assert await blobs.sweep(all_gone) == [OURS]

        assert files(tmp_path / "outside") == before
        await outside.close()


def run_child(body: str, root: Path, *, exit_code: int = 0) -> None:
    """Runs lines of an async function in a process of its own, which may meet limits and die as this one must not."""
    lines = [line.removeprefix(" " * 12) for line in body.strip("\n").splitlines()]
    program = "\n".join(
        [
            "import asyncio, errno, os, resource, sys",
            "from pathlib import Path",
            "from adapters.embedded.blobs import DirectoryBlobs",
            "from gossamer.errors import BlobsUnavailable",
            "from gossamer.testing.blobs import OURS, capture, put_one",
            "async def main():",
            "    blobs = DirectoryBlobs(Path(sys.argv[1]), OURS)",
            *(f"    {line}" for line in lines),
            "    await blobs.close()",
            "asyncio.run(main())",
        ]
    )
    done = subprocess.run([sys.executable, "-c", program, str(root)], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == exit_code, done.stderr
