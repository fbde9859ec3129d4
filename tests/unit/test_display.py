"""What is seen of a crawl: by people on a terminal, by people who read a log, by machines, and at the end."""

import io
import json
import logging
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from rich.console import Console

from gossamer.clock import ManualClock
from gossamer.errors import MessageError
from gossamer.ids import CrawlId, UrlId
from gossamer.notes import (
    FrontierNote,
    ModuleNote,
    RankApiNote,
    decode_frontier_note,
    encode_frontier_note,
    together,
)
from gossamer.outcomes import CrawlOutcome, Outcome
from gossamer.records import CrawlStatus, DomainRecord
from gossamer.settings import Log
from services.controller.board import Board, bar, board
from services.controller.crawls import Place
from services.controller.display import (
    Lines,
    News,
    Pace,
    for_people,
    line,
    logs_shown,
    news_of,
    open_display,
    progress,
    waiting,
    why,
)
from services.controller.engines import ModuleTrouble, Snapshot
from services.controller.reading import Glance
from services.controller.status import status_json, status_text
from services.controller.summary import naming, summary
from services.controller.wording import moment, safe, size, span, tallies
from tests.unit.a_crawl import (
    NOW,
    a_domain,
    a_record,
    a_snapshot,
    a_worker,
    an_end,
    an_open_url,
    some_counts,
)

HOSTILE = "[red]\x1b[2J\x1b]0;owned\x07\u202egnp\r\n[/red]"
PLACE = Place(CrawlId("20251118-142640-a-example-3f2a"), Path("crawls/20251118-142640-a-example-3f2a"), ("https://a.example/",))


def drawn(snapshot: Snapshot, rate: float = 12.34, seconds: float = 75.0) -> str:
    console = Console(file=io.StringIO(), width=110, color_system=None)
    console.print(board(snapshot, rate, seconds))
    assert isinstance(console.file, io.StringIO)
    return "\n".join(text.rstrip() for text in console.file.getvalue().splitlines())


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


# --- Words ------------------------------------------------------------------------------------------------------------


@given(st.text())
def test_no_text_from_outside_moves_the_cursor(text: str) -> None:
    assert safe(text).isprintable()
    assert len(safe(text, 10)) <= 10 * len("\\U0001f600") + 1


def test_a_text_from_outside_is_shown_as_far_as_it_goes() -> None:
    assert safe("Zürich 東京 1") == "Zürich 東京 1"
    assert safe("a\tb\x1b[2J\u202e") == r"a\tb\x1b[2J\u202e"
    assert safe("a" * 200, 5) == "aaaaa…"


@pytest.mark.parametrize(
    ("bytes_", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1 KB"), (5_100_000, "5.1 MB"), (50_000_000, "50 MB"), (2 * 10**9, "2 GB")],
)
def test_sizes_are_shown_in_powers_of_ten(bytes_: int, text: str) -> None:
    assert size(bytes_) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(-1, "0.0 s"), (0.42, "0.4 s"), (34, "34 s"), (60, "1 min 0 s"), (725.2, "12 min 5 s"), (12_000, "3 h 20 min")],
)
def test_time_spans_are_as_exact_as_matters(seconds: float, text: str) -> None:
    assert span(seconds) == text


def test_moments_are_in_utc_and_say_so() -> None:
    assert moment(NOW) == "2025-11-18 14:26:40 UTC"


def test_tallies_begin_with_the_most() -> None:
    assert tallies({"b": 2, "a": 2, "c": 1_000, "\n": 1}) == r"c 1,000, a 2, b 2, \n 1"


# --- A line -----------------------------------------------------------------------------------------------------------


def test_a_line_has_pages_rate_bytes_and_errors() -> None:
    assert line(a_snapshot(), 12.34) == (
        "120 pages (12.3/s), 5.1 MB of 50 MB, 60 open (4 in flight), 7 domains, errors: timeout 12, gone 3"
    )


