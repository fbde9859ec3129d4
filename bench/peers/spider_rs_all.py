# mypy: ignore-errors
"""spider_rs, whose core is Rust: a Website for each seed, all at once in one process.

A Website is one domain. On hosts that are addresses, or have a port, it follows no link at all unless the host is also named as an
external domain, so it is.

    python spider_rs_all.py SEED ...
"""

import sys
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from spider_rs import Website


def crawl(seed):
    host = urlsplit(seed)
    website = Website(seed).with_respect_robots_txt(True).with_delay(0).with_user_agent("spider_rs")
    website.with_external_domains([host.netloc, host.hostname]).build().crawl()


if __name__ == "__main__":
    with ThreadPoolExecutor(len(sys.argv) - 1) as pool:
        list(pool.map(crawl, sys.argv[1:]))
