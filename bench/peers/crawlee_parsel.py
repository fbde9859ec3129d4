# mypy: ignore-errors
"""Crawlee for Python: its crawler with the lightest parser, storage in memory, no sessions, hardly any logging.

python crawlee_parsel.py SEED ...
"""

import asyncio
import logging
import sys

from crawlee import ConcurrencySettings
from crawlee.crawlers import ParselCrawler
from crawlee.storage_clients import MemoryStorageClient


async def main(seeds):
    crawler = ParselCrawler(
        storage_client=MemoryStorageClient(),
        respect_robots_txt_file=True,
        use_session_pool=False,
        retry_on_blocked=False,
        configure_logging=False,
        concurrency_settings=ConcurrencySettings(min_concurrency=16, desired_concurrency=32, max_concurrency=64),
    )

    @crawler.router.default_handler
    async def follow(context):
        await context.enqueue_links(strategy="all")

    await crawler.run(seeds)


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    asyncio.run(main(sys.argv[1:]))