def test_a_line_says_what_is_unusual() -> None:
    trouble = {"jsonl": ModuleTrouble(2, "x", switched_off=False)}
    snapshot = a_snapshot(counts=some_counts(stored=1, outcomes={Outcome.DONE: 1}), status=CrawlStatus.DRAINING, modules=trouble)

    assert line(snapshot, 0.0) == (
        "1 page (0.0/s), 5.1 MB of 50 MB, 60 open (4 in flight), 7 domains, module jsonl: 2 failures, ending"
    )


def test_a_pause_is_shown_wherever_one_looks() -> None:
    snapshot = replace(a_snapshot(), paused=["no space left on crawls/a"])

    assert line(snapshot, 1.0).endswith(", paused: no space left on crawls/a")
    assert "paused   no space left on crawls/a" in drawn(snapshot)
    assert progress(snapshot, 1.0)["paused"] == ["no space left on crawls/a"]


def test_lines_come_every_few_seconds_and_news_at_once() -> None:
    out, clock = io.StringIO(), ManualClock(NOW)
    with Lines(out, clock, for_people) as lines:
        for quarter in range(24):  # six seconds
            lines.show(a_snapshot(now=NOW + quarter / 4))
        lines.tell(News("x", "Something happened"))

    shown = out.getvalue().splitlines()
    assert [text[:9] for text in shown] == ["14:26:40 ", "14:26:45 ", "14:26:40 "]
    assert shown[2] == "14:26:40 Something happened"


def test_the_rate_is_that_of_the_last_seconds() -> None:
    pace = Pace()

    def rate(after_s: float, stored: int) -> float:
        return pace.rate(a_snapshot(counts=some_counts(stored=stored), now=NOW + after_s))

    assert rate(0, 1000) == 0.0, "what an earlier run stored is no pace"
    assert rate(1, 1010) == 10.0
    assert rate(11, 1110) == 10.0
    assert rate(30, 1110) == 0.0, "what is long ago counts no more"


# --- JSON -------------------------------------------------------------------------------------------------------------


def test_json_lines_are_objects_named_by_their_event() -> None:
    out = io.StringIO()
    display = open_display(Log.JSON, Terminal(), ManualClock(NOW))
    assert isinstance(display, Lines), "on a terminal too"
    display = open_display(Log.JSON, out, ManualClock(NOW))

    display.show(a_snapshot(workers=[a_worker(0)], modules={"m": ModuleTrouble(1, HOSTILE, switched_off=True)}))
    display.tell(News("module.failed", "…", {"page": HOSTILE, "path": Path("x")}, "warning"))

    progress, news = (json.loads(text) for text in out.getvalue().splitlines())
    assert progress["event"] == "crawl.progress"
    assert progress["time"] == "2025-11-18T14:26:40.000+00:00"
    assert (progress["pages"], progress["states"]["fetching"], progress["outcomes"]["gone"]) == (120, 4, 3)
    assert progress["workers"] == [{"id": 0, "load": 3, "domains": 5}]
    assert progress["modules"] == {"m": {"failures": 1, "off": True}}
    assert news == {
        "time": "2025-11-18T14:26:40.000+00:00",
        "level": "warning",
        "event": "module.failed",
        "page": HOSTILE,
        "path": "x",
    }
    assert out.getvalue().replace("\n", "").isprintable()


def test_what_the_parts_log_is_told_with_its_fields() -> None:
    out = io.StringIO()
    log = logging.getLogger("gossamer.engine")
    with logs_shown(Lines(out, ManualClock(NOW), for_people)):
        log.warning("engine.away", extra={"what": "begin", "error": "gone\x1b"})
        log.debug("not for people")
    log.warning("not for us any more")

    assert out.getvalue() == "14:26:40 warning: engine.away what=begin error=gone\\x1b\n"


def test_a_logged_sentence_is_a_message_and_not_an_event() -> None:
    sentence = logging.makeLogRecord({"name": "gossamer.modules", "msg": "module %s failed", "args": ("m",), "levelname": "ERROR"})
    event = logging.makeLogRecord({"name": "gossamer.engine", "msg": "engine.away", "pause_s": 0.1, "levelname": "WARNING"})

    assert news_of(sentence) == News("gossamer.modules", "error: module m failed", {"message": "module m failed"}, "error")
    assert news_of(event) == News("engine.away", "warning: engine.away pause_s=0.1", {"pause_s": 0.1}, "warning")


