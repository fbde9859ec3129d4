# mypy: ignore-errors
"""Scrapy tuned for cost: little logging, no spare middleware, no tasks in vain, cheap links.

Links are read off the tree that Scrapy parses anyway, resolved against Scrapy's own base URL, and looked up by their spelling
before a Request is made: those that begin with "/" or a scheme are known by their spelling alone. Of all that is tuned here this is
worth most, since Scrapy's own link extractor makes a Link and a Request for each of a page's links, known or not.

    python scrapy_tuned.py SEED ...
"""

import logging
import sys
from urllib.parse import urldefrag, urljoin, urlsplit

from scrapy import Request, Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse
from scrapy.linkextractors import IGNORED_EXTENSIONS
from scrapy.utils.response import get_base_url

SETTINGS = {
    "ROBOTSTXT_OBEY": True,
    "DOWNLOAD_DELAY": 0,
    "CONCURRENT_REQUESTS": 64,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "CONCURRENT_ITEMS": 1,  # Scrapy starts that many tasks for every response
    "AUTOTHROTTLE_ENABLED": False,
    "HTTPCACHE_ENABLED": False,
    "COOKIES_ENABLED": False,
    "TELNETCONSOLE_ENABLED": False,
    "LOG_LEVEL": "ERROR",
    "LOGSTATS_INTERVAL": 0,
    "MEMUSAGE_ENABLED": False,
    "REFERER_ENABLED": False,
    "DOWNLOADER_STATS": False,
    "STATS_CLASS": "scrapy.statscollectors.DummyStatsCollector",
    "EXTENSIONS": {
        "scrapy.extensions.corestats.CoreStats": None,
        "scrapy.extensions.logstats.LogStats": None,
        "scrapy.extensions.memusage.MemoryUsage": None,
    },
    "TWISTED_REACTOR": "twisted.internet.asyncioreactor.AsyncioSelectorReactor",
    "ASYNCIO_EVENT_LOOP": "uvloop.Loop",
    "SPIDER_MIDDLEWARES": {
        "scrapy.spidermiddlewares.depth.DepthMiddleware": None,
        "scrapy.spidermiddlewares.referer.RefererMiddleware": None,
        "scrapy.spidermiddlewares.urllength.UrlLengthMiddleware": None,
    },
    "DOWNLOADER_MIDDLEWARES": {
        "scrapy.downloadermiddlewares.httpauth.HttpAuthMiddleware": None,
        "scrapy.downloadermiddlewares.httpproxy.HttpProxyMiddleware": None,
        "scrapy.downloadermiddlewares.stats.DownloaderStats": None,
    },
}
IGNORED = tuple("." + extension for extension in IGNORED_EXTENSIONS)
WHITE = str.maketrans("", "", "\t\n\r")
logging.disable(logging.WARNING)  # LOG_LEVEL filters in the handler, after each record was made


class Tuned:
    """What both spiders have, with and without Redis."""

    name = "everything"
    custom_settings = SETTINGS

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.seen = set()

    def parse(self, response):
        if isinstance(response, HtmlResponse):
            for url in new_links(response, self.seen):
                yield Request(url, encoding=response.encoding)


class Everything(Tuned, Spider):
    pass


def new_links(response, seen):
    """Absolute http(s) URLs of <a> and <area> that were not seen before."""
    base = get_base_url(response)
    parts = urlsplit(base)
    origin = f"{parts.scheme}://{parts.netloc}"
    found = []
    for element in response.selector.root.iter("a", "area"):
        href = element.get("href")
        if not href:
            continue
        spelling = origin + href if href[0] == "/" else href
        if spelling in seen:  # known from this host, or absolute: no need to resolve it again
            continue
        url = urldefrag(urljoin(base, href.translate(WHITE).strip())).url
        known = url in seen
        if href[0] == "/":
            seen.add(spelling)
        seen.add(url)
        if not known and url[:4].lower() == "http" and not urlsplit(url).path.lower().endswith(IGNORED):
            found.append(url)
    return found


if __name__ == "__main__":
    process = CrawlerProcess()
    process.crawl(Everything, start_urls=sys.argv[1:])
    process.start()
