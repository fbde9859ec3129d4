"""An explanation in lines for people. Pure; what the web wrote is escaped."""

from collections.abc import Iterator

from gossamer.budgets import Budget
from gossamer.outcomes import Outcome
from gossamer.records import UNRANKED, CrawlStatus, DomainRecord, Facts, UrlRecord
from gossamer.states import State
from services.controller.engines import ended_as
from services.controller.engines.deciding import Band, Check
from services.controller.explain import Crawl, Explanation, Unusable
from services.controller.explain.budgets import Share, shares
from services.controller.explain.verdict import verdict
from services.controller.summary import going_on, in_words, laid_out
from services.controller.wording import moment, safe, several, span

#: Longer than any URL that is crawled by default.
URL_SHOWN = 2_500

Lines = Iterator[tuple[str, str]]


def explain_text(found: Explanation | Unusable) -> str:
    if isinstance(found, Unusable):
        return laid_out(_head(found.text, found), list(_unusable(found)))
    lines = [
        *_names(found),
        *_history(found),
        *_way(found),
        *_checks(found),
        *_queue(found),
        *_clock(found),
        *_budgets(found),
        *_crawl(found.crawl),
        *_going_on(found),
    ]
    return laid_out(_head(found.url.url, found), lines)


def _head(url: str, found: Explanation | Unusable) -> str:
    said = verdict(found)
    return f"{_url(url)}: {said}" + ("" if said.endswith("?") else ".")


def _url(text: str) -> str:
    return safe(text, URL_SHOWN)


def _unusable(found: Unusable) -> Lines:
    if found.seen:
        yield "linked", "a page links to it: it is among the links that were refused"
    yield from _crawl(found.crawl)


def _names(found: Explanation) -> Lines:
    if found.text != found.url.url:
        yield "given", _url(found.text)
    left_out = f"   (without {', '.join(safe(each) for each in found.left_out)})" if found.left_out else ""
    yield "identity", ("as requested" if found.identity == found.url.url else _url(found.identity)) + left_out
    yield "id", found.url.id.hex()


def _history(found: Explanation) -> Lines:
    known, now = found.known, found.now
    if known is None:
        return
    record = known.record
    since = f"found {moment(record.added_at)}"
    if record.outcome is not None:
        yield "state", f"closed as {record.outcome}, {since}, closed {_took(record.changed_at - record.added_at)} later"
        yield "outcome", record.outcome.meaning.replace("`", "")
    else:
        yield "state", f"{record.state.name.lower()} for {span(now - record.changed_at)}, {since}"
    if record.reason and (reason := safe(record.reason, 500)) not in verdict(found):
        yield "reason", reason
    if record.facts is not None:
        yield from _answer(record.facts)
    if known.twin is not None and record.facts is not None:
        alike = "" if record.facts.similarity is None else f"{record.facts.similarity:.0%} alike: "
        yield "twin", f"{alike}{_url(known.twin.url.url)}"
    elif record.outcome is Outcome.DUPLICATE:
        yield "twin", "not known any more"
    yield "attempts", _attempts(record)


def _took(seconds: float) -> str:
    return f"{max(seconds, 0) * 1000:.0f} ms" if seconds < 1 else span(seconds)


def _answer(facts: Facts) -> Lines:
    if facts.status is not None:
        took = "" if facts.took_s is None else f", in {_took(facts.took_s)}"
        yield "answer", f"status {facts.status}{took}"
    if facts.title:
        yield "title", safe(facts.title, 200)
    if facts.flags:
        yield "flags", ", ".join(facts.flags)
    if facts.blob is not None:
        yield "stored", f"{facts.blob.length:,} bytes at {facts.blob.offset:,} in segment {safe(facts.blob.segment)}"


def _attempts(record: UrlRecord) -> str:
    deaths = f"its worker died with it alone {several(record.deaths, 'time')}" if record.deaths else "no worker died of it"
    if record.suspect:
        deaths = (deaths if record.deaths else "a worker died while it was in flight") + ": it is fetched alone next"
    return f"put off {several(record.deferrals, 'time')}, {deaths}"


def _way(found: Explanation) -> Lines:
    """How it was found, up to its seed."""
    if found.known is None:
        yield "depth", "a seed" if found.is_seed else _depth_unknown(found)
        return
    record = found.known.record
    yield "depth", _depth(record)
    child = record
    for parent in found.known.parents:
        seed = ", a seed" if parent.url.parent is None else ""
        yield "moved by" if child.url.hop else "linked by", f"{_url(parent.url.url)}{seed}"
        child = parent
    if child.url.parent is not None:
        yield "", f"and on: that one is {_depth(child)}"


def _depth(record: UrlRecord) -> str:
    hops = f", {several(record.url.hop, 'redirect')} on" if record.url.hop else ""
    if record.url.depth == 0:
        return f"a seed{hops}"
    return f"{several(record.url.depth, 'click')} from a seed{hops}"


def _depth_unknown(found: Explanation) -> str:
    most = found.settings.links.max_depth
    limit = "" if most is None else f"; links are followed up to {several(most, 'click')} from a seed (--max-depth)"
    return f"not known{limit}"