# --- The board --------------------------------------------------------------------------------------------------------


def test_the_board_shows_the_whole_crawl() -> None:
    snapshot = a_snapshot(
        workers=[a_worker(0, load=3), a_worker(1, load=0)],
        domains=[a_domain("busy.example", busy=UrlId(bytes(16))), a_domain("slow.example", next_at=NOW + 0.4)],
        modules={"jsonl": ModuleTrouble(2, "disk full", switched_off=True)},
    )

    assert drawn(snapshot).splitlines() == [
        "time     1 min 15 s   Ctrl-C ends it gently",
        "pages    ━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ 120 of 1,000   12.3/s",
        "bytes    ━━━╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌╌ 5.1 MB of 50 MB",
        "URLs     waiting 30, parked 20, routed 6, fetching 4   150 requests, 7 domains",
        "queues   urls 3   bands, best first: 12 0 1,500",
        "workers  id  domains  URLs held  hints",
        "         0   5        3          2",
        "         1   0        0          0",
        "waiting  domain        URLs  for",
        "         slow.example  11    its delay of 1.0 s, 0.4 s more",
        "errors   timeout 12, gone 3",
        "module   jsonl: 2 failures, switched off; the last: disk full",
    ]


def test_a_long_list_is_cut_and_says_so() -> None:
    shown = drawn(a_snapshot(workers=[a_worker(id) for id in range(16)], domains=[a_domain(f"d{n:02}.example") for n in range(30)]))

    assert shown.count("and 8 more") == 1
    assert shown.count("and 22 more") == 1


def test_texts_from_the_web_are_neither_markup_nor_commands_on_the_board() -> None:
    snapshot = a_snapshot(domains=[a_domain(HOSTILE)], modules={HOSTILE: ModuleTrouble(1, HOSTILE, switched_off=False)})

    shown = drawn(snapshot)

    assert shown.count(r"[red]\x1b[2J\x1b]0;owned\x07\u202egnp\r\n[/red]") == 3
    assert shown.replace("\n", "").isprintable()


def test_a_crawl_that_just_began_can_be_drawn() -> None:
    counts = some_counts(stored=0, outcomes={}, used_bytes=0)
    snapshot = replace(a_snapshot(counts=counts), queues={})

    assert "none yet" in drawn(snapshot, 0.0, 0.0)


def test_a_bar_is_full_only_when_the_budget_is() -> None:
    assert bar(999, 1000) == "━" * 29 + "╌"
    assert bar(1000, 1000) == bar(2000, 1000) == "━" * 30


def test_a_terminal_gets_the_board_and_what_is_told_above_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    with open_display(Log.HUMAN, terminal, ManualClock(NOW)) as display:
        assert isinstance(display, Board)
        display.show(a_snapshot(workers=[a_worker(0)]))
        display.tell(News("x", "[red]Stopping"))

    assert "[red]Stopping" in terminal.getvalue()
    assert "120 of 1,000" in terminal.getvalue()


def test_what_is_no_terminal_gets_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    assert isinstance(open_display(Log.HUMAN, io.StringIO(), ManualClock()), Lines)
    monkeypatch.setenv("TERM", "dumb")
    assert isinstance(open_display(Log.HUMAN, Terminal(), ManualClock()), Lines)


