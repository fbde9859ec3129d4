"""What became of a URL, or what would, in one sentence. Pure."""

from typing import assert_never

from gossamer.budgets import Budget
from gossamer.outcomes import CrawlOutcome, Flag, Outcome
from gossamer.records import CrawlStatus, DomainRecord, UrlRecord
from gossamer.states import State
from services.controller.display import why
from services.controller.explain import Crawl, Explanation, Known, Unusable
from services.controller.explain.budgets import shares, variants_most
from services.controller.wording import safe, several, size


def verdict(found: Explanation | Unusable) -> str:
    """Without its full stop. What the web wrote is escaped already."""
    if isinstance(found, Unusable):
        return f"can't be asked for: {safe(found.reason, 2_500)}"
    if found.known is not None and found.crawl is not None:
        if found.known.record.outcome is not None:
            return _closed(found.known, found.known.record.outcome)
        return _open(found.known.record, found.crawl, found.domain, found.now)
    return _never_seen(found)


def _closed(known: Known, outcome: Outcome) -> str:
    record = known.record
    reason = safe(record.reason, 500)
    facts = record.facts
    match outcome:
        case Outcome.DONE if facts is not None and facts.blob is not None:
            return "stored"
        case Outcome.DONE if facts is not None and Flag.SITEMAP in facts.flags:
            return "done, as a sitemap: read for its links, and no page to be stored"
        case Outcome.DONE:
            return "done, but not stored: the page asks not to be kept"
        case Outcome.DUPLICATE if known.twin is not None:
            return f"a duplicate of {safe(known.twin.url.url, 2_500)}"
        case Outcome.BUDGET:
            return f"over budget: {reason or outcome.meaning}"
        case _:
            return f"{outcome}: {reason or outcome.meaning}"


def _open(record: UrlRecord, crawl: Crawl, domain: DomainRecord | None, now: float) -> str:
    if crawl.record.outcome is not None and crawl.record.status is CrawlStatus.ENDED:
        return f"still open: {_ended(crawl, crawl.record.outcome)} before its turn"
    if not crawl.alive:
        return "still open: the crawl was killed before its turn"
    waits = "" if domain is None else f"; its domain: {why(domain, now)}"
    match record.state:
        case State.WAITING:
            return "known, and no worker has it yet"
        case State.PARKED:
            return f"parked until its domain may be asked and has room{waits}"
        case State.ROUTED:
            return f"worker {record.worker} is to fetch it{waits}"
        case State.FETCHING:
            return f"worker {record.worker} is fetching it"
        case State.CLOSED:
            raise AssertionError("a closed URL has an outcome")
        case _:
            assert_never(record.state)


def _ended(crawl: Crawl, outcome: CrawlOutcome) -> str:
    rules = crawl.record.rules
    match outcome:
        case CrawlOutcome.PAGE_BUDGET:
            return f"over budget, the crawl had its --max-pages ({rules.max_pages:,})"
        case CrawlOutcome.BYTE_BUDGET:
            return f"over budget, the crawl was near its --max-bytes ({size(rules.max_bytes)})"
        case CrawlOutcome.STOPPED:
            return "the crawl was stopped"
        case _:
            return f"the crawl ended as {outcome}"


def _never_seen(found: Explanation) -> str:
    """By the sample of refused links, and else by the rules."""
    link = found.ruling.of_a_link
    if found.refused is not None:
        why_not = found.refused_means or (link.why if link is not None else "")
        return f"never added, a link to it was refused ({safe(found.refused)})" + (f": {safe(why_not, 500)}" if why_not else "")
    if found.crawl is None:
        return _would(found)
    return f"never seen, no page links to it as far as is known; by the rules it {_would(found)}"


def _would(found: Explanation) -> str:
    ruling = found.ruling
    if found.is_seed and ruling.address.passes is not False:
        return "would be fetched as a seed" + _if_allowed(found)
    if ruling.of_a_link is not None:
        return f"would not be followed: {safe(ruling.of_a_link.why, 500)}"
    # A host of a crowded domain that is known already is no new one.
    rules = [each for each in shares(found) if each.rule is not Budget.HOSTS or found.domain is None]
    if spent := next((each.used_up for each in rules if each.used_up), ""):
        return f"would be over budget: {spent}"
    if ruling.robots.passes is False:
        return f"would be forbidden: {safe(ruling.robots.why, 500)}"
    where = " if it is in scope" if ruling.scope.passes is None else ""
    return "would be followed" + where + _if_near(found) + _if_allowed(found) + _if_room(found)


def _if_near(found: Explanation) -> str:
    """Of most links that lie too deep no example is kept, so that this may well be why it was never seen."""
    most = found.settings.links.max_depth
    return "" if most is None else f", if it is at most {several(most, 'click')} from a seed (--max-depth)"


def _if_room(found: Explanation) -> str:
    """How many URLs of its path there are can't be read."""
    most = variants_most(found)
    return "" if most is None else f", unless {most:,} URLs of its path are known (--max-variants)"


def _if_allowed(found: Explanation) -> str:
    return ", if robots.txt allows it" if found.ruling.robots.passes is None else ""
