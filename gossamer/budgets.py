"""Budgets of hosts, registered domains and paths, in the words that a URL is told which one of them keeps out.

A trap (a calendar without end, filters that combine, a name server that knows every host) can't be told from a large site by
looking at it. So what one host, domain or path may cost is bounded, and since a bound may cut a good site as well, whatever is
left out says which rule did it, and its number: the setting to raise, or to lift for that domain, is the first word.
"""

from enum import StrEnum


class Budget(StrEnum):
    """A rule as it is told; its number goes in for `%d`. The ledger's Lua fills in the same texts."""

    HOST_PAGES = "max_host_pages: %d pages of its host were asked for"
    DOMAIN_PAGES = "max_domain_pages: %d pages of its registered domain were asked for"
    HOSTS = "max_hosts: %d hosts of its registered domain are known"
    VARIANTS = "max_variants: %d URLs of its path are known, and it combines parameters"

    def used_up(self, most: int) -> str:
        """Why a URL is left out."""
        return self.value % most
