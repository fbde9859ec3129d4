"""Real servers for the tests: RabbitMQ, Redis, S3.

`rabbitmq_url()`, `redis_url()` and `s3_url()` name servers that all tests of a process share. A test that stops, kills or
empties one takes its own: `with Redis() as server: ...`. They are programs of this machine or else containers, listen on the
loopback address alone, and are gone when the tests are, however those end. Without either the test is skipped, and fails
where `CI=true`.
"""

from tests.servers.rabbitmq import Rabbitmq
from tests.servers.redis import Redis
from tests.servers.runners import ServerFailed
from tests.servers.s3 import S3, S3Credentials, s3_client
from tests.servers.server import Server
from tests.servers.shared import rabbitmq_url, redis_url, s3_credentials, s3_endpoint, s3_url

__all__ = [
    "S3",
    "Rabbitmq",
    "Redis",
    "S3Credentials",
    "Server",
    "ServerFailed",
    "rabbitmq_url",
    "redis_url",
    "s3_client",
    "s3_credentials",
    "s3_endpoint",
    "s3_url",
]
