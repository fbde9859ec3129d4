"""Seed: the URLs that a crawl begins with become known to the ledger, and are hinted at.

Adding is idempotent, so a controller that died in between does it again; a seed without its hint is found by the frontier's asking.
"""

from collections.abc import Callable, Sequence

from gossamer.crash import step
from gossamer.messages import Found, Url, encode, in_hints
from gossamer.ports.broker import URLS, Broker
from gossamer.ports.ledger import Ledger
from gossamer.urls import domain_of, host_of, identity, requested, sites_of, url_id


def seeds(texts: Sequence[str], registrable: Callable[[str], str] | None) -> list[Url]:
    """The seeds in the form that is requested. Raises `UrlError` for what is none."""
    urls = [requested(text) for text in texts]
    return [Url(url_id(identity(url)), url, domain_of(url, registrable)) for url in urls]


@step("controller.seed")
async def add(ledger: Ledger, urls: Sequence[Url], registrable: Callable[[str], str]) -> list[Url]:
    """Those that were not known."""
    hosts = {host_of(url.url).removesuffix(".") for url in urls}
    return await ledger.add(urls, sorted(hosts), sites_of(hosts | {url.domain for url in urls}, registrable))


@step("controller.announce")
async def announce(broker: Broker, urls: Sequence[Url]) -> None:
    await broker.publish(URLS, [encode(Found(each)) for each in in_hints(urls)])