@pytest.mark.parametrize(
    ("domain", "reason"),
    [
        pytest.param(a_domain(busy=UrlId(bytes(16))), "a request is in flight", id="busy"),
        pytest.param(a_domain(next_at=NOW + 0.4), "its delay of 1.0 s, 0.4 s more", id="delay"),
        pytest.param(a_domain(not_before=NOW + 90), "asked to be left alone, 1 min 30 s more", id="Retry-After"),
        pytest.param(a_domain(not_before=NOW + 20, rests=2), "rests after failures (rest 2), 20 s more", id="rest"),
        pytest.param(a_domain(closed=Outcome.TIMEOUT), "given up: timeout", id="given up"),
        pytest.param(a_domain(), "its worker's next free hand", id="nothing but its turn"),
        pytest.param(a_domain(out=0), "room in a worker's queue", id="no room"),
    ],
)
def test_a_domain_tells_what_it_waits_for(domain: DomainRecord, reason: str) -> None:
    assert why(domain, NOW) == reason


def test_the_domains_that_wait_longest_come_first() -> None:
    soon, late = a_domain("soon.example", next_at=NOW + 1), a_domain("late.example", not_before=NOW + 60)
    ready, busy = a_domain("ready.example"), a_domain("busy.example", busy=UrlId(bytes(16)))

    assert waiting([ready, soon, busy, late], NOW) == [late, soon, ready]


# --- The end ----------------------------------------------------------------------------------------------------------


def test_the_summary_says_what_came_of_it_and_where_it_is() -> None:
    ended = an_end(
        counts=some_counts(
            waiting=0,
            fetching=0,
            refused={"scope": 20, "scheme": 3, "max_hosts: 100 hosts of its registered domain are known": 4},
            charged_bytes=500_000,
            budgets={"max_host_pages: 5000 pages of its host were asked for": 1200},
        ),
        least_gap_s={"b.example": 1.0042, "a.example": 1.0, "c.example": 3.2},
        modules={"jsonl": ModuleTrouble(1, "no page\n", switched_off=False)},
        outputs=[Path("out/pages.jsonl")],
    )

    assert summary(PLACE, ended, seconds=60.0) == (
        "Crawl 20251118-142640-a-example-3f2a: complete, every URL that was found is closed.\n"
        "  pages     120 stored, of at most 1,000\n"
        "  bytes     5.1 MB received, of at most 50 MB, 500 KB charged for requests that were cut off\n"
        "  requests  150 to 7 domains, robots.txt included\n"
        "  outcomes  done 120, timeout 12, gone 3\n"
        "  budgets   URLs left out: max_host_pages 1,200\n"
        "  refused   links not followed: scope 20, max_hosts 4, scheme 3\n"
        "  time      1 min 0 s in this run, 2.0 pages a second\n"
        "  least gap between the starts of two requests to one domain: 1.000 s a.example, 1.004 s b.example, 3.200 s c.example\n"
        "  module    jsonl: 1 failure; the last: no page\\n\n"
        "  output    out/pages.jsonl\n"
        "  state     crawls/20251118-142640-a-example-3f2a\n"
        "  kept      until 2025-11-18 15:26:40 UTC\n"
    )


@pytest.mark.parametrize(
    ("before", "rate"),
    [pytest.param(90, "0.5 pages a second", id="pages of this run"), pytest.param(120, "", id="none in this run")],
)
def test_a_run_that_goes_on_is_as_fast_as_its_own_pages_came(before: int, rate: str) -> None:
    text = summary(PLACE, an_end(counts=some_counts()), seconds=60.0, before=before)

    assert f"  time      1 min 0 s in this run{', ' if rate else ''}{rate}\n" in text


@pytest.mark.parametrize(
    ("outcome", "head", "going_on"),
    [
        (CrawlOutcome.PAGE_BUDGET, "ended by --max-pages, 60 URLs still open", " --max-pages 2000"),
        (CrawlOutcome.BYTE_BUDGET, "ended before it could pass --max-bytes, 60 URLs still open", " --max-bytes 100000000"),
        (CrawlOutcome.STOPPED, "stopped, 60 URLs still open", ""),
        (CrawlOutcome.STALLED, "stalled, 60 URLs still open, and nothing has moved for minutes", ""),
        (None, "stopped, 60 URLs still open", ""),
    ],
)
def test_the_summary_tells_how_and_until_when_to_go_on(outcome: CrawlOutcome | None, head: str, going_on: str) -> None:
    text = summary(PLACE, an_end(outcome, counts=some_counts()), seconds=1.0)

    assert text.splitlines()[0] == f"Crawl {PLACE.id}: {head}."
    command = f"python controller.py resume --crawl {PLACE.id}{going_on}"
    assert text.splitlines()[-1] == f"  resume    {command}   (until 2025-11-18 15:26:40 UTC)"


