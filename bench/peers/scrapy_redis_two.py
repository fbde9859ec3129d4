# mypy: ignore-errors
"""scrapy-redis: the tuned spider in two processes, with one queue and one dupe filter in Redis.

REDIS_URL=redis://… python scrapy_redis_two.py SEED ...      empties that database, and starts itself twice without seeds
"""

import os
import subprocess
import sys

from redis import Redis
from scrapy import Request
from scrapy.crawler import CrawlerProcess
from scrapy_redis.spiders import RedisSpider
from scrapy_tuned import SETTINGS, Tuned

KEY = "everything:start_urls"


class Everything(Tuned, RedisSpider):
    redis_key = KEY
    redis_batch_size = 10  # so that both processes get seeds
    max_idle_time = 3  # it never ends otherwise
    custom_settings = SETTINGS | {
        "CONCURRENT_REQUESTS": 32,
        "SCHEDULER": "scrapy_redis.scheduler.Scheduler",
        "DUPEFILTER_CLASS": "scrapy_redis.dupefilter.RFPDupeFilter",
        "SCHEDULER_PERSIST": True,
        "REDIS_URL": os.environ["REDIS_URL"],
    }

    def make_request_from_data(self, data):
        return Request(data.decode())


def start_both(seeds):
    with Redis.from_url(os.environ["REDIS_URL"]) as server:
        server.flushdb()
        server.rpush(KEY, *seeds)
    for child in [subprocess.Popen([sys.executable, __file__]) for _ in range(2)]:
        child.wait()


def crawl():
    process = CrawlerProcess()
    process.crawl(Everything)
    process.start()


if __name__ == "__main__":
    if seeds := sys.argv[1:]:
        start_both(seeds)
    else:
        crawl()
