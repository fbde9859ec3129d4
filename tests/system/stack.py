"""The three servers of a distributed crawl, each of which may be stopped, and a crawl on them, looked at through its ledger."""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from adapters.distributed.broker import RabbitBroker
from adapters.distributed.ledger import RedisLedger
from gossamer.errors import GossamerError, NoCrawl
from gossamer.ids import CrawlId
from gossamer.settings import QueueType
from tests.servers import S3, Rabbitmq, Redis
from tests.system.web import PATIENCE_S, ROOT, start

T = TypeVar("T")


@dataclass(frozen=True)
class Stack:
    rabbitmq: Rabbitmq
    redis: Redis
    s3: S3

    @property
    def environ(self) -> Mapping[str, str]:
        """What a controller, or a role, has to know."""
        return {
            "GOSSAMER_RABBITMQ_URL": self.rabbitmq.url,
            "GOSSAMER_REDIS_URL": self.redis.url,
            "GOSSAMER_S3_URL": self.s3.url,
            "AWS_ACCESS_KEY_ID": self.s3.credentials.access_key,
            "AWS_SECRET_ACCESS_KEY": self.s3.credentials.secret_key,
        }

    def ask(self, crawl: CrawlId, question: Callable[[RedisLedger], Awaitable[T]]) -> T:
        """One question to a crawl's ledger."""

        async def asked() -> T:
            ledger = RedisLedger(self.redis.url, crawl)
            try:
                return await question(ledger)
            finally:
                await ledger.close()

        return asyncio.run(asked())

    def ask_broker(self, crawl: CrawlId, question: Callable[[RabbitBroker], Awaitable[T]]) -> T:
        async def asked() -> T:
            broker = RabbitBroker(self.rabbitmq.url, crawl, queue_type=QueueType.CLASSIC, expires_s=300)
            try:
                return await question(broker)
            finally:
                await broker.close()

        return asyncio.run(asked())


@contextmanager
def running_stack() -> Iterator[Stack]:
    with Rabbitmq() as rabbitmq, Redis() as redis, S3() as s3:
        yield Stack(rabbitmq, redis, s3)


@dataclass(frozen=True)
class Crawling:
    """A crawl that a controller runs, in its folder, while the test does something to it."""

    stack: Stack
    folder: Path
    process: "subprocess.Popen[str]"

    @property
    def id(self) -> CrawlId:
        return crawl_in(self.folder)

    def said(self) -> str:
        """All that it says, once it has ended."""
        return self.process.communicate(timeout=PATIENCE_S)[0]

    def until_stored(self, pages: int) -> None:
        """By the ledger; while that is away nothing is known."""

        def enough() -> bool:
            try:
                return self.stack.ask(self.id, lambda ledger: ledger.counts()).stored >= pages
            except (GossamerError, FileNotFoundError):
                assert self.process.poll() is None, self.process.communicate()[0]
                return False

        until(enough, f"{pages} pages are stored")

    def workers(self) -> list[int]:
        """The processes of the workers that have a seat."""
        workers = self.stack.ask(self.id, lambda ledger: ledger.workers())
        return [int(worker.process.split()[1]) for worker in workers]

    def roles(self) -> list[int]:
        """The controller's own children: the frontier first."""
        pid = self.process.pid
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def crawl_in(folder: Path) -> CrawlId:
    return CrawlId(json.loads((folder / "state" / "crawl.json").read_text())["id"])


@contextmanager
def crawling(stack: Stack, folder: Path, *words: str, environ: Mapping[str, str] = {}) -> Iterator[Crawling]:
    """Started by these words, with its state in `state`. Whatever the test leaves is killed."""
    process = start(folder, *words, environ={**stack.environ, **environ})
    try:
        yield Crawling(stack, folder, process)
    finally:
        if process.poll() is None:
            process.kill()
            process.communicate(timeout=PATIENCE_S)


@contextmanager
def worker_process(stack: Stack, folder: Path, crawl: CrawlId, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    """One more worker, as an operator would start it."""
    with role_process(stack, folder, "worker", "--crawl", crawl, *words) as process:
        yield process


@contextmanager
def role_process(stack: Stack, folder: Path, role: str, *words: str) -> Iterator["subprocess.Popen[bytes]"]:
    """Ended by SIGTERM, if it has not ended before."""
    environ = {**os.environ, **stack.environ, "PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-m", f"services.{role}", *words]
    process = subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(timeout=PATIENCE_S)


def until(condition: Callable[[], bool], what: str) -> None:
    """Waits for it, as long as anything here may take."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, f"not within {PATIENCE_S} s: {what}"
        time.sleep(0.02)


def is_gone(stack: Stack, crawl: CrawlId) -> bool:
    try:
        stack.ask(crawl, lambda ledger: ledger.crawl())
    except NoCrawl:
        return True
    return False
