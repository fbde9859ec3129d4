"""The secrets of a stack: what the operator gave, and for the rest what was drawn once and kept."""

import json
import re
import secrets
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

#: Letters, digits and some punctuation that means nothing in a URL, a shell, JSON, or a server's configuration file.
_PLAIN: Final = re.compile(r"[A-Za-z0-9._~-]+")
_LENGTHS: Final = range(8, 129)
#: As `gossamer.kinds.token` takes it.
_KEY: Final = re.compile(r"[A-Za-z0-9._~+/=-]{1,200}")
RANK_API_KEY: Final = "GOSSAMER_RANK_API_KEY"


class WrongSecret(Exception):
    """Something that the operator gave can't be used; says which, and never what it was."""


@dataclass(frozen=True, slots=True)
class Secrets:
    """For the servers of the stack itself."""

    rabbitmq_user: str
    rabbitmq_password: str
    redis_password: str
    s3_access_key: str
    s3_secret_key: str


@dataclass(frozen=True, slots=True)
class Addresses:
    """What the roles are told: the stack's own servers, or those that the operator has elsewhere."""

    rabbitmq_url: str
    redis_url: str
    s3_url: str
    access_key: str
    secret_key: str
    rank_api_key: str = "none"  #: the word for none, so that its file can always be there


def draw() -> Secrets:
    return Secrets("gossamer", secrets.token_hex(24), secrets.token_hex(24), f"GK{secrets.token_hex(9)}", secrets.token_hex(24))


def kept_in(file: Path) -> Secrets:
    """Those of the first start; drawn, and kept, if this is it. Raises OSError or ValueError if they can't be had."""
    if not file.exists():
        whole = file.with_suffix(".new")  # a kill in the middle leaves nothing that looks like secrets
        whole.write_text(json.dumps(asdict(draw())))
        whole.replace(file)
    return Secrets(**json.loads(file.read_text()))


#: Which variable of the operator's stands for which secret. For MinIO both of S3 are its root's.
VARIABLES: Final[Mapping[str, str]] = {
    "rabbitmq_user": "RABBITMQ_USER",
    "rabbitmq_password": "RABBITMQ_PASSWORD",
    "redis_password": "REDIS_PASSWORD",
    "s3_access_key": "S3_ACCESS_KEY",
    "s3_secret_key": "S3_SECRET_KEY",
}


def with_given(kept: Secrets, environ: Mapping[str, str]) -> Secrets:
    """What is given beats what is kept. Raises `WrongSecret`."""
    given = {field: environ[variable] for field, variable in VARIABLES.items() if environ.get(variable)}
    for field, value in given.items():
        if not _PLAIN.fullmatch(value):
            raise WrongSecret(f"{VARIABLES[field]} may hold letters, digits and . _ ~ - alone: it has to stand in URLs")
        if len(value) not in _LENGTHS and field != "rabbitmq_user":
            raise WrongSecret(f"{VARIABLES[field]} has {len(value)} characters; {_LENGTHS.start} to {_LENGTHS.stop - 1} are taken")
    return Secrets(**{**asdict(kept), **given})


def addresses(known: Secrets, environ: Mapping[str, str]) -> Addresses:
    """The stack's own servers, but for those that the operator names. Raises `WrongSecret`."""
    s3_url = environ.get("GOSSAMER_S3_URL")
    keys = tuple(environ.get(name, "") for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"))
    if s3_url and not all(keys):
        raise WrongSecret("GOSSAMER_S3_URL names a server of your own: its AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY are missing")
    own = Addresses(
        rabbitmq_url=f"amqp://{known.rabbitmq_user}:{known.rabbitmq_password}@rabbitmq:5672/%2F",
        redis_url=f"redis://:{known.redis_password}@redis:6379/0",
        s3_url="http://s3:8333/gossamer",
        access_key=known.s3_access_key,
        secret_key=known.s3_secret_key,
    )
    return Addresses(
        rabbitmq_url=_url(environ, "GOSSAMER_RABBITMQ_URL", ("amqp", "amqps")) or own.rabbitmq_url,
        redis_url=_url(environ, "GOSSAMER_REDIS_URL", ("redis", "rediss")) or own.redis_url,
        s3_url=_url(environ, "GOSSAMER_S3_URL", ("http", "https")) or own.s3_url,
        access_key=keys[0] if s3_url else own.access_key,
        secret_key=keys[1] if s3_url else own.secret_key,
        rank_api_key=_rank_api_key(environ) or own.rank_api_key,
    )


def _rank_api_key(environ: Mapping[str, str]) -> str | None:
    key = environ.get(RANK_API_KEY) or None
    if key is not None and not _KEY.fullmatch(key):
        raise WrongSecret(f"{RANK_API_KEY} may hold letters, digits and . _ ~ + / = - alone")
    return key


def _url(environ: Mapping[str, str], variable: str, schemes: tuple[str, ...]) -> str | None:
    url = environ.get(variable) or None
    if url is not None and urlsplit(url).scheme not in schemes:
        raise WrongSecret(f"{variable} has to begin with {' or '.join(f'{scheme}://' for scheme in schemes)}")
    return url
