"""Gathers what is known of a URL: from a crawl's ledger, whoever runs that, or from settings alone. Reads, and writes nothing."""

from dataclasses import replace
from typing import Final

from gossamer import kept
from gossamer.errors import UrlError
from gossamer.ids import UrlId
from gossamer.ports.ledger import Ledger
from gossamer.records import UrlRecord
from gossamer.settings import Engine, Settings
from gossamer.urls import host_of, identity, origin_of, requested
from services.controller.crawls import Place, runner
from services.controller.engines import deciding
from services.controller.explain import Crawl, Explanation, Known, Unusable
from services.controller.explain.spelling import left_out
from services.controller.inputs import checked, hint
from services.controller.outside import Outside
from services.controller.reading import ledger_of

#: Pages between a URL and its seed that are named.
PARENTS_MAX: Final = 10


def dry(text: str, settings: Settings, now: float) -> Explanation | Unusable:
    """What would become of it in a crawl with these settings. Raises `SettingsError` for settings that can't be."""
    with_seeds = settings.start.seeds or settings.start.seeds_file is not None
    return _would(text, checked(settings) if with_seeds else settings, now)


async def asked(text: str, place: Place, outside: Outside) -> Explanation | Unusable:
    """What became of it in this crawl. Raises `SettingsError` if that had not begun, `LedgerUnavailable` if it can't be read."""
    async with ledger_of(place, outside) as ledger:
        crawl = await _crawl(place, ledger)
        own = kept.from_text(crawl.record.rules.settings, {}).settings
        settings = replace(own, start=replace(own.start, seeds=place.seeds))
        examples = {example: reason for reason, example in await ledger.refused()}
        would = _would(text, settings, outside.clock.now())
        if isinstance(would, Unusable):
            return replace(would, crawl=crawl, seen=text in examples)
        (record,) = await ledger.records([would.url.id])
        url = would.url if record is None else record.url  # in the spelling that was found first, which is the one that counts
        refused = next((reason for each, reason in examples.items() if each == url.url or _identity(each) == would.identity), None)
        robots = await ledger.robots(origin_of(url.url))
        domain = await ledger.domain(url.domain)
        return replace(
            would,
            url=url,
            left_out=list(dict.fromkeys((*would.left_out, *left_out("", url.url)))),
            ruling=deciding.ruling(url.url, settings, crawl.record.scope, robots),
            crawl=crawl,
            known=None if record is None else await _known(record, settings, ledger),
            domain=domain,
            site=await ledger.site(deciding.site_of(url.url)),  # it may be known when this host of it is not
            refused=refused,
            refused_means=deciding.refusal_meaning(refused or "", settings),
        )


def _would(text: str, settings: Settings, now: float) -> Explanation | Unusable:
    """By settings alone; all seeds are in `start.seeds`."""
    try:
        url = requested(text, length_max=settings.links.max_url_length)
    except UrlError as refusal:
        return Unusable(text, _words(refusal, text, settings), crawl=None, seen=False)
    seeds = settings.start.seeds
    scope = [host_of(seed) for seed in seeds] if seeds else None
    about = deciding.url_of(url, settings)
    is_seed = identity(url) in map(identity, seeds)
    priority = deciding.seed_priority(about, settings)
    return Explanation(
        text=text,
        url=about,
        identity=identity(url),
        left_out=left_out(text, url),
        settings=settings,
        ruling=deciding.ruling(url, settings, scope, None),
        is_seed=is_seed,
        crawl=None,
        known=None,
        domain=None,
        site=None,
        refused=None,
        refused_means="",
        seed_band=(priority, deciding.band(priority, settings)) if is_seed else None,
        now=now,
    )


async def _crawl(place: Place, ledger: Ledger) -> Crawl:
    process = runner(place.folder)
    record, counts = await ledger.crawl(), await ledger.counts()
    # Leases outlive a process that was killed: where all roles are in one, its lock is the better witness.
    elsewhere = place.engine is not Engine.EMBEDDED and bool(await ledger.workers())
    return Crawl(place=place, record=record, counts=counts, process=process, alive=process is not None or elsewhere)


async def _known(record: UrlRecord, settings: Settings, ledger: Ledger) -> Known:
    twin = await _record(record.facts.twin, ledger) if record.facts is not None else None
    parents: list[UrlRecord] = []
    parent = await _record(record.url.parent, ledger)
    while parent is not None and len(parents) < PARENTS_MAX:
        parents.append(parent)
        parent = await _record(parent.url.parent, ledger)
    return Known(record=record, parents=parents, twin=twin, band=deciding.band(record.priority, settings))


async def _record(id: UrlId | None, ledger: Ledger) -> UrlRecord | None:
    return None if id is None else (await ledger.records([id]))[0]


def _identity(example: str) -> str | None:
    """Of what a page links to, as it was kept; None for what is no URL."""
    try:
        return identity(requested(example))
    except UrlError:
        return None


def _words(refusal: UrlError, text: str, settings: Settings) -> str:
    most = settings.links.max_url_length
    long = f": {len(text):,} characters, of at most {most:,} (--max-url-length)" if len(text) > most else ""
    return f"{refusal}{long}{hint(text)}"
