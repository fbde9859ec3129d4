"""How much of their budgets a URL's host and registered domain have used, by the ledger's counts. Pure."""

from dataclasses import dataclass

from gossamer.budgets import Budget
from gossamer.urls import family_of
from services.controller.explain import Explanation


@dataclass(frozen=True, slots=True)
class Share:
    """What was counted for one rule, and where that ends."""

    rule: Budget
    count: int
    most: int | None  #: None: it does not hold here

    @property
    def used_up(self) -> str:
        """Why URLs are left out by it; empty while they are not."""
        return self.rule.used_up(self.most) if self.most is not None and self.count >= self.most else ""


def shares(found: Explanation) -> list[Share]:
    """Of those rules that count requests and hosts; how many URLs of its path there are is counted where it can't be read."""
    if found.crawl is None or found.site is None:
        return []
    rules, name, site = found.crawl.record.rules, found.url.domain, found.site
    begun = 0 if found.domain is None else found.domain.begun
    lifted = is_lifted(found)
    return [
        # Seeds' own have no budget of pages but the crawl's.
        Share(Budget.HOST_PAGES, begun, None if lifted or name in found.crawl.record.scope else rules.max_host_pages),
        Share(Budget.DOMAIN_PAGES, site.begun, None if lifted or site.own else rules.max_domain_pages),
        Share(Budget.HOSTS, site.hosts, None if lifted else rules.max_hosts),
    ]


def variants_most(found: Explanation) -> int | None:
    """How many URLs of its path may be known before it is left out, if it is one that combines parameters; None: it never is."""
    if found.crawl is None or not family_of(found.identity)[1] or is_lifted(found):
        return None
    return found.crawl.record.rules.max_variants


def is_lifted(found: Explanation) -> bool:
    names = {found.url.domain} if found.site is None else {found.url.domain, found.site.name}
    return found.crawl is not None and not names.isdisjoint(found.crawl.record.rules.lifted)
