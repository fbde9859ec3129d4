"""A bucket on any server that speaks S3, through boto3; which blocks, so this is called from threads.

Every failure becomes a `BlobsUnavailable` of one line that names the server and no secret. The bucket is made when it is
missing: at first use, and again after it was lost.
Must not know: what the objects are.
"""

import logging
import threading
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from email.utils import parsedate_to_datetime
from typing import Any, Final

import boto3.session
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError, NoCredentialsError, PartialCredentialsError
from isal import isal_zlib

from adapters.distributed.s3_place import Place
from gossamer.errors import BlobsUnavailable

log = logging.getLogger("gossamer.blobs")

CONNECT_S: Final = 3.0
ANSWER_S: Final = 20.0
ATTEMPTS: Final = 3

DELETE_MAX: Final = 1000  # by the protocol

#: Amazon's own, and what servers take that don't care.
REGION: Final = "us-east-1"

_WRONG_KEYS: Final = frozenset({"SignatureDoesNotMatch", "InvalidAccessKeyId", "InvalidToken", "ExpiredToken", "InvalidSecurity"})
_FULL: Final = frozenset({"InsufficientStorage", "XMinioStorageFull", "XMinioAdminBucketQuotaExceeded", "QuotaExceeded"})
_THERE_ALREADY: Final = frozenset({"BucketAlreadyOwnedByYou", "BucketAlreadyExists", "OperationAborted"})


@dataclass(frozen=True, slots=True)
class Listing:
    """The objects below a prefix."""

    keys: Sequence[str]
    age_s: float | None  #: of the youngest, by the server's own clock; None when there is none, or the server tells no time


