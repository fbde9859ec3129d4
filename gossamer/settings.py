"""Every setting of a crawl: its name, its default, what it accepts, and where its value came from.

One place, so that a setting can't exist without a flag, a variable, a key in the file, a line of help and a row in
docs/settings.md: all five are made from the fields below. A field's text says what it does, its `#:` line when to change it.

Knows: names and values. Must not know: what any of them is used for. The environment is handed in; only the settings file, and
the files that hold secrets, are read here. Standard library only: `controller.py --help` works before anything is installed.
"""
# ruff: noqa: RUF009  # the calls behind the fields declare them, as dataclasses.field does

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from enum import StrEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, TypeVar

from gossamer.errors import SettingsError
from gossamer.kinds import (
    Kind,
    choice,
    count,
    duration,
    endpoint,
    header,
    host,
    masked,
    network,
    optional,
    path,
    regex,
    server,
    share,
    size,
    switch,
    text,
    token,
)

T = TypeVar("T")

PREFIX: Final = "GOSSAMER_"


class Scope(StrEnum):
    """How far from the seeds a crawl may go."""

    WEB = "web"
    DOMAIN = "domain"
    HOST = "host"


class Nofollow(StrEnum):
    """What `rel=nofollow` on a single link means."""

    FOLLOW = "follow"
    SKIP = "skip"


class DuplicateLinks(StrEnum):
    """What becomes of the links of a page whose like is stored."""

    DROP = "drop"
    FOLLOW = "follow"


class Politeness(StrEnum):
    """Who shares one delay."""

    HOST = "host"
    DOMAIN = "domain"


class Log(StrEnum):
    """Who reads stderr."""

    HUMAN = "human"
    JSON = "json"


class Law(StrEnum):
    """How a band is drawn."""

    SQUARE = "square"
    EVEN = "even"
    STRICT = "strict"


class Engine(StrEnum):
    """What a crawl stands on."""

    EMBEDDED = "embedded"
    EXTERNAL = "external"
    COMPOSE = "compose"


class Roles(StrEnum):
    """Who runs frontier and workers."""

    HERE = "here"
    ELSEWHERE = "elsewhere"


class QueueType(StrEnum):
    """How RabbitMQ keeps a queue."""

    CLASSIC = "classic"
    QUORUM = "quorum"


class S3Style(StrEnum):
    """Where a bucket's name stands in a request."""

    PATH = "path"
    AUTO = "auto"


def setting(default: T, kind: Kind[T], help: str, *, key: str = "", secret: bool = False) -> T:
    """Declares a field of one value. `key` is for the few whose flag is not the field's name without its unit."""
    return field(default=default, repr=not secret, metadata={"kind": kind, "help": help, "key": key, "secret": secret})


def several(default: tuple[T, ...], kind: Kind[T], help: str, *, key: str = "") -> tuple[T, ...]:
    """Declares a field of any number of values: a flag that may be repeated, a list in the file, blanks in the environment."""
    return field(default=default, metadata={"kind": kind, "help": help, "key": key, "many": True})


def group(default: T, title: str) -> T:
    """Declares a group of settings, with its heading in help and docs."""
    return field(default=default, metadata={"title": title})