def _checks(found: Explanation) -> Lines:
    ruling = found.ruling
    taken = _taken_all_the_same(found) if ruling.shape.passes is False else ""
    yield "address", _check(ruling.address, "accepted", "refused")
    yield "scope", _check(ruling.scope, "in", "out")
    yield "shape", _check(ruling.shape, "accepted", "refused") + taken
    yield "robots", _check(ruling.robots, "allowed", "forbidden")
    if ruling.crawl_delay_s is not None:
        yield "", f"and it asks for a delay of {span(ruling.crawl_delay_s)}"
    if found.crawl is not None and (found.known is None or found.refused is not None):
        yield "refused", _refused(found.refused, found.refused_means, found.crawl)


def _taken_all_the_same(found: Explanation) -> str:
    if found.is_seed:
        return "; but a seed is taken as it is"
    return "; but a sitemap is taken all the same" if found.settings.links.sitemaps else ""


def _check(check: Check, yes: str, no: str) -> str:
    word = "not known" if check.passes is None else yes if check.passes else no
    return f"{word}: {safe(check.why, 500)}"


def _refused(reason: str | None, means: str, crawl: Crawl) -> str:
    """By the examples that are kept of links that were not followed."""
    if reason is not None:
        return f"a link to it ({safe(reason)})" + (f": {safe(means, 500)}" if means else "") + "; on which page is not kept"
    links = sum(crawl.counts.refused.values())
    return f"not known: it is none of the examples kept of {several(links, 'refused link')}" if links else "no link was"


def _queue(found: Explanation) -> Lines:
    if found.known is not None:
        record = found.known.record
        unranked = record.state is State.WAITING and record.priority == UNRANKED
        yield "priority", f"{_band(record.priority, found.known.band)}" + (", as until it is ranked" if unranked else "")
    elif found.seed_band is not None:
        yield "priority", _band(*found.seed_band)
    else:
        yield "priority", f"not known: it is ranked when it is found (--prioritizer {safe(found.settings.frontier.prioritizer)})"


def _band(priority: int, band: Band) -> str:
    return f"{priority} (0 is first, 100 last), in band {band.number} of {band.of}: {band.first} to {band.last}"


def _clock(found: Explanation) -> Lines:
    domain = found.domain
    if domain is None or found.crawl is None:
        return
    owner = "nobody's" if domain.owner is None else f"worker {domain.owner}'s"
    out = f"{several(domain.out, 'URL')} with its worker, {domain.parked:,} parked"
    closed = f"; given up as {domain.closed}" if domain.closed is not None else ""
    is_or_was = "is" if found.crawl.alive else "was"
    yield "domain", f"{safe(domain.name)} {is_or_was} {owner}: {several(domain.stored, 'page')} stored, {out}{closed}"
    trouble = f"{several(domain.failures, 'failure')} in a row, {several(domain.rests, 'rest')}"
    yield "clock", f"a delay of {span(domain.delay_s)}, {_next(domain, found.now, alive=found.crawl.alive)}; {trouble}"


def _budgets(found: Explanation) -> Lines:
    if spent := {share.rule: share for share in shares(found)}:
        host, domain, hosts = (spent[rule] for rule in (Budget.HOST_PAGES, Budget.DOMAIN_PAGES, Budget.HOSTS))
        asked = f"{several(host.count, 'page')} of its host asked for{_most(host)}, {domain.count:,} of its registered domain"
        yield "budgets", f"{asked}{_most(domain)}, which has {several(hosts.count, 'host')}{_most(hosts)}"


def _most(share: Share) -> str:
    return " (no limit)" if share.most is None else f" (at most {share.most:,})"


def _next(domain: DomainRecord, now: float, *, alive: bool) -> str:
    if domain.busy is not None:
        return "a request is in flight" if alive else "a request was in flight when its worker died"
    if now < domain.not_before:
        return f"to be left alone for {span(domain.not_before - now)} more"
    if now < domain.next_at:
        return f"may be asked in {span(domain.next_at - now)}"
    return "may be asked now"


def _crawl(crawl: Crawl | None) -> Lines:
    if crawl is None:
        yield "crawl", "none was asked: this is by settings alone, and nothing was asked of the web"
        return
    record = crawl.record
    outcome = ended_as(record, crawl.counts)
    if record.status is CrawlStatus.ENDED and outcome is not None:
        how = in_words(outcome, crawl.counts)
    elif crawl.process is not None:
        how = f"{record.status}, in process {crawl.process}"
    else:
        how = f"{record.status}, elsewhere" if crawl.alive else "it does not run, and has not ended"
    yield "crawl", f"{crawl.place.id}: {how}"


def _going_on(found: Explanation) -> Lines:
    """For what is still open in a crawl that nobody works on."""
    crawl, known = found.crawl, found.known
    if crawl is None or known is None or known.record.outcome is not None:
        return
    if crawl.record.status is CrawlStatus.ENDED or not crawl.alive:
        yield going_on(crawl.place, crawl.record, crawl.record.outcome)
