"""How a crawl begins, whatever it stands on: what it was asked for is checked, and put into words for the ledger."""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from gossamer import kept
from gossamer.errors import SettingsError
from gossamer.forms import Output
from gossamer.ids import CrawlId, Epoch, WorkerId
from gossamer.module import CrawlInfo
from gossamer.options import parse_spec
from gossamer.records import Rules
from gossamer.settings import Politeness, Settings
from services.frontier import choice
from services.worker import plugins
from services.worker.addresses import allowed_nets, url_refusal
from services.worker.plugins import Loaded

#: One read beyond a page's cap: what a request may receive at most.
READ_BYTES: Final = 16_384
#: Where modules write that are told nothing else.
OUT: Final = Path("out")


def check(settings: Settings) -> None:
    """Raises `SettingsError` for a prioritizer, a rank file, a module or a seed that can't work."""
    choice.check(settings.frontier)
    plugins.load(map(parse_spec, settings.start.modules))
    for url in settings.start.seeds:
        if (reason := url_refusal(url, allowed_nets(settings))) is not None:
            hint = "" if reason.startswith("port") else "; --allow-net admits networks of your own"
            raise SettingsError(f"--seed {url}: {reason}{hint}")


class Plugins(msgspec.Struct, frozen=True):
    """The crawl's modules, and the files that are merged of what they write."""

    modules: Sequence[Loaded]
    outputs: Sequence[Output]


def load_plugins(settings: Settings, crawl: CrawlId, *, resume: bool, out: Path = OUT) -> Plugins:
    """Raises `SettingsError`, also if a new crawl's output would be mixed with an earlier one's."""
    loaded = plugins.load(map(parse_spec, settings.start.modules))
    outputs = plugins.outputs(loaded, CrawlInfo(id=crawl, out_dir=out, worker=WorkerId(0), epoch=Epoch(0)))
    if not resume:
        plugins.refuse_taken(outputs)
    return Plugins(loaded, outputs)


def rules(settings: Settings) -> Rules:
    """What the ledger decides by."""
    budgets, patience = settings.budgets, settings.patience
    by_host = settings.manners.politeness is Politeness.HOST
    return Rules(
        max_pages=budgets.max_pages,
        max_bytes=budgets.max_bytes,
        # The ledger counts by the unit of politeness: where that is the registered domain, there is one budget of pages for it.
        max_host_pages=budgets.max_host_pages if by_host else None,
        max_domain_pages=budgets.max_domain_pages,
        max_hosts=budgets.max_hosts,
        max_variants=budgets.max_variants,
        lifted=budgets.lift,
        request_bytes=budgets.max_page_bytes + READ_BYTES,
        queue_size=settings.frontier.queue_size,
        delay_s=settings.manners.delay_s,
        lease_s=patience.lease_s,
        owner_s=patience.owner_s,
        ttl_s=settings.storage.ttl_s,
        poison_deaths=patience.poison_deaths,
        domain_failures=patience.domain_failures,
        domain_rest_s=patience.domain_rest_s,
        domain_rests=patience.domain_rests,
        similarity=settings.fetching.similarity,
        keep_outlinks=choice.reads_links(settings.frontier),
        settings=kept.to_text(settings),
    )
