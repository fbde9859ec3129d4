"""One server of each kind for all the tests of a process: started when it is first asked for, ended with the process.

Tests share them, so each works in a corner of its own (queue names, key prefixes, buckets), and never stops or empties one.
A server that is there already is used instead when its URL is in the environment.
"""

import atexit
import os
from functools import cache
from urllib.parse import urlsplit

from tests.servers.rabbitmq import Rabbitmq
from tests.servers.redis import Redis
from tests.servers.s3 import S3, S3Credentials
from tests.servers.server import Server


@cache
def rabbitmq_url() -> str:
    """amqp://user:password@host:port/vhost; `TEST_RABBITMQ_URL` names one that is there already."""
    return os.environ.get("TEST_RABBITMQ_URL") or _started(Rabbitmq()).url


@cache
def redis_url() -> str:
    """redis://:password@host:port/0; `TEST_REDIS_URL` names one that is there already."""
    return os.environ.get("TEST_REDIS_URL") or _started(Redis()).url


def s3_url() -> str:
    """http://host:port/bucket; `TEST_S3_URL` names one that is there already, with the usual AWS_… variables beside it."""
    return _s3()[0]


def s3_endpoint() -> str:
    """http://host:port, for a bucket of one's own."""
    parts = urlsplit(s3_url())
    return f"{parts.scheme}://{parts.netloc}"


def s3_credentials() -> S3Credentials:
    """What `s3_url` wants to see."""
    return _s3()[1]


@cache
def _s3() -> tuple[str, S3Credentials]:
    if url := os.environ.get("TEST_S3_URL"):
        return url, S3Credentials(os.environ["AWS_ACCESS_KEY_ID"], os.environ["AWS_SECRET_ACCESS_KEY"])
    server = S3()
    return _started(server).url, server.credentials


def _started(server: Server) -> Server:
    server.start()
    atexit.register(server.remove)
    return server
