"""What a host, a registered domain and a path may cost: the counters that bound a trap.

Requests for pages are counted when they begin, so that a host's budget goes to its best URLs and not to those that were found
first; hosts of a domain and variants of a path when they are entered, since each would already cost a row. What a budget leaves
out is refused at the door, or closed as it is met. Nothing is marked: a crawl that is resumed with a larger budget goes on.
"""

from collections.abc import Mapping

from adapters.embedded.verbs.desk import Desk, DomainRow, SiteRow
from gossamer.budgets import Budget
from gossamer.messages import Link
from gossamer.urls import host_of


def spent(desk: Desk, domain: DomainRow) -> str:
    """Why no page of this domain is asked for any more; empty while one may be."""
    return _spent(desk, domain.name, domain.begun, desk.site(domain.site))


def count_page(desk: Desk, domain: DomainRow) -> None:
    """A request for a page begins."""
    desk.change(domain).begun += 1
    desk.change_site(domain.site).begun += 1


def refusal(desk: Desk, link: Link, sites: Mapping[str, str]) -> str:
    """Why an unknown link is not entered; empty if it is to be, and then its host and its family are counted."""
    domain, host = desk.find_domain(link.domain), host_of(link.url).removesuffix(".")
    # A host that is a unit of politeness is known by its domain's row; others have one of their own.
    known = domain is not None if host == link.domain else desk.knows_host(host)
    site = desk.site(sites.get(link.domain, link.domain) if domain is None else domain.site)
    reason = _spent(desk, link.domain, 0 if domain is None else domain.begun, site)
    reason = reason or _crowded(desk, link, site, is_new=not known and host not in desk.scope)
    if reason:
        return reason
    if not known:
        desk.change_site(site.name).hosts += 1
        if host != link.domain:
            desk.enter_host(host)
    if domain is None:
        desk.enter_domain(link.domain, site.name)
    return ""


def _spent(desk: Desk, name: str, begun: int, site: SiteRow) -> str:
    """Seeds' own hosts and domains have no budget of pages but the crawl's."""
    rules = desk.crawl.rules
    reason = "" if name in desk.scope else _used_up(Budget.HOST_PAGES, begun, rules.max_host_pages)
    reason = reason or ("" if site.own else _used_up(Budget.DOMAIN_PAGES, site.begun, rules.max_domain_pages))
    return "" if reason and _is_lifted(desk, name, site) else reason


def _crowded(desk: Desk, link: Link, site: SiteRow, *, is_new: bool) -> str:
    """Whether there are as many hosts of its site, or URLs of its path, as there may be; if not, it is counted as one of these.

    `is_new`: it would be the first of its host.
    """
    rules = desk.crawl.rules
    if _is_lifted(desk, link.domain, site):
        return ""
    if is_new and (reason := _used_up(Budget.HOSTS, site.hosts, rules.max_hosts)):
        return reason
    if not link.family or rules.max_variants is None:
        return ""
    if link.combines and (reason := _used_up(Budget.VARIANTS, desk.variants(link.family), rules.max_variants)):
        return reason
    desk.count_variant(link.family)
    return ""


def _used_up(budget: Budget, count: int, most: int | None) -> str:
    return budget.used_up(most) if most is not None and count >= most else ""


def _is_lifted(desk: Desk, name: str, site: SiteRow) -> bool:
    lifted = desk.crawl.rules.lifted
    return name in lifted or site.name in lifted
