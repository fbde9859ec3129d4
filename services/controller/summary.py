"""What a crawl comes to, in words: at its end, and whenever `status` asks.

Pure: values in, a text out. Must not know: where it is shown, or how the crawl was run.
"""

import shlex
from collections.abc import Iterator, Mapping
from typing import Final, assert_never

from gossamer.notes import FrontierNote, RankApiNote
from gossamer.outcomes import CrawlOutcome
from gossamer.records import Counts, CrawlRecord
from gossamer.states import State
from services.controller.cli import COMMAND
from services.controller.crawls import CRAWLS, Place
from services.controller.engines import Ended, ModuleTrouble
from services.controller.wording import moment, safe, several, size, span, tallies

#: Of lists that may be long, the few that matter most.
FEW: Final = 5


def summary(place: Place, ended: Ended, *, seconds: float, before: int = 0) -> str:
    """The end of a run: what came of it, where that is, and how to go on. `before`: pages that earlier runs stored."""
    head = f"Crawl {place.id}: {in_words(ended.outcome, ended.counts)}."
    pages = ended.counts.stored - before
    rate = f", {pages / seconds:,.1f} pages a second" if seconds > 0 and pages else ""
    lines = [
        *tally(ended.record, ended.counts),
        ("time", f"{span(seconds)} in this run{rate}"),
        *_gaps(ended.least_gap_s),
        *modules(ended.modules),
        *ranking(ended.frontier),
        *_why_failed(place, ended.outcome),
        *(("open", safe(f"{record.state.name.lower()} {record.url.url}")) for record in ended.stalled_on[:FEW]),
        *(("output", safe(str(path), 500)) for path in ended.outputs),
        ("state", safe(str(place.folder), 500)),
        going_on(place, ended.record, ended.outcome),
    ]
    return laid_out(head, lines)


def in_words(outcome: CrawlOutcome, counts: Counts) -> str:
    """How it ended, in one sentence without its full stop."""
    left = f"{several(counts.open, 'URL')} still open"
    match outcome:
        case CrawlOutcome.COMPLETE:
            return "complete, every URL that was found is closed"
        case CrawlOutcome.PAGE_BUDGET:
            return f"ended by --max-pages, {left}"
        case CrawlOutcome.BYTE_BUDGET:
            return f"ended before it could pass --max-bytes, {left}"
        case CrawlOutcome.STOPPED:
            return f"stopped, {left}"
        case CrawlOutcome.STALLED:
            return f"stalled, {left}, and nothing has moved for minutes"
        case CrawlOutcome.FAILED:
            return "failed, no seed could be fetched"
        case _:
            assert_never(outcome)


def tally(record: CrawlRecord, counts: Counts) -> Iterator[tuple[str, str]]:
    """The crawl in numbers: label, text."""
    yield "pages", f"{counts.stored:,} stored, of at most {record.rules.max_pages:,}"
    charged = f", {size(counts.charged_bytes)} charged for requests that were cut off" if counts.charged_bytes else ""
    yield "bytes", f"{size(counts.used_bytes)} received, of at most {size(record.rules.max_bytes)}{charged}"
    yield "requests", f"{counts.requests:,} to {several(counts.domains, 'domain')}, robots.txt included"
    if counts.open:
        states = {state.name.lower(): count for state, count in counts.states.items() if count and state is not State.CLOSED}
        yield "URLs", f"{counts.open:,} open: {tallies(states)}"
    if counts.outcomes:
        yield "outcomes", tallies(counts.outcomes)
    if counts.budgets:
        yield "budgets", f"URLs left out: {tallies(_by_rule(counts.budgets))}"
    if counts.refused:
        yield "refused", f"links not followed: {tallies(_by_rule(counts.refused))}"


def _by_rule(counts: Mapping[str, int]) -> Mapping[str, int]:
    """A budget's reason has its number in it, which beside a count would be one too many."""
    by_rule: dict[str, int] = {}
    for reason, count in counts.items():
        rule = reason.partition(":")[0]
        by_rule[rule] = by_rule.get(rule, 0) + count
    return by_rule


def modules(trouble: Mapping[str, ModuleTrouble]) -> Iterator[tuple[str, str]]:
    for name, each in trouble.items():
        off = ", switched off" if each.switched_off else ""
        yield "module", f"{safe(name)}: {several(each.failures, 'failure')}{off}; the last: {safe(each.last)}"


def ranking(frontier: FrontierNote) -> Iterator[tuple[str, str]]:
    """What there is to say of a prioritizer that is not ours, and of the rank API."""
    if (trouble := frontier.prioritizer) is not None:
        off = ", switched off" if trouble.switched_off else ""
        yield "plug-in", f"prioritizer: {several(trouble.failures, 'failure')}{off}; the last: {safe(trouble.last)}"
    if (api := frontier.rank_api) is not None:
        yield "rank API", rank_api(api)


def rank_api(api: RankApiNote) -> str:
    asked = f"asked {several(api.asked, 'time')}"
    if api.away_since is None:
        return f"{asked}, {several(api.ranked, 'domain')} ranked"
    return f"away since {moment(api.away_since)}, {asked}; URLs are ranked without it: {safe(api.last)}"


def going_on(place: Place, record: CrawlRecord, outcome: CrawlOutcome | None) -> tuple[str, str]:
    """How it can be resumed, if it can, and until when."""
    until = moment(record.kept_until)
    match outcome:
        case CrawlOutcome.COMPLETE | CrawlOutcome.FAILED:
            return "kept", f"until {until}"
        case CrawlOutcome.PAGE_BUDGET:
            more = f" --max-pages {record.rules.max_pages * 2}"
        case CrawlOutcome.BYTE_BUDGET:
            more = f" --max-bytes {record.rules.max_bytes * 2}"
        case _:
            more = ""
    return "resume", f"{COMMAND} resume {naming(place)}{more}   (until {until})"


def naming(place: Place) -> str:
    """The flags that name this crawl, from the directory where it was started."""
    return f"--crawl {place.id}" if place.folder == CRAWLS / place.id else f"--state {shlex.quote(str(place.folder))}"


def laid_out(head: str, lines: list[tuple[str, str]]) -> str:
    return head + "\n" + "".join(f"  {label:<9} {text}\n" for label, text in lines)


def _why_failed(place: Place, outcome: CrawlOutcome) -> Iterator[tuple[str, str]]:
    """Who has no page at all wants the reason, which an outcome's name is not."""
    if outcome is CrawlOutcome.FAILED and place.seeds:
        yield "why", safe(f"{COMMAND} explain {shlex.quote(place.seeds[0])} {naming(place)}", 2_500)


def _gaps(least_gap_s: Mapping[str, float]) -> Iterator[tuple[str, str]]:
    """The domains that were asked in the closest succession: there it shows first whether the delay was kept."""
    closest = sorted(least_gap_s.items(), key=lambda each: (each[1], each[0]))[:FEW]
    if closest:
        shown = ", ".join(f"{gap_s:.3f} s {safe(domain)}" for domain, gap_s in closest)
        yield "least gap", f"between the starts of two requests to one domain: {shown}"
