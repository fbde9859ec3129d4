"""What `make bench` makes of its runs: ratios, growth, memory over time, and what it says of each target."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from bench.compare import crawlers as who
from bench.compare.figures import cost_ratios, growth, marginal_ms, quarters_mb, spread
from bench.compare.measure import Run
from bench.compare.results import page
from bench.compare.startup import Startup
from bench.compare.surroundings import surroundings
from bench.compare.targets import Seen, Verdict, judged, lines
from tests.system.web import PERFECT


def a_run(crawler: str = who.GOSSAMER, *, round: int = 0, pages: int = 1_000, cpu_s: float = 1.0, wrong: int = 0) -> Run:
    return Run(
        crawler=crawler,
        round=round,
        size=pages,
        code=0,
        hung=False,
        cpu_s=cpu_s,
        roles_s={},
        servers_s={},
        web_s=0.1,
        took_s=3.0,
        asking_s=2.0,
        memory=[(0.0, 10.0), (1.0, 80.0), (2.0, 90.0), (3.0, 100.0)],
        spin_s=0.05,
        score={**PERFECT, "pages": pages, "requests": pages, "wrong": wrong},
    )


def verdicts(seen: Seen) -> Mapping[str, Verdict]:
    return {line.measure: line.verdict for line in lines(seen)}


def test_a_ratio_is_of_runs_of_the_same_round() -> None:
    ours = [a_run(round=0, cpu_s=1), a_run(round=1, cpu_s=2), a_run(round=2, cpu_s=9)]
    theirs = [a_run(who.SCRAPY, round=1, cpu_s=4), a_run(who.SCRAPY, round=0, cpu_s=4)]

    assert cost_ratios(ours, theirs) == [0.25, 0.5]


def test_a_peer_that_found_fewer_pages_pays_for_them() -> None:
    theirs = replace(a_run(who.SCRAPY, cpu_s=1), score={**PERFECT, "pages": 500, "requests": 1_000})

    assert cost_ratios([a_run(cpu_s=1)], [theirs]) == [0.5]


def test_a_page_more_does_not_pay_for_the_start() -> None:
    small, large = a_run(pages=1_000, cpu_s=1.5), a_run(pages=3_000, cpu_s=2.5)

    assert marginal_ms(small, large) == pytest.approx(0.5)


def test_growth_is_the_later_page_against_the_earlier_one_of_its_own_round() -> None:
    runs = [
        a_run(round=number, pages=pages, cpu_s=cpu_s)
        for number, costs in enumerate([(1.0, 2.0, 4.0), (1.0, 2.0, 3.0)])
        for pages, cpu_s in zip((1_000, 2_000, 3_000), costs, strict=True)
    ]

    assert growth(runs, (1_000, 2_000, 3_000)) == pytest.approx([2.0, 1.0])


def test_memory_is_told_by_quarters_of_the_time() -> None:
    run = replace(a_run(), memory=[(0.0, 1.0), (0.5, 3.0), (1.0, 10.0), (2.0, 20.0), (3.0, 30.0), (4.0, 50.0)])

    assert quarters_mb(run) == [2.0, 10.0, 20.0, 40.0]


def test_a_spread_is_the_median_and_the_range() -> None:
    assert spread([3, 1, 2], ".1f") == "2.0 (1.0 – 3.0)"
    assert spread([3], ".1f") == "3.0"


@pytest.mark.parametrize(
    ("bound", "values", "verdict"),
    [
        pytest.param(0.5, [0.4, 0.5, 0.9], Verdict.MET, id="the median decides, and the bound itself is good enough"),
        pytest.param(0.5, [0.4, 0.51, 0.6], Verdict.MISSED, id="a median above the bound"),
        pytest.param(None, [0.4], Verdict.REPORTED, id="without a bound"),
        pytest.param(0.5, [], Verdict.UNKNOWN, id="nothing was measured"),
    ],
)
def test_a_target_is_judged(bound: float | None, values: list[float], verdict: Verdict) -> None:
    assert judged("", bound, values).verdict is verdict


def test_one_wrong_url_is_not_perfect() -> None:
    assert a_run().is_perfect
    assert not a_run(wrong=1).is_perfect
    assert not replace(a_run(), code=1).is_perfect
    assert not replace(a_run(), hung=True).is_perfect
    assert not replace(a_run(), size=1_001).is_perfect


def test_only_our_own_runs_have_to_be_perfect() -> None:
    theirs, ours = a_run(who.SCRAPY, wrong=7), a_run(who.EXTERNAL_2, wrong=1)
    seen = Seen(sites=20, size=1_000, sizes=(), runs=[theirs, ours])

    assert seen.imperfect == [ours]


def test_the_targets_tell_what_was_not_measured_from_what_was_missed() -> None:
    runs = [a_run(cpu_s=1.0), a_run(who.SCRAPY_TUNED, cpu_s=2.1), a_run(who.CRAWLEE, cpu_s=4.0)]
    growing = [a_run(pages=pages, cpu_s=cpu_s) for pages, cpu_s in ((1_000, 1.0), (2_000, 1.5), (20_000, 10.5))]
    startup = Startup(help_s=0.2, one_page_s=0.6, imports_s=0.5, ratios=[1.2])
    seen = Seen(
        sites=20,
        size=1_000,
        sizes=(1_000, 2_000, 20_000),
        runs=runs,
        growing=growing,
        startup=startup,
        steps={"steps": {}, "floor_sum_ms": 0.4},
    )

    assert verdicts(seen) == {
        "CPU a correct page, 1,000 pages: Gossamer ÷ Scrapy, tuned": Verdict.MET,
        "CPU a correct page, 1,000 pages: Gossamer ÷ Scrapy, as it comes": Verdict.UNKNOWN,
        "CPU a correct page, 1,000 pages: Gossamer ÷ Crawlee": Verdict.MISSED,
        "CPU a correct page, 1,000 pages: Gossamer, external, 2 workers ÷ scrapy-redis, 2 processes": Verdict.UNKNOWN,
        "CPU a correct page, 1,000 pages: Gossamer, similarity off ÷ spider_rs": Verdict.UNKNOWN,
        "CPU a page, 1,000 pages, start-up included ÷ the sum of its steps' floors": Verdict.MISSED,
        "CPU of a page more, 1,000 → 2,000 pages ÷ the same": Verdict.MET,
        "pages a second on servers: 2 workers ÷ 1, servers and web on the same cores": Verdict.UNKNOWN,
        "CPU of a page more: 2,000 → 20,000 pages ÷ 1,000 → 2,000": Verdict.MET,
        "peak memory, 20,000 pages": Verdict.MET,
        "flat: memory in the last quarter of the time ÷ in the first, 20,000 pages": Verdict.MISSED,
        "CPU of `controller.py --help`": Verdict.MISSED,
        "CPU of a crawl of one page ÷ that of importing its libraries": Verdict.MET,
        "Gossamer's runs with a page missed, forbidden, wrong or repeated": Verdict.MET,
    }


def test_who_is_absent_is_named_with_the_reason() -> None:
    seen = Seen(sites=20, size=1_000, sizes=(), runs=[a_run()], absent={"wget2": "no wget2 on the PATH"})

    assert "wget2: absent, no wget2 on the PATH" in page(seen, who.Peers())
    assert "absent: wget2, no wget2 on the PATH" in surroundings(seen, who.Peers())


def test_of_a_crawl_that_is_over_in_seconds_nobody_says_that_its_memory_grows() -> None:
    growing = [a_run(pages=pages, cpu_s=pages / 1_000) for pages in (1_000, 2_000, 3_000)]
    seen = Seen(sites=20, size=1_000, sizes=(1_000, 2_000, 3_000), runs=[], growing=growing)

    flat = next(line for line in lines(seen) if line.measure.startswith("flat"))
    assert flat.verdict is Verdict.UNKNOWN


def test_the_page_begins_with_what_it_comes_to() -> None:
    runs = [
        a_run(cpu_s=1.0),
        a_run(who.SCRAPY_TUNED, cpu_s=2.0),
        a_run(who.EXTERNAL_2, cpu_s=1.0),
        a_run(who.SCRAPY_REDIS, cpu_s=4.0),
    ]
    runs[2] = replace(runs[2], servers_s={"Redis": 1.0})
    told = page(Seen(sites=20, size=1_000, sizes=(), runs=runs), who.Peers())

    assert f"**0.50 ×** that of {who.SCRAPY_TUNED}" in told
    assert f"**0.25 ×** that of {who.SCRAPY_REDIS}; with the servers' own time on both sides **0.50 ×** that" in told
    assert "2 of its 2 crawls" in told