def test_a_crawl_in_a_folder_of_its_own_is_named_by_it() -> None:
    assert naming(Place(CrawlId("c"), Path("my state"), ())) == "--state 'my state'"


def test_a_crawl_whose_seeds_all_failed_has_failed() -> None:
    ended = an_end(seeds_failed=True)

    assert ended.outcome is CrawlOutcome.FAILED
    text = summary(PLACE, ended, seconds=1.0)
    assert text.startswith(f"Crawl {PLACE.id}: failed, no seed could be fetched.\n")
    assert f"  why       python controller.py explain https://a.example/ --crawl {PLACE.id}\n" in text
    assert an_end(CrawlOutcome.STOPPED, seeds_failed=True).outcome is CrawlOutcome.STOPPED, "it might still have got somewhere"


def test_a_stalled_crawl_names_what_it_is_stalled_on() -> None:
    ended = an_end(CrawlOutcome.STALLED, stalled_on=[an_open_url(f"https://a.example/{n}\x1b") for n in range(9)])

    text = summary(PLACE, ended, seconds=1.0)

    assert text.count("  open      routed https://a.example/") == 5
    assert "https://a.example/0\\x1b\n" in text


# --- Status -----------------------------------------------------------------------------------------------------------


def a_glance(process: int | None, status: CrawlStatus, outcome: CrawlOutcome | None = None) -> Glance:
    return Glance(
        process=process,
        record=a_record(status, outcome),
        counts=some_counts(),
        workers=[a_worker(0), a_worker(1, load=1)],
        domains=[a_domain("slow.example", next_at=NOW + 0.4)],
        now=NOW,
    )


def test_status_of_a_running_crawl_shows_who_works_and_what_waits() -> None:
    text = status_text(PLACE, a_glance(1234, CrawlStatus.RUNNING))

    assert text.startswith(f"Crawl {PLACE.id} is running, in process 1234.\n  pages     120 stored")
    assert "  URLs      60 open: waiting 30, parked 20, routed 6, fetching 4\n" in text
    assert "  workers   0 holds 3 URLs, 1 holds 1 URL\n" in text
    assert "  waiting   slow.example (11 URLs): its delay of 1.0 s, 0.4 s more\n" in text
    assert text.endswith(f"  stop      python controller.py stop --crawl {PLACE.id}\n")


@pytest.mark.parametrize(
    ("glance", "head"),
    [
        (a_glance(1234, CrawlStatus.DRAINING, CrawlOutcome.STOPPED), "is ending, in process 1234."),
        (a_glance(1234, CrawlStatus.ENDED, CrawlOutcome.STOPPED), "has ended and is being wound up, in process 1234."),
        (a_glance(None, CrawlStatus.RUNNING), "does not run: it was cut off, 60 URLs still open."),
    ],
)
def test_status_tells_ending_from_ended_and_from_killed(glance: Glance, head: str) -> None:
    text = status_text(PLACE, glance)

    assert text.splitlines()[0] == f"Crawl {PLACE.id} {head}"
    assert ("workers" in text) == (glance.process is not None)


def test_status_of_an_ended_crawl_is_its_end() -> None:
    text = status_text(PLACE, a_glance(None, CrawlStatus.ENDED, CrawlOutcome.PAGE_BUDGET))

    assert text.startswith(f"Crawl {PLACE.id}: ended by --max-pages, 60 URLs still open.\n")
    assert "resume --crawl" in text


