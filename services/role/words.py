"""What a role is told: by arguments, or by the environment, and by nothing else.

Which crawl it serves and where the servers are; everything else it reads in the crawl's ledger. A worker's id, and with it the name
of its queue, comes from its lease there, so that no two have the same one whoever starts them.
"""

import argparse
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, NoReturn

from adapters.wiring import SERVER_KEYS, Servers, servers
from gossamer.errors import SettingsError
from gossamer.ids import CrawlId
from gossamer.settings import BY_KEY, Log, load
from gossamer.walk import Role

_TEXT: Final = {
    Role.FRONTIER: "The frontier of a crawl: ranks the URLs that are found and hands them to the workers. Any number may run.",
    Role.WORKER: "A worker of a crawl: fetches, reads and stores the pages that the frontier hands to it. Any number may run.",
}

_EPILOG: Final = """\
Servers, in the environment (each also as a file that holds it, in the variable with _FILE behind its name):
  GOSSAMER_RABBITMQ_URL   amqp://user:password@host:5672       the URL queue, the bands, the workers' own queues
  GOSSAMER_REDIS_URL      redis://:password@host:6379/0        the ledger: every URL that is known, and its state
  GOSSAMER_S3_URL         http://host:8333/bucket              the content store
  AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY                     its keys
  GOSSAMER_RANK_API_KEY                                        for frontiers, if the crawl has a rank API that wants one

Everything else is in the crawl's ledger. The role waits until the crawl exists, and ends at SIGTERM: what is in flight is finished,
the rest is handed back."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Words:
    crawl: CrawlId | None  #: None: whichever the stack's controller announces
    servers: Servers
    rank_api_key: str | None = field(repr=False)  #: for a frontier
    modules: tuple[str, ...]  #: none: those of the crawl
    out: Path
    health: tuple[str, int] | None
    log: Log
    tied: bool


@dataclass(frozen=True, slots=True)
class Help:
    text: str


def read(role: Role, argv: Sequence[str], environ: Mapping[str, str]) -> Words | Help:
    """Raises `SettingsError`, in one line."""
    parser = _parser(role)
    if "-h" in argv or "--help" in argv:
        return Help(parser.format_help())
    given = parser.parse_args(argv)
    crawl = given.crawl or environ.get("CRAWL", "").strip()
    health = given.health or environ.get("HEALTH", "").strip()
    named = {name: value for name, value in environ.items() if name.removesuffix("_FILE") in _variables(role)}
    settings = load({} if given.log is None else {"log": given.log}, named, None).settings
    return Words(
        crawl=crawl_id(crawl) if crawl else None,
        servers=servers(settings.storage, environ),
        rank_api_key=settings.frontier.rank_api_key,
        modules=tuple(given.module or environ.get("MODULE", "").split()),
        out=Path(given.out or environ.get("OUT", "").strip() or "out"),
        health=host_and_port(health, "--health") if health else None,
        log=settings.output.log,
        tied=given.tied,
    )


def _variables(role: Role) -> frozenset[str]:
    """Those of settings that this role reads in the environment."""
    own = ("rank_api_key",) if role is Role.FRONTIER else ()
    return frozenset(BY_KEY[key].variable for key in (*SERVER_KEYS, "log", *own))


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise SettingsError(message.removeprefix("argument "))


def _parser(role: Role) -> _Parser:
    parser = _Parser(
        prog=f"python -m services.{role}",
        usage=f"python -m services.{role} [--crawl ID] [option ...]",
        description=_TEXT[role],
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        add_help=False,
        allow_abbrev=False,
    )
    parser.add_argument("--crawl", metavar="ID", help="serve this crawl (or: CRAWL); else the one that was announced last")
    parser.add_argument("--module", metavar="NAME", action="append", help="instead of the crawl's modules (or: MODULE)")
    parser.add_argument("--out", metavar="DIR", help="where modules write (or: OUT; out)")
    parser.add_argument("--health", metavar="HOST:PORT", help="answer GET /health there (or: HEALTH)")
    parser.add_argument("--log", metavar="human|json", help="log for people, or as JSON (or: GOSSAMER_LOG)")
    parser.add_argument("--tied", action="store_true", help="end when standard input ends: whoever started it has died")
    parser.add_argument("-h", "--help", action="store_true", help="show this")
    return parser


def crawl_id(text: str) -> CrawlId:
    """Raises `SettingsError`."""
    if not re.fullmatch(r"[a-z0-9-]{1,100}", text):
        raise SettingsError(f"--crawl is {text[:60]!r}; it takes a crawl's id: small letters, digits and hyphens")
    return CrawlId(text)


def host_and_port(text: str, flag: str) -> tuple[str, int]:
    """Raises `SettingsError`."""
    host, _, port = text.rpartition(":")
    if not port.isdecimal() or int(port) > 65_535:
        raise SettingsError(f"{flag} is {text[:60]!r}; it takes HOST:PORT, as 127.0.0.1:8080")
    return host.strip("[]") or "127.0.0.1", int(port)
