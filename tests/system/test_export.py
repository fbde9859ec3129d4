"""What comes out of a crawl, on both engines: the same pages in the archive and in every module's file, each once."""

import csv
import hashlib
import json
import signal
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as parquet
import pytest
from warcio.archiveiterator import ArchiveIterator

from tests.system.stack import running_stack, until
from tests.system.web import FREELY, PATIENCE_S, Web, run, start, synthetic_web

PAGES = 200
MODULES = [word for name in ("jsonl", "csv", "parquet") for word in ("--module", f"{name}:path=pages.{name}")]
STATE = ("--state", "state")


@dataclass(frozen=True)
class Engine:
    words: tuple[str, ...]
    environ: Mapping[str, str]


@pytest.fixture(scope="module", params=["embedded", "external"])
def engine(request: pytest.FixtureRequest) -> Iterator[Engine]:
    with ExitStack() as opened:
        if request.param == "embedded":
            yield Engine(STATE, {})
        else:
            stack = opened.enter_context(running_stack())
            yield Engine((*STATE, "--engine", "external", "--lease", "3s"), stack.environ)


@pytest.fixture(scope="module")
def web(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Web]:
    folder = tmp_path_factory.mktemp("web")
    with synthetic_web(folder, "--sites", "8", "--pages", str(PAGES), "--latency-ms", "10") as web:
        yield web


def export(folder: Path, engine: Engine, *words: str) -> Counter[tuple[str, str]]:
    """The pages in the archive, by URL and SHA-256, as another reader sees them; where the index says that they lie."""
    process = start(folder, "export", "--warc", "pages.warc.gz", *STATE, *words, environ=engine.environ)
    said, _ = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 0, said
    warc = folder / "pages.warc.gz"
    found: Counter[tuple[str, str]] = Counter()
    places = {}
    with warc.open("rb") as file:
        archive = ArchiveIterator(file, check_digests="raise")
        for record in archive:
            if record.rec_type != "warcinfo":
                body = record.content_stream().read()
                url = record.rec_headers.get_header("WARC-Target-URI")
                found[url, hashlib.sha256(body).hexdigest()] += 1
                places[url] = (archive.get_record_offset(), archive.get_record_length())
    assert {fields["url"]: (int(fields["offset"]), int(fields["length"])) for fields in index(folder)} == places
    with warc.open("rb") as file:
        for fields in index(folder):  # as a replay tool does: one seek, one record
            file.seek(int(fields["offset"]))
            record = next(iter(ArchiveIterator(file)))
            assert record.rec_headers.get_header("WARC-Target-URI") == fields["url"]
    return found


def index(folder: Path) -> list[dict[str, str]]:
    lines = (folder / "pages.cdxj").read_bytes().splitlines()
    assert lines == sorted(lines)
    return [json.loads(line.split(b" ", 2)[2]) for line in lines]


def written(folder: Path) -> Counter[tuple[str, str]]:
    """The pages in the modules' files, which all have the same ones."""
    jsonl = Counter((one["url"], one["sha256"]) for one in map(json.loads, (folder / "pages.jsonl").read_text().splitlines()))
    with (folder / "pages.csv").open(newline="", encoding="utf-8") as file:
        assert Counter((row["url"], row["sha256"]) for row in csv.DictReader(file, strict=True)) == jsonl
    table = parquet.read_table(folder / "pages.parquet", columns=["url", "sha256"]).to_pylist()
    assert Counter((row["url"], row["sha256"]) for row in table) == jsonl
    return jsonl


def test_the_archive_has_every_stored_page_once_also_after_a_resume(engine: Engine, web: Web, tmp_path: Path) -> None:
    web.reset()
    words = ("--seed", web.seeds[0], "--max-pages", "80", *MODULES, *FREELY, *engine.words)
    assert run(tmp_path, *words, environ=engine.environ).report["pages"] == 80

    pages = export(tmp_path, engine)
    assert pages == written(tmp_path)
    assert (len(pages), max(pages.values())) == (80, 1)

    ran = run(tmp_path, "resume", "--max-pages", "10000", *STATE, environ=engine.environ)
    assert ran.report["outcome"] == "complete", ran.said

    more = export(tmp_path, engine, "--force")
    assert more == written(tmp_path)
    assert (len(more), max(more.values())) == (PAGES, 1)
    assert pages.keys() <= more.keys()


def test_a_crawl_can_be_exported_while_it_runs_and_after_it_was_killed(engine: Engine, web: Web, tmp_path: Path) -> None:
    web.reset()
    process = start(tmp_path, "--seed", web.seeds[0], *MODULES, *FREELY, *engine.words, environ=engine.environ)
    try:
        until(lambda: stored(tmp_path, engine) >= 20, "twenty pages are stored")
        while_it_runs = export(tmp_path, engine)
    finally:
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=PATIENCE_S)

    after_the_kill = export(tmp_path, engine, "--force")

    assert len(while_it_runs) >= 20
    assert while_it_runs.keys() <= after_the_kill.keys()
    assert max(after_the_kill.values()) == 1
    ran = run(tmp_path, "resume", *STATE, environ=engine.environ)
    assert (ran.report["outcome"], ran.report["pages"]) == ("complete", PAGES), ran.said
    assert export(tmp_path, engine, "--force") == written(tmp_path)
    assert after_the_kill.keys() <= written(tmp_path).keys()


def stored(folder: Path, engine: Engine) -> int:
    asking = start(folder, "status", "--json", *STATE, environ=engine.environ)
    said, _ = asking.communicate(timeout=PATIENCE_S)
    return int(json.loads(said)["pages"]) if asking.returncode == 0 else 0
