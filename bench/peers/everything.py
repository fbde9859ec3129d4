# mypy: ignore-errors
"""A spider that follows every link, as Scrapy's documentation shows one, with a line of JSON for each page.

Runs in the peers' own environment (requirements.txt), never in ours. To go on after a death the same words are given again.

    python everything.py jobdir FOLDER SEED FEED DELAY       Scrapy, its queue and its seen requests in FOLDER (JOBDIR)
    python everything.py redis URL - FEED DELAY              scrapy-redis: both in Redis, as is the seed
"""

import sys

from scrapy import Spider
from scrapy.crawler import CrawlerProcess
from scrapy.http import HtmlResponse
from scrapy.linkextractors import LinkExtractor
from scrapy_redis.spiders import RedisSpider

LINKS = LinkExtractor()


def parse(self, response):
    if isinstance(response, HtmlResponse):
        yield {"url": response.url, "title": response.css("title::text").get()}
        for link in LINKS.extract_links(response):
            yield response.follow(link)


class Everything(Spider):
    name = "everything"
    parse = parse


class EverythingOfRedis(RedisSpider):
    name = "everything"
    max_idle_time = 10  # it never ends otherwise
    parse = parse


def main(kind: str, where: str, seed: str, feed: str, delay: str) -> None:
    settings = {
        "ROBOTSTXT_OBEY": True,
        "DOWNLOAD_DELAY": float(delay),
        "RANDOMIZE_DOWNLOAD_DELAY": False,
        "CONCURRENT_REQUESTS_PER_DOMAIN": 1,
        "FEEDS": {feed: {"format": "jsonlines"}},  # a file that is there is added to
        "LOG_LEVEL": "ERROR",
        "TELNETCONSOLE_ENABLED": False,
    }
    if kind == "jobdir":
        Everything.start_urls = [seed]
        process = CrawlerProcess({**settings, "JOBDIR": where})
        process.crawl(Everything)
    else:
        scheduler = {
            "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
            "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
            "SCHEDULER_PERSIST": True,
            "REDIS_URL": where,
        }
        process = CrawlerProcess({**settings, **scheduler})
        process.crawl(EverythingOfRedis)
    process.start()


if __name__ == "__main__":
    main(*sys.argv[1:])
