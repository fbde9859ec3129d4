"""Which container is told what: a folder for each, and in it files in the form that its server reads."""

import base64
import hashlib
import json
import os
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from services.keys.credentials import Addresses, Secrets

#: The users in the containers. Those of the servers are their images' own (MinIO's has none, and takes SeaweedFS's).
UIDS: Final[Mapping[str, int]] = {"rabbitmq": 999, "redis": 999, "s3": 1000, "roles": 10001}

#: Where each container finds its folder.
THERE: Final = "/run/keys"

#: Of the 1 GB that the container has. Above this RabbitMQ lets publishers wait.
RABBITMQ_MEMORY: Final = "600MB"
#: With less than this left on the disk, as well.
RABBITMQ_DISK: Final = "200MB"


def contents(known: Secrets, at: Addresses) -> dict[str, dict[str, str]]:
    """By folder and file name. No folder holds more than its container needs."""
    return {
        "rabbitmq": {"rabbitmq.conf": _rabbitmq_conf(), "definitions.json": _definitions(known)},
        "redis": {"redis.conf": f"requirepass {known.redis_password}\n", "password": known.redis_password},
        "s3": {"s3.json": _identities(known), "access-key": known.s3_access_key, "secret-key": known.s3_secret_key},
        "roles": {
            "rabbitmq-url": at.rabbitmq_url,
            "redis-url": at.redis_url,
            "s3-url": at.s3_url,
            "access-key": at.access_key,
            "secret-key": at.secret_key,
            "rank-api-key": at.rank_api_key,
        },
    }


def _rabbitmq_conf() -> str:
    return f"""\
load_definitions = {THERE}/definitions.json
vm_memory_high_watermark.absolute = {RABBITMQ_MEMORY}
disk_free_limit.absolute = {RABBITMQ_DISK}
"""


def _definitions(known: Secrets) -> str:
    """Read at every start of RabbitMQ: so a password that is changed later counts, as a default user's would not."""
    user = {
        "name": known.rabbitmq_user,
        "password_hash": password_hash(known.rabbitmq_password, secrets.token_bytes(4)),
        "hashing_algorithm": "rabbit_password_hashing_sha256",
        "tags": ["management"],  # may look at its own queues in the management page; is no administrator
    }
    may = {"user": known.rabbitmq_user, "vhost": "/", "configure": ".*", "write": ".*", "read": ".*"}
    return json.dumps({"vhosts": [{"name": "/"}], "users": [user], "permissions": [may]}, indent=1)


def password_hash(password: str, salt: bytes) -> str:
    """As RabbitMQ keeps passwords: the salt, then SHA-256 over salt and password; the password itself is not in its container."""
    assert len(salt) == 4
    return base64.b64encode(salt + hashlib.sha256(salt + password.encode()).digest()).decode()


def _identities(known: Secrets) -> str:
    credentials = [{"accessKey": known.s3_access_key, "secretKey": known.s3_secret_key}]
    actions = ["Admin", "Read", "Write", "List", "Tagging"]  # Admin: it makes its bucket
    return json.dumps({"identities": [{"name": "gossamer", "credentials": credentials, "actions": actions}]}, indent=1)


def hand_out(root: Path, folders: Mapping[str, Mapping[str, str]]) -> None:
    """Each file whole, or as it was before; readable for its container's user alone."""
    for folder, files in folders.items():
        uid = UIDS[folder]
        (root / folder).chmod(0o755)  # root's, so that nobody else can put files there
        for name, text in files.items():
            new = root / folder / f".{name}.new"
            new.unlink(missing_ok=True)
            with open(os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o400), "w") as file:
                file.write(text)
            os.chown(new, uid, uid)
            new.replace(root / folder / name)
