"""An S3 server with keys of its own: SeaweedFS, all parts in one process."""

import secrets
import urllib.request
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from tests.servers.containers import Container, can_run
from tests.servers.ports import GRPC_OFFSET, free_ports
from tests.servers.programs import Program, find_program, new_folder
from tests.servers.runners import Runner
from tests.servers.server import Plan, Server, missing

IMAGE: Final = "chrislusf/seaweedfs:4.48"
INSTALL: Final = "make env"
BUCKET: Final = "gossamer-test"

_OPTIONS: Final = (
    "-master.telemetry=false",
    "-master.volumePreallocate=false",
    "-s3.autoCreateBucket=false",  # as S3 itself, and so that who forgets to make a bucket is found out
    "-s3.port.iceberg=0",
    "-s3.port.lance=0",
    "-webdav=false",
    "-admin.ui=false",
)


@dataclass(frozen=True, slots=True)
class S3Credentials:
    access_key: str
    secret_key: str


class S3(Server):
    """Its URL names a bucket that is there; others can be made."""

    def __init__(self) -> None:
        self.credentials = S3Credentials(f"test{secrets.token_hex(8)}", secrets.token_hex(20))
        super().__init__(lambda: _plan(self.credentials))


def s3_client(endpoint: str, credentials: S3Credentials) -> Any:
    """A client that asks once and does not wait long, for looking at the server from a test."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        region_name="us-east-1",
        aws_access_key_id=credentials.access_key,
        aws_secret_access_key=credentials.secret_key,
        config=Config(
            connect_timeout=5,
            read_timeout=10,
            retries={"mode": "standard", "total_max_attempts": 1},
            s3={"addressing_style": "path"},
        ),
    )


def _plan(credentials: S3Credentials) -> Plan:
    ports = free_ports(5)
    runner: Runner
    keys = {"AWS_ACCESS_KEY_ID": credentials.access_key, "AWS_SECRET_ACCESS_KEY": credentials.secret_key}
    if program := find_program("weed"):
        runner = _program(program, ports, keys)
    elif can_run(IMAGE):
        runner = Container(IMAGE, ports[0], 8333, ["mini", "-dir=/data", "-ip=127.0.0.1", "-ip.bind=0.0.0.0", *_OPTIONS], keys)
    else:
        missing("S3 server", INSTALL)
    endpoint = f"http://127.0.0.1:{ports[0]}"
    return Plan(runner, f"{endpoint}/{BUCKET}", lambda: _why_not_ready(endpoint, credentials))


def _program(program: str, ports: list[int], keys: dict[str, str]) -> Program:
    folder = new_folder()
    parts = ("s3", "master", "volume", "filer", "admin")
    here = [
        f"-dir={folder / 'data'}",
        "-ip=127.0.0.1",
        "-ip.bind=127.0.0.1",
        f"-filer.localSocket={folder / 'filer.sock'}",
        f"-s3.localSocket={folder / 's3.sock'}",
        *(f"-{part}.port={port}" for part, port in zip(parts, ports, strict=True)),
    ]
    # It makes these wherever else it is told to live, and a killed one leaves them.
    sockets = [Path(f"/tmp/seaweedfs-{part}-grpc-{port + GRPC_OFFSET}.sock") for part, port in zip(parts, ports, strict=True)]
    return Program(folder, [program, "-logtostderr=true", "mini", *here, *_OPTIONS], keys, leftovers=sockets)


def _why_not_ready(endpoint: str, credentials: S3Credentials) -> str | None:
    try:
        with urllib.request.urlopen(f"{endpoint}/healthz", timeout=5) as answer:
            answer.read()
    except OSError as error:
        return str(error)
    # Healthy comes before able: the first bucket may be refused for a moment more.
    client = s3_client(endpoint, credentials)
    try:
        with suppress(client.exceptions.BucketAlreadyOwnedByYou):
            client.create_bucket(Bucket=BUCKET)
        client.put_object(Bucket=BUCKET, Key="ready", Body=b"ready")  # not empty: that would need no volume
        client.get_object(Bucket=BUCKET, Key="ready")["Body"].read()
        client.delete_object(Bucket=BUCKET, Key="ready")
    except (BotoCoreError, ClientError) as error:
        return str(error)
    finally:
        client.close()
    return None