@dataclass(frozen=True, slots=True, kw_only=True)
class Start:
    """What a crawl begins with."""

    #: There must be one, here or in the file of `--seeds`.
    seeds: tuple[str, ...] = several((), text("a URL", "URL"), "start from this URL; give it again for more", key="seed")
    #: For more seeds than fit on a command line.
    seeds_file: Path | None = setting(
        None, optional(path("a file (its URLs go to --seed)", "FILE")), "start from the URLs in FILE, one a line", key="seeds"
    )
    #: More when one core is busy all the time; politeness, not their number, limits a crawl of few hosts.
    workers: int = setting(4, count(1), "fetch pages with N workers; a host is only ever asked by one of them")
    #: The modules run in the order given.
    modules: tuple[str, ...] = several(
        ("noop",),
        text("a module", "NAME[:key=value,...]"),
        "hand each stored page to this module; give it again for more",
        key="module",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Budgets:
    """Where a crawl ends, whatever is left to do."""

    #: Raise it, with max_bytes, for a site that is larger; a crawl that ended by it can be resumed.
    max_pages: int = setting(10_000, count(1), "end after exactly N stored pages")
    #: All bytes of bodies count, robots.txt and failed attempts too: about 5 KB a page, compressed.
    max_bytes: int = setting(50_000_000, size(1), "end before SIZE bytes are passed, counting every body received")
    #: Raise it for sites with very long pages. Memory per download grows with it.
    max_page_bytes: int = setting(500_000, size(1), "give up a page that is larger than SIZE, uncompressed")
    #: Lower it when the ledger must stay small. The worst URLs are shed past it, and counted.
    max_open: int = setting(1_000_000, count(1), "hold at most N URLs that are still to be fetched")
    #: What a trap may cost. Seeds' own hosts are bounded by max_pages alone; so is every host with `politeness = domain`.
    max_host_pages: int | None = setting(5_000, optional(count(1)), "ask for at most N pages of a host that is no seed's")
    #: The same for all hosts of a name that somebody registered. Seeds' own are bounded by max_pages alone.
    max_domain_pages: int | None = setting(
        20_000, optional(count(1)), "ask for at most N pages of a registered domain that is no seed's"
    )
    #: Traps have as many hosts as they like. Raise it, or lift it, for a seed that gives its users hosts of their own.
    max_hosts: int | None = setting(100, optional(count(1)), "know at most N hosts of one registered domain")
    #: Filters of shops combine without end. A URL with a single parameter counts, but is never left out.
    max_variants: int | None = setting(
        100, optional(count(1)), "know at most N URLs of one path, when their query parameters combine"
    )
    #: For a large site that is no trap: the reason of a URL that was left out names the rule.
    lift: tuple[str, ...] = several((), host(), "lift these four for DOMAIN (or a host); give it again for more")


@dataclass(frozen=True, slots=True, kw_only=True)
class Links:
    """Which links are followed."""

    #: `host` or `domain` to stay on the seeds' sites.
    scope: Scope = setting(Scope.WEB, choice(Scope), "follow links anywhere, within the seeds' domains, or on their hosts")
    #: The whole URL is searched; one match is enough.
    include: tuple[str, ...] = several((), regex(), "follow only URLs in which REGEX is found; give it again for more")
    #: Beats include.
    exclude: tuple[str, ...] = several((), regex(), "follow no URL in which REGEX is found; give it again for more")
    #: A single nofollow is about endorsement, not access; a page's own meta robots is always obeyed.
    nofollow: Nofollow = setting(Nofollow.FOLLOW, choice(Nofollow), "follow or skip links that are marked rel=nofollow")
    #: 0 fetches the seeds alone; redirects keep the depth of the link.
    max_depth: int | None = setting(None, optional(count()), "follow links up to N clicks away from a seed")
    #: Lower it for shops whose filters combine without end.
    max_url_params: int | None = setting(None, optional(count()), "refuse URLs of more than N query parameters")
    #: Raise it for deeply nested archives. Traps grow their paths.
    max_path_components: int = setting(10, count(1), "refuse URLs of more than N path components")
    #: Some servers take more, few pages need more.
    max_url_length: int = setting(2048, count(16, 65_536), "refuse URLs of more than N characters")
    #: Raise it for link lists. Past it the page is flagged links_cut.
    max_links: int = setting(1000, count(), "keep the first N links of a page")
    #: Browsers take 20; honest sites need two or three.
    max_hops: int = setting(5, count(0, 100), "follow up to N redirects in a row")
    #: For sites whose pages hardly link to each other. A sitemap is requested as politely as a page, and is none.
    sitemaps: bool = setting(False, switch(), "read sitemaps, those that robots.txt names and those among the seeds, for links")


@dataclass(frozen=True, slots=True, kw_only=True)
class Manners:
    """What the sites that are visited will notice."""

    #: 0 only for your own machines: it also turns off the part that adapts to slow answers.
    delay_s: float = setting(1.0, duration(), "leave TIME between two requests to one host; never less than it asks for")
    #: `domain` when many hosts of one name are one machine.
    politeness: Politeness = setting(
        Politeness.HOST, choice(Politeness), "count the delay for each host, or for each registered domain"
    )
    #: A host that asks for more is left alone rather than asked faster.
    max_crawl_delay_s: float = setting(300.0, duration(), "leave out hosts whose robots.txt asks for a longer delay than TIME")
    #: Set it on every crawl of other people's sites, so that they can reach you.
    contact: str | None = setting(
        None, optional(header("a URL or mail address", "TEXT")), "name a URL or mail address in the user agent"
    )
    #: robots.txt files are read for `gossamer` whatever this says. Otherwise made of the version and the contact.
    user_agent: str | None = setting(
        None, optional(header("a text", "TEXT")), "call ourselves TEXT instead of Gossamer/VERSION (+CONTACT)"
    )
    #: For sites of your own inside: any page could lead there, so name no more than is needed.
    allow_net: tuple[str, ...] = several(
        (), network(), "allow addresses in CIDR, though they are not public; give it again for more"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Frontier:
    """What is fetched first."""

    #: `breadth`, `constant`, or a prioritizer of your own, where links say little of what is wanted.
    prioritizer: str = setting(
        "pagerank", text("a prioritizer", "NAME[:key=value,...]"), "rank URLs by this prioritizer, from 0 (first) to 100 (last)"
    )
    #: The address of its getPageRank. It is told every registered domain that the crawl meets.
    rank_api: str | None = setting(
        None,
        optional(endpoint("https", "http", example="https://openpagerank.com/api/v1.0/getPageRank")),
        "mix in ranks of domains from an API in the form of Open PageRank",
    )
    #: Better in a file, named by the variable with _FILE behind it.
    rank_api_key: str | None = setting(None, optional(token()), "send this key to the rank API", secret=True)
    #: CSV; its first line names the columns: domain, and visits or rank. What it knows is not asked of the API.
    rank_file: Path | None = setting(
        None, optional(path("a file", "FILE")), "mix in ranks of domains from FILE: domain, and visits or rank"
    )
    #: More keep the order more exactly; each is a queue.
    bands: int = setting(10, count(1, 100), "sort URLs into N queues by priority")
    #: It matters while workers are full. `square`: of ten bands the best is read in 32 % of draws and the worst in 5 %; `even`: all
    #: alike; `strict`: the best that has something. Whatever the law, each is read at least once in 1,000 draws.
    draw: Law = setting(Law.SQUARE, choice(Law), "draw better bands more often, all alike, or always the best")
    #: Memory, not safety: a full queue sheds hints and never URLs.
    queue_size: int = setting(10_000, count(1), "hold at most N messages in each queue")
    #: To repeat a crawl's draws (embedded engine).
    random_seed: int | None = setting(None, optional(count()), "draw the same random numbers each time")


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetching:
    """How a worker fetches and reads a page."""

    #: More for crawls of many slow hosts; each needs a socket and up to max_page_bytes.
    parallel: int = setting(16, count(1), "run up to N downloads at once in each worker")
    #: Longer for sites far away.
    connect_timeout_s: float = setting(10.0, duration(positive=True), "give up a connection that takes longer than TIME")
    #: From the name's look-up to the last byte; tried twice.
    attempt_timeout_s: float = setting(30.0, duration(positive=True), "give up a download that takes longer than TIME")
    #: Longer for modules that call slow services.
    module_timeout_s: float = setting(30.0, duration(positive=True), "give up a module that takes longer than TIME over a page")
    #: `off` for archives, where every copy counts: then only pages that are equal to the byte are discarded.
    similarity: float | None = setting(
        0.9, optional(share(), none="off"), "discard pages at least this similar to a stored one; off: only equal ones"
    )
    #: `follow` for sites whose lists are much alike, but lead to different pages.
    duplicate_links: DuplicateLinks = setting(
        DuplicateLinks.DROP, choice(DuplicateLinks), "drop or follow the links of pages that are discarded as duplicates"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long to wait for what may be dead, and how often to try again."""

    #: Longer on machines that stall; a dead worker's URLs wait this long.
    lease_s: float = setting(15.0, duration(positive=True), "take a worker for dead that was silent for TIME")
    #: How long a host stays with its worker when it has nothing to do.
    owner_s: float = setting(300.0, duration(positive=True), "keep an idle host with its worker for TIME")
    #: Shorter starts waiting hosts more exactly, and costs CPU.
    tick_s: float = setting(0.05, duration(positive=True), "look every TIME for hosts whose delay is over")
    #: Counted only when the page was fetched alone.
    poison_deaths: int = setting(2, count(0, 100), "give up a page that killed its worker N times; 0: never")
    #: Each one waits as long as the host asked.
    max_deferrals: int = setting(3, count(), "put a URL off up to N times when its host says later")
    #: While it can't be had, nothing of the host is asked for.
    robots_wait_s: float = setting(
        10.0, duration(positive=True), "ask again for a missing robots.txt after TIME, then 6 and 30 times that"
    )
    #: Timeouts, 429 and 5xx; any good answer starts the count again.
    domain_failures: int = setting(10, count(1), "let a host rest that failed N times in a row")
    #: Doubled at each rest.
    domain_rest_s: float = setting(10.0, duration(positive=True), "let it rest for TIME at first, then twice as long")
    #: Its open URLs then close with the outcome that they failed with.
    domain_rests: int = setting(3, count(), "give up a host after N rests")


@dataclass(frozen=True, slots=True, kw_only=True)
class Storage:
    """Where a crawl keeps what it knows."""

    #: `external` or `compose` for more than one machine can do.
    engine: Engine = setting(Engine.EMBEDDED, choice(Engine), "run in this process, on servers of your own, or in containers")
    #: `elsewhere` in a stack of containers, or where an operator starts them; for the external engine.
    roles: Roles = setting(Roles.HERE, choice(Roles), "start frontier and workers here, or rely on those that others run")
    #: For the embedded engine; a crawl can be resumed from it.
    state: Path | None = setting(None, optional(path("a directory", "DIR")), "keep the crawl in DIR")
    #: Counted from the crawl's last step, so that a long one forgets nothing.
    ttl_s: float = setting(3600.0, duration(), "forget a crawl TIME after its last step")
    #: Better in a file, named by the variable with _FILE behind it: flags can be read by every user of the machine.
    rabbitmq_url: str | None = setting(
        None, optional(server("amqp", "amqps", example="amqp://user:password@host:5672")), "use this RabbitMQ", secret=True
    )
    #: As above.
    redis_url: str | None = setting(
        None,
        optional(server("redis", "rediss", example="redis://:password@host:6379/0")),
        "use this Redis or Valkey",
        secret=True,
    )
    #: As above. Keys are AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, as everywhere.
    s3_url: str | None = setting(
        None, optional(server("http", "https", example="http://host:8333/bucket", path=True)), "use this S3 bucket", secret=True
    )
    #: `auto` for Amazon's own, which want the bucket in the host's name.
    s3_style: S3Style = setting(S3Style.PATH, choice(S3Style), "name the bucket in the path, or as the server's owner prefers")
    #: `quorum` for a RabbitMQ cluster of three nodes or more; on one node it only costs.
    queue_type: QueueType = setting(QueueType.CLASSIC, choice(QueueType), "keep RabbitMQ's queues in this way")


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """What a crawl says."""

    #: For programs that start crawls.
    report: Path | None = setting(None, optional(path("a file", "FILE")), "write the summary to FILE, as JSON")
    #: `json` for machines: one object a line.
    log: Log = setting(Log.HUMAN, choice(Log), "log for people, or as JSON")


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """All of them, by group. Code is handed the group or the value that it needs, not the whole."""

    start: Start = group(Start(), "Starting")
    budgets: Budgets = group(Budgets(), "Budgets: where a crawl ends")
    links: Links = group(Links(), "Links: which are followed")
    manners: Manners = group(Manners(), "Manners: what sites notice")
    frontier: Frontier = group(Frontier(), "Frontier: what is fetched first")
    fetching: Fetching = group(Fetching(), "Fetching: how a page is read")
    patience: Patience = group(Patience(), "Patience: when to wait, and when to give up")
    storage: Storage = group(Storage(), "Storage: where a crawl is kept")
    output: Output = group(Output(), "Output")


class Setting(NamedTuple):
    """One setting as data: what a line of help, a row of the reference and the loader need to know of it."""

    group: str  #: the group's field in `Settings`
    name: str  #: the setting's field in its group, with its unit
    key: str  #: in the file, and what flag and variable are made of; without unit
    kind: Kind[Any]
    default: Any
    help: str  #: one line, in the imperative
    many: bool  #: a tuple of values, replaced as a whole
    secret: bool  #: never shown as it is; may also be read from a file

    @property
    def flag(self) -> str:
        return "--" + self.key.replace("_", "-")

    @property
    def variable(self) -> str:
        return PREFIX + self.key.upper()

    def show(self, value: Any) -> str:
        """The value as it may be shown to anyone."""
        if self.many:
            return " ".join(self.kind.show(each) for each in value)
        shown = self.kind.show(value)
        return masked(shown) if self.secret and value is not None else shown


class Group(NamedTuple):
    """Settings that stand together in help and docs."""

    title: str
    settings: tuple[Setting, ...]


def _groups() -> Iterator[Group]:
    for part in fields(Settings):
        defaults: Any = part.default
        yield Group(part.metadata["title"], tuple(_described(part.name, each) for each in fields(defaults)))


def _described(group: str, declared: Field[Any]) -> Setting:
    how = declared.metadata
    return Setting(
        group=group,
        name=declared.name,
        key=how["key"] or declared.name.removesuffix("_s"),
        kind=how["kind"],
        default=declared.default,
        help=how["help"],
        many=how.get("many", False),
        secret=how.get("secret", False),
    )


GROUPS: Final = tuple(_groups())
BY_KEY: Final[Mapping[str, Setting]] = MappingProxyType({each.key: each for part in GROUPS for each in part.settings})

#: Also the variables that name a file: secrets only, since a file for a number is one indirection too many.
_BY_VARIABLE: Final[Mapping[str, Setting]] = MappingProxyType(
    {each.variable: each for each in BY_KEY.values()} | {each.variable + "_FILE": each for each in BY_KEY.values() if each.secret}
)


class Loaded(NamedTuple):
    """The settings of a crawl, and where each came from."""

    settings: Settings
    origins: Mapping[str, str]  #: by key; defaults are not in it

    def origin(self, key: str) -> str:
        """In words: default, flag --max-pages, environment GOSSAMER_MAX_PAGES, file crawl.toml."""
        return self.origins.get(BY_KEY[key].key, "default")

    def shown(self) -> dict[str, str]:
        """Every setting by key, as a text that may be logged: passwords are masked."""
        return shown(self.settings)


def load(flags: Mapping[str, str | Sequence[str]], environ: Mapping[str, str], file: Path | None) -> Loaded:
    """Reads all three; a flag beats the environment, and that the file. A list is replaced as a whole.

    `flags` are by key, as they were written. Raises `SettingsError` for a name that is none and for a value that is wrong, also
    where another source beats it: it would only wait there for the day when that one is gone.
    """
    found: dict[str, _Found] = {}
    for source in (_in_file(file) if file else (), _in_environment(environ), _in_flags(flags)):
        found.update((each.setting.key, each) for each in source)
    settings = _settings_of(found.values())
    _check_together(settings)
    return Loaded(settings, MappingProxyType({key: each.origin for key, each in found.items()}))


def secret_of(environ: Mapping[str, str], name: str) -> str | None:
    """A secret that is not a setting of ours but everybody's, like AWS_SECRET_ACCESS_KEY: its value, or that in its `_FILE`."""
    if environ.get(name, "").strip():
        return environ[name]
    file = environ.get(f"{name}_FILE", "").strip()
    return _secret_in(Path(file), f"{name}_FILE") if file else None


def shown(settings: Settings) -> dict[str, str]:
    """Every setting by key, as a text that may be logged: passwords are masked."""
    return {key: each.show(getattr(getattr(settings, each.group), each.name)) for key, each in BY_KEY.items()}


class _Found(NamedTuple):
    """A value that was written somewhere."""

    setting: Setting
    value: Any
    origin: str


def _in_file(file: Path) -> Iterator[_Found]:
    import tomllib

    try:
        table = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise SettingsError(f"{file} can't be read: {error.strerror}") from error
    except ValueError as error:  # bad TOML, bad UTF-8, or a number of thousands of digits
        raise SettingsError(f"{file} is not TOML: {_one_line(str(error))}") from error
    for key, written in table.items():
        if key not in BY_KEY:
            raise SettingsError(f"{file}: {_brief(key)} is not a setting; did you mean {_nearest(key, BY_KEY)}?")
        values = written if isinstance(written, list) else [written]
        # Dates, tables and booleans would become texts that nobody wrote; but a switch may well be true.
        switch = BY_KEY[key].kind.bare is not None
        if not all(isinstance(each, str | int | float) and (switch or not isinstance(each, bool)) for each in values):
            raise _wrong(BY_KEY[key], str(written), f"{file}: {key}")
        yield _found(BY_KEY[key], [str(each) for each in values], f"{file}: {key}", f"file {file}")


def _in_environment(environ: Mapping[str, str]) -> Iterator[_Found]:
    for variable in sorted(name for name in environ if name.startswith(PREFIX)):
        setting = _BY_VARIABLE.get(variable)
        if setting is None:
            near = _nearest(variable, _BY_VARIABLE)
            raise SettingsError(f"{_brief(variable)} is not a setting; did you mean {near}?")
        written = environ[variable]
        # Set to nothing is not set: compose files hand variables on whether or not they have a value.
        if not written.strip():
            continue
        if variable != setting.variable:
            if environ.get(setting.variable, "").strip():
                raise SettingsError(f"{setting.variable} and {variable} are both set; leave one out")
            written = _secret_in(Path(written), variable)
        texts = written.split() if setting.many else [written]
        yield _found(setting, texts, variable, f"environment {variable}")


def _in_flags(flags: Mapping[str, str | Sequence[str]]) -> Iterator[_Found]:
    for key, written in flags.items():
        if key not in BY_KEY:
            raise SettingsError(f"{_brief(key)} is not a setting; did you mean {_nearest(key, BY_KEY)}?")
        setting = BY_KEY[key]
        yield _found(setting, [written] if isinstance(written, str) else written, setting.flag, f"flag {setting.flag}")


def _secret_in(file: Path, variable: str) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except OSError as error:
        raise SettingsError(f"{variable}: {file} can't be read: {error.strerror}") from error
    except UnicodeDecodeError:
        raise SettingsError(f"{variable}: {file} is not a text") from None


def _found(setting: Setting, texts: Sequence[str], name: str, origin: str) -> _Found:
    if not setting.many and len(texts) != 1:
        raise SettingsError(f"{name} has {len(texts)} values; it takes one: {setting.kind.accepts}")
    values = tuple(_parsed(setting, each.strip(), name) for each in texts)
    return _Found(setting, values if setting.many else values[0], origin)


def _parsed(setting: Setting, written: str, name: str) -> Any:
    try:
        return setting.kind.parse(written)
    except ValueError as error:
        raise _wrong(setting, written, name, str(error)) from None


def _wrong(setting: Setting, written: str, name: str, reason: str = "") -> SettingsError:
    # A wrong secret is a secret all the same, and the reason may quote it.
    if setting.secret:
        return SettingsError(f"{name} has a wrong value (not shown); it takes {setting.kind.accepts}")
    why = f" ({_one_line(reason)})" if reason else ""
    return SettingsError(f"{name} is {_brief(written)}; it takes {setting.kind.accepts}{why}")


def _settings_of(found: Iterable[_Found]) -> Settings:
    values: dict[str, dict[str, Any]] = {}
    for each in found:
        values.setdefault(each.setting.group, {})[each.setting.name] = each.value
    default = Settings()
    return replace(default, **{name: replace(getattr(default, name), **own) for name, own in values.items()})


def _check_together(settings: Settings) -> None:
    """What is right by itself and wrong together."""
    budgets = settings.budgets
    # Each request reserves a whole page's bytes: such a crawl would end before its first one.
    if budgets.max_page_bytes > budgets.max_bytes:
        page, total = (BY_KEY[key] for key in ("max_page_bytes", "max_bytes"))
        sizes = f"{page.flag} ({page.show(budgets.max_page_bytes)}) is more than {total.flag} ({total.show(budgets.max_bytes)})"
        raise SettingsError(f"{sizes}: no page could be fetched")


def _nearest(name: str, names: Iterable[str]) -> str:
    from difflib import get_close_matches

    return get_close_matches(name[:80], names, n=1, cutoff=0.0)[0]


def _brief(written: str) -> str:
    """In quotes, on one line, and not too much of it."""
    return repr(written if len(written) <= 60 else written[:60] + "…")


def _one_line(message: str) -> str:
    return " ".join(message.split())


def reference() -> str:
    """docs/settings.md: every setting in a table, by group."""
    return "\n".join(_reference_lines()) + "\n"


_INTRODUCTION: Final = f"""\
# Settings

<!-- Made by `python -m gossamer.settings > docs/settings.md`; a test compares. -->

Every setting has three spellings: a flag (`--max-pages 500`), a variable (`{PREFIX}MAX_PAGES=500`) and a key in the TOML file
(`max_pages = 500`). Flags beat the environment, the environment beats the file. A name that is none, or a value that is wrong,
ends the start with one line that says what is right.

- **Sizes**: `4096` is bytes, `500KB` and `50MB` are powers of ten, `512KiB` and `2MiB` powers of two.
- **Durations**: `1.5` and `90s` are seconds, `5m` minutes, `1h` hours.
- **Lists** (*several* below): repeat the flag; blanks between in a variable; an array in the file. The strongest source
  replaces the whole list.
- **Switches** (`on|off`): the flag alone means `on`; in the file `true` and `false` will do.
- **None**: where `none` is the default it is also a value, which undoes what a weaker source says. The budgets that
  `--lift` lifts take it too, and then have no limit; for `--similarity` the word is `off`.
- **Secrets**: the value, or in the variable with `_FILE` behind its name a file that holds it
  (`{PREFIX}REDIS_URL_FILE=/run/secrets/redis`).
- A variable that is set to nothing counts as not set."""


def _reference_lines() -> Iterator[str]:
    yield _INTRODUCTION
    for each_group in GROUPS:
        yield f"\n## {each_group.title}\n"
        yield "| flag | environment | file key | default | meaning |"
        yield "|---|---|---|---|---|"
        for each in each_group.settings:
            flag = f"{each.flag} {each.kind.metavar}".replace("|", "\\|")
            key = f"`{each.key}`" + (" (several)" if each.many else "")
            variable = f"`{each.variable}`" + (", `…_FILE`" if each.secret else "")
            default = f"`{shown}`" if (shown := each.show(each.default)) else "none"
            yield f"| `{flag}` | {variable} | {key} | {default} | {each.help} |"


if __name__ == "__main__":
    import sys

    sys.stdout.write(reference())