def test_status_of_a_crawl_that_got_nothing_is_what_its_run_was_told() -> None:
    nothing = some_counts(stored=0, waiting=0, fetching=0, outcomes={Outcome.DNS_FAILED: 1})
    glance = replace(a_glance(None, CrawlStatus.ENDED, CrawlOutcome.COMPLETE), counts=nothing)

    assert status_text(PLACE, glance).startswith(f"Crawl {PLACE.id}: failed, no seed could be fetched.\n")
    assert json.loads(status_json(PLACE, glance))["outcome"] == "failed"


def test_status_can_be_read_by_programs() -> None:
    fields = json.loads(status_json(PLACE, a_glance(1234, CrawlStatus.RUNNING)))

    assert (fields["crawl"], fields["status"], fields["process"], fields["outcome"]) == (PLACE.id, "running", 1234, None)
    assert (fields["pages"], fields["max_pages"], fields["open"]) == (120, 1000, 60)
    assert fields["outcomes"] == {"done": 120, "timeout": 12, "gone": 3}
    assert fields["workers"] == [{"id": 0, "load": 3}, {"id": 1, "load": 1}]


# --- Ranking ----------------------------------------------------------------------------------------------------------

AWAY = RankApiNote(asked=7, ranked=3, away_since=NOW, last="it answers with status 500")
OFF = ModuleNote(20, "ValueError: \x1b", switched_off=True)
ABOUT = FrontierNote(prioritizer=OFF, rank_api=AWAY)
SINCE = f"away since {moment(NOW)}, asked 7 times"


def test_an_api_that_is_away_is_one_line_wherever_one_looks() -> None:
    shown = f"{SINCE}; URLs are ranked without it: it answers with status 500"

    assert f"rank API: {SINCE}" in line(a_snapshot(frontier=ABOUT), 1.0)
    assert f"rank API {shown}" in board(a_snapshot(frontier=ABOUT), 1.0, 1.0).plain.splitlines()
    assert f"  rank API  {shown}\n" in summary(PLACE, replace(an_end(), frontier=ABOUT), seconds=1.0)
    assert f"  rank API  {shown}\n" in status_text(PLACE, replace(a_glance(1, CrawlStatus.RUNNING), frontier=ABOUT))
    assert progress(a_snapshot(frontier=ABOUT), 1.0)["rank_api"] == {
        "asked": 7,
        "ranked": 3,
        "away_since": NOW,
        "last": "it answers with status 500",
    }


def test_one_that_is_well_is_no_news() -> None:
    well = FrontierNote(rank_api=RankApiNote(asked=1, ranked=2))

    assert "rank API" not in line(a_snapshot(frontier=well), 1.0)
    assert "  rank API  asked 1 time, 2 domains ranked\n" in summary(PLACE, replace(an_end(), frontier=well), seconds=1.0)
    assert "rank API" not in summary(PLACE, an_end(), seconds=1.0)


def test_a_prioritizer_in_trouble_is_shown() -> None:
    assert "prioritizer: 20 failures" in line(a_snapshot(frontier=ABOUT), 1.0)
    text = summary(PLACE, replace(an_end(), frontier=ABOUT), seconds=1.0)
    assert "  plug-in   prioritizer: 20 failures, switched off; the last: ValueError: \\x1b\n" in text
    fields = json.loads(status_json(PLACE, replace(a_glance(1, CrawlStatus.RUNNING), frontier=ABOUT)))
    assert fields["prioritizer"] == {"failures": 20, "last": "ValueError: \x1b", "switched_off": True}


def test_of_several_frontiers_the_latest_tells_how_it_stands() -> None:
    back = FrontierNote(rank_api=RankApiNote(asked=2, ranked=5), noted_at=2.0)
    before = FrontierNote(prioritizer=OFF, rank_api=AWAY, noted_at=1.0)

    for notes in ([before, back], [back, before]):
        assert together(notes).rank_api == RankApiNote(asked=9, ranked=5)
        assert together(notes).prioritizer == OFF
    assert together([]) == FrontierNote()


def test_a_frontiers_note_comes_back_as_it_was() -> None:
    assert decode_frontier_note(encode_frontier_note(ABOUT)) == ABOUT
    with pytest.raises(MessageError):
        decode_frontier_note("{}}")
