# mypy: ignore-errors
"""Scrapy as it comes: its default settings and its own link extractor, but robots.txt obeyed and no delay.

Runs in the peers' own environment (requirements.txt), as all drivers here do.

    python scrapy_plain.py SEED ...
"""

import sys

from scrapy import Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor


class Everything(Spider):
    name = "everything"
    custom_settings = {"ROBOTSTXT_OBEY": True, "DOWNLOAD_DELAY": 0}  # noqa: RUF012  # as Scrapy's documentation writes it
    extractor = LinkExtractor()

    def parse(self, response):
        if isinstance(response, HtmlResponse):
            for link in self.extractor.extract_links(response):
                yield response.follow(link)


if __name__ == "__main__":
    process = CrawlerProcess()
    process.crawl(Everything, start_urls=sys.argv[1:])
    process.start()
