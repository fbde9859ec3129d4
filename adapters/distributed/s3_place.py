"""Where a bucket is, as a URL says it. To be looked at before a crawl begins, and without boto3."""

import re
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from gossamer.errors import SettingsError

_BUCKET: Final = re.compile(r"[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]")
_PREFIX: Final = re.compile(r"([A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)*)?")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a bucket is, and the part of it that is ours: what `http(s)://host[:port]/bucket[/prefix]` says."""

    endpoint: str
    bucket: str
    prefix: str  #: empty, or ends with a slash

    @classmethod
    def of(cls, url: str) -> "Place":
        try:
            parts = urlsplit(url)
            fine = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        except ValueError:
            fine = False
        # Also refuses keys before the host. They have variables of their own; a URL is shown in messages.
        if not fine or "@" in parts.netloc or parts.query or parts.fragment:
            raise SettingsError("the S3 server's URL must have the form http(s)://host[:port]/bucket[/prefix]")
        bucket, _, prefix = parts.path.strip("/").partition("/")
        if not _BUCKET.fullmatch(bucket):
            raise SettingsError("the S3 server's URL must name a bucket: 3 to 63 lower-case letters, digits, dots and hyphens")
        if not _PREFIX.fullmatch(prefix):
            raise SettingsError("the prefix in the S3 server's URL may have letters, digits, -, _, . and slashes")
        return cls(f"{parts.scheme}://{parts.netloc}", bucket, f"{prefix}/" if prefix else "")