class Bucket:
    """One bucket. May be used from as many threads at once as `connections` says."""

    def __init__(
        self,
        place: Place,
        *,
        access_key: str | None,
        secret_key: str | None,
        region: str | None,
        style: str,
        connections: int,
        days: int,
    ) -> None:
        """Asks nothing of the server yet. Without keys, boto3 looks for them where it always does.

        A bucket that is made here gets a rule by which the server itself deletes, after so many `days`, what nobody swept.
        """
        self._place = place
        self._keys = {"aws_access_key_id": access_key, "aws_secret_access_key": secret_key}
        self._region = region
        self._days = days
        self._config = Config(
            connect_timeout=CONNECT_S,
            read_timeout=ANSWER_S,
            retries={"mode": "standard", "total_max_attempts": ATTEMPTS},
            max_pool_connections=connections,
            s3={"addressing_style": style},
            # Many servers don't take the trailing checksums that boto3 sends otherwise.
            request_checksum_calculation="when_required",
            response_checksum_validation="when_required",
        )
        self._lock = threading.Lock()
        self._client: Any = None
        self._is_there = False

    def check(self) -> None:
        """Raises `BlobsUnavailable` unless the bucket is there, or could be made, and lets itself be looked into."""
        with self._asked("look into it") as client:
            self._look_into(client)

    def put(self, key: str, data: bytes) -> None:
        """Returns when the server has answered that it is stored."""
        # The signature covers the body as well, but SeaweedFS stores an empty object when the connection ends just before the
        # body and there is no checksum. This one costs next to nothing, and servers that don't know it pass over it.
        crc32 = b64encode(isal_zlib.crc32(data).to_bytes(4, "big")).decode()
        with self._asked("write") as client:
            client.put_object(Bucket=self._place.bucket, Key=key, Body=data, ChecksumCRC32=crc32)

    def get(self, key: str, offset: int = 0, length: int | None = None) -> bytes | None:
        """So many bytes of it and no more, or all; None when it is gone."""
        part = {} if length is None else {"Range": f"bytes={offset}-{offset + length - 1}"}
        with self._asked("read") as client:
            try:
                answer = client.get_object(Bucket=self._place.bucket, Key=key, **part)
            except client.exceptions.NoSuchKey:
                return None
            with closing(answer["Body"]) as body:
                data: bytes = body.read()
                return data

    def folders(self, prefix: str) -> list[str]:
        """The next part of each key after this prefix, up to a slash. Some servers name those that were emptied as well."""
        with self._asked("list") as client:
            pages = client.get_paginator("list_objects_v2").paginate(Bucket=self._place.bucket, Prefix=prefix, Delimiter="/")
            found = [common["Prefix"] for page in pages for common in page.get("CommonPrefixes", ())]
        return [name.removeprefix(prefix).removesuffix("/") for name in found]

    def listing(self, prefix: str) -> Listing:
        keys, newest, now = [], None, None
        with self._asked("list") as client:
            for page in client.get_paginator("list_objects_v2").paginate(Bucket=self._place.bucket, Prefix=prefix):
                now = _date(page)
                for found in page.get("Contents", ()):
                    keys.append(found["Key"])
                    newest = max(newest or found["LastModified"], found["LastModified"])
        # Not below 0: `Date` is told to the second, and `LastModified` more exactly.
        return Listing(keys, None if newest is None or now is None else max(0.0, (now - newest).total_seconds()))

    def delete(self, keys: Sequence[str]) -> None:
        """Deletes those of them that are there."""
        with self._asked("delete") as client:
            for start in range(0, len(keys), DELETE_MAX):
                self._delete_some(client, keys[start : start + DELETE_MAX])

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def _delete_some(self, client: Any, keys: Sequence[str]) -> None:
        objects = [{"Key": key} for key in keys]
        try:
            answer = client.delete_objects(Bucket=self._place.bucket, Delete={"Objects": objects, "Quiet": True})
        except ClientError as error:
            # Older servers want a checksum there that boto3 no longer sends, and some don't have this at all.
            if _status(error) not in (400, 405, 411, 501):
                raise
            for key in keys:
                client.delete_object(Bucket=self._place.bucket, Key=key)
        else:
            for failed in answer.get("Errors", ()):
                raise ClientError({"Error": failed}, "DeleteObjects")

    @contextmanager
    def _asked(self, what: str) -> Iterator[Any]:
        """The client, once the bucket is there; what it raises becomes ours."""
        try:
            client = self._connected()
            if not self._is_there:
                self._make_sure_it_is_there(client)
                self._is_there = True
            yield client
        except ClientError as error:
            if _code(error) == "NoSuchBucket":
                self._is_there = False  # the next call makes it again
            raise BlobsUnavailable(f"{self._name}: {_refusal(error, what)}", full=_is_full(error)) from error
        except (NoCredentialsError, PartialCredentialsError) as error:
            raise BlobsUnavailable(f"{self._name}: no keys; set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY") from error
        except (BotoCoreError, OSError) as error:
            raise BlobsUnavailable(f"{self._name} can't be reached: {_one_line(error)}") from error

    @property
    def _name(self) -> str:
        return f"S3 bucket {self._place.bucket} at {self._place.endpoint}"

    def _connected(self) -> Any:
        """A client costs as much as a hundred requests: one is made, by whoever comes first."""
        with self._lock:
            if self._client is None:
                # A session of our own: boto3's common one must not be used from two threads.
                session = boto3.session.Session()
                self._region = self._region or session.region_name or REGION
                self._client = session.client(
                    "s3", endpoint_url=self._place.endpoint, region_name=self._region, config=self._config, **self._keys
                )
                self._client.meta.events.register_last("before-call.s3", _dont_ask_first)
            return self._client

    def _make_sure_it_is_there(self, client: Any) -> None:
        # By a listing, since that is refused with a reason; and not by making it, since keys may be good for all but that.
        try:
            self._look_into(client)
        except client.exceptions.NoSuchBucket:
            if self._make(client):
                self._set_net(client, [])
        else:
            self._widen_net(client)

    def _look_into(self, client: Any) -> None:
        client.list_objects_v2(Bucket=self._place.bucket, Prefix=self._place.prefix, MaxKeys=1)

    def _make(self, client: Any) -> bool:
        """Whether it was us who made it, and not somebody else at the same moment."""
        where = {} if self._region == REGION else {"CreateBucketConfiguration": {"LocationConstraint": self._region}}
        try:
            client.create_bucket(Bucket=self._place.bucket, **where)
        except ClientError as error:
            if _code(error) not in _THERE_ALREADY:
                raise
            return False
        return True

    def _widen_net(self, client: Any) -> None:
        """An earlier crawl's rule may be too short for this one. A bucket without our rule is somebody's own and stays as it is."""
        try:
            rules = client.get_bucket_lifecycle_configuration(Bucket=self._place.bucket)["Rules"]
        except (BotoCoreError, ClientError) as error:
            log.debug("%s: the lifecycle rules can't be read: %s", self._name, _one_line(error))
            return
        ours = [rule for rule in rules if rule.get("ID") == self._net_id]
        if any(rule.get("Expiration", {}).get("Days", self._days) < self._days for rule in ours):
            self._set_net(client, [rule for rule in rules if rule not in ours])

    def _set_net(self, client: Any, others: Sequence[Mapping[str, Any]]) -> None:
        """Beside these rules, lets the server delete by itself what is left when nobody is there to sweep any more."""
        net = {
            "ID": self._net_id,
            "Status": "Enabled",
            "Filter": {"Prefix": self._place.prefix},
            "Expiration": {"Days": self._days},
        }
        try:
            client.put_bucket_lifecycle_configuration(Bucket=self._place.bucket, LifecycleConfiguration={"Rules": [*others, net]})
        except (BotoCoreError, ClientError) as error:
            log.debug("%s: no lifecycle rule: %s", self._name, _one_line(error))

    @property
    def _net_id(self) -> str:
        return f"gossamer:{self._place.prefix}"


def _dont_ask_first(params: dict[str, Any], **_: Any) -> None:
    """boto3 sends a body only when the server has said that it wants it. Ours are small, and asking is a tenth of their cost."""
    params["headers"].pop("Expect", None)


def _refusal(error: ClientError, what: str) -> str:
    code = _code(error)
    if code in _WRONG_KEYS:
        return f"the keys are wrong ({code}); look at AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY"
    if code in ("AccessDenied", "403"):
        return f"the keys don't allow to {what} ({code})"
    if code == "NoSuchBucket":
        return "the bucket is gone"
    return f"could not {what}: {code} {_one_line(error.response.get('Error', {}).get('Message', ''))}".rstrip()


def _is_full(error: ClientError) -> bool:
    """S3 itself is never full, so that servers have words of their own for it; some say no more than that they failed."""
    return _status(error) == 507 or _code(error) in _FULL


def _code(error: ClientError) -> str:
    return str(error.response.get("Error", {}).get("Code", "no code"))


def _status(error: ClientError) -> int:
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _one_line(text: object) -> str:
    return " ".join(str(text).split())[:300]


def _date(answer: Mapping[str, Any]) -> datetime | None:
    try:
        date = parsedate_to_datetime(answer["ResponseMetadata"]["HTTPHeaders"]["date"])
    except (KeyError, ValueError):
        return None
    return date if date.tzinfo is not None else None  # told twice, or in no zone that is known: no time at all
