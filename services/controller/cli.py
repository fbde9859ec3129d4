"""The command line: from words to what is asked for, or to one line that says what is wrong with them.

Flags and their help are made from `gossamer.settings`, so that a setting can't be without its flag. All that can be known without
the environment is settled here: a typing error is answered in a tenth of a second, not after a minute of installing.
Standard library only. Must not know: how anything that is asked for is done.
"""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, NamedTuple, NoReturn

from gossamer import __version__
from gossamer.errors import SettingsError
from gossamer.kept import RAISED
from gossamer.settings import BY_KEY, GROUPS, PREFIX, Loaded, Setting, load
from services.controller.exits import Exit
from services.controller.export.files import Target

PROG: Final = "controller.py"
COMMAND: Final = f"python {PROG}"


class Say(NamedTuple):
    """Only something to be shown: help, or the version."""

    text: str


class Start(NamedTuple):
    """A new crawl."""

    loaded: Loaded
    dry_run: bool


class Where(NamedTuple):
    """Which crawl a verb is for: this one, the one in this folder, or (neither) the latest here."""

    crawl: str | None = None
    state: Path | None = None


class Resume(NamedTuple):
    where: Where
    flags: Mapping[str, str]  #: by key: those of `RESUMABLE` that were given


class Status(NamedTuple):
    where: Where
    json: bool


class Stop(NamedTuple):
    where: Where


class DeadLetters(NamedTuple):
    where: Where
    json: bool


class Explain(NamedTuple):
    url: str
    where: Where | None  #: None: no crawl is asked, because settings are given
    loaded: Loaded | None  #: to go by if no crawl is asked, or none is here; None: a crawl is named
    json: bool


class Export(NamedTuple):
    where: Where
    target: Target
    force: bool


class Up(NamedTuple):
    """What the environment of a stack's controller asks for."""

    start: Start | None  #: None: it names no seed


Command = Say | Start | Resume | Status | Stop | Explain | Export | DeadLetters | Up

#: What `resume` takes besides the crawl's own settings. Anything else would make of one crawl two halves of different ones.
RESUMABLE: Final = (*RAISED, "report", "log")


def read(argv: Sequence[str], environ: Mapping[str, str]) -> Command:
    """What is asked for. Raises `SettingsError`, in one line, for what can't be understood or can't be right."""
    if not argv or argv[0].startswith("-"):
        return _read_start(argv, environ)
    verb, *rest = argv
    if verb not in _VERBS:
        raise _no_verb(verb)
    return _VERBS[verb].read(rest, environ)


class _Verb(NamedTuple):
    read: Callable[[Sequence[str], Mapping[str, str]], Command]
    help: str


def _read_start(argv: Sequence[str], environ: Mapping[str, str]) -> Command:
    parser = _start_parser()
    given = _parse(parser, argv)
    if isinstance(given, Say):
        return given
    dry_run, config = given.pop("dry_run"), given.pop("config")
    loaded = load(given, environ, Path(config) if config else None)
    if not loaded.settings.start.seeds and loaded.settings.start.seeds_file is None:
        raise SettingsError(f"there is no seed; give one with --seed URL, or many with --seeds FILE ({COMMAND} --help)")
    return Start(loaded, dry_run)


def _read_resume(argv: Sequence[str], environ: Mapping[str, str]) -> Command:
    parser = _verb_parser("resume", _RESUME_TEXT)
    options = parser.add_argument_group("What may be given anew")
    for key in RESUMABLE:
        _add(options, BY_KEY[key], show_default=False)
    given = _parse(parser, argv)
    if isinstance(given, Say):
        return given
    where = _where(given, environ)
    return Resume(where, MappingProxyType(given))


def _read_status(argv: Sequence[str], environ: Mapping[str, str]) -> Command:
    parser = _verb_parser("status", "Shows how a crawl stands, whether it runs, has ended or was killed. Changes nothing.")
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    given = _parse(parser, argv)
    if isinstance(given, Say):
        return given
    return Status(_where(given, environ), given["json"])


def _read_stop(argv: Sequence[str], environ: Mapping[str, str]) -> Command:
    parser = _verb_parser("stop", "Ends a running crawl gently: no more is begun, what is in flight is finished. Waits for that.")
    given = _parse(parser, argv)
    return given if isinstance(given, Say) else Stop(_where(given, environ))


def _read_explain(argv: Sequence[str], environ: Mapping[str, str]) -> Command:
    parser = _verb_parser("explain", _EXPLAIN_TEXT, before=" URL")
    parser.add_argument("url", nargs="?", help=argparse.SUPPRESS)
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    for setting in BY_KEY.values():
        if setting.key != "state":  # which names a crawl here
            _add(parser, setting, hidden=True)
    parser.add_argument("--config", metavar="FILE", default=argparse.SUPPRESS, help=argparse.SUPPRESS)
    given = _parse(parser, argv)
    if isinstance(given, Say):
        return given
    url, json = given.pop("url"), given.pop("json")
    if url is None:
        raise SettingsError(f"explain needs a URL: {COMMAND} explain https://example.com/")
    named = given["crawl"] is not None or given["state"] is not None
    where = _where(given, environ)
    if not given:
        loaded = None if where != Where() else load({}, environ, None)
        return Explain(url, where, loaded, json)
    if named:
        flag = next((BY_KEY[key].flag for key in given if key in BY_KEY), "--config")
        why = "is for an answer without a crawl, and a crawl has its own settings"
        raise SettingsError(f"{flag} {why}; leave out the one or the other")
    config = given.pop("config", None)
    return Explain(url, None, load(given, environ, Path(config) if config else None), json)


def _read_export(argv: Sequence[str], environ: Mapping[str, str]) -> Command:
    parser = _verb_parser("export", _EXPORT_TEXT)
    parser.add_argument("--warc", metavar="FILE", help="where to: a name that ends in .warc.gz")
    parser.add_argument("--force", action="store_true", help="write over files that exist")
    given = _parse(parser, argv)
    if isinstance(given, Say):
        return given
    if given["warc"] is None:
        raise SettingsError(f"export needs a file: {COMMAND} export --warc pages.warc.gz")
    return Export(_where(given, environ), Target.at(Path(given["warc"])), given["force"])


def _read_dead_letters(argv: Sequence[str], environ: Mapping[str, str]) -> Command:
    parser = _verb_parser("dead-letters", _DEAD_LETTERS_TEXT)
    parser.add_argument("--json", action="store_true", help="as one JSON object")
    given = _parse(parser, argv)
    if isinstance(given, Say):
        return given
    return DeadLetters(_where(given, environ), given["json"])


def _read_up(argv: Sequence[str], environ: Mapping[str, str]) -> Command:
    parser = _new_parser(f"{PROG} up", f"{COMMAND} up", _UP_TEXT, "")
    _add_help(parser.add_argument_group("Besides"))
    given = _parse(parser, argv)
    if isinstance(given, Say):
        return given
    seeds = environ.get("SEED", "").split()
    if not seeds and not any(environ.get(BY_KEY[key].variable, "").strip() for key in ("seed", "seeds")):
        return Up(None)
    words = [word for seed in seeds for word in ("--seed", seed)]
    words += [word for module in environ.get("MODULE", "").split() for word in ("--module", module)]
    if workers := environ.get("WORKERS", "").strip():
        words += ["--workers", workers]
    start = _read_start(words, environ)
    assert isinstance(start, Start)
    return Up(start)


_VERBS: Final[Mapping[str, _Verb]] = MappingProxyType(
    {
        "resume": _Verb(_read_resume, "goes on where it ended, was stopped or was killed, with its own settings"),
        "status": _Verb(_read_status, "shows how it stands; with --json for programs"),
        "stop": _Verb(_read_stop, "ends it gently: what is in flight is finished"),
        "explain": _Verb(_read_explain, "explain URL: what became of it and why, or what would; also without a crawl"),
        "export": _Verb(_read_export, "copies its pages into one WARC archive, with an index"),
        "up": _Verb(_read_up, "in a stack of containers: crawls what SEED, WORKERS and MODULE name"),
        "dead-letters": _Verb(_read_dead_letters, "lists what was set aside: unreadable messages, pages that end workers"),
    }
)


# --- Parsers ----------------------------------------------------------------------------------------------------------


class _Parser(argparse.ArgumentParser):
    """argparse, but errors are ours: one line, without the usage before it."""

    def error(self, message: str) -> NoReturn:
        raise SettingsError(message.removeprefix("argument ").replace(": expected one argument", " needs a value"))


def _start_parser() -> _Parser:
    parser = _new_parser(PROG, _USAGE, _TEACHING, _epilog())
    for group in GROUPS:
        section = parser.add_argument_group(_heading(group.title))
        for setting in group.settings:
            _add(section, setting)
    section = parser.add_argument_group("Besides")
    section.add_argument("--config", metavar="FILE", help="read settings from this TOML file")
    section.add_argument(
        "--dry-run",
        action="store_true",
        help="show the settings, where each came from, and what would be asked first; ask for nothing",
    )
    _add_help(section)
    section.add_argument("--version", action="store_true", help="show the version")
    return parser


def _verb_parser(verb: str, text: str, before: str = "") -> _Parser:
    parser = _new_parser(f"{PROG} {verb}", f"{COMMAND} {verb}{before} [--crawl ID | --state DIR] [option ...]", text, "")
    section = parser.add_argument_group("Which crawl (the latest one here, unless it is named)")
    section.add_argument("--crawl", metavar="ID", help="the one in ./crawls/ID")
    section.add_argument("--state", metavar="DIR", help="the one in DIR")
    _add_help(section)
    return parser


def _new_parser(prog: str, usage: str, description: str, epilog: str) -> _Parser:
    # Abbreviations are refused: one that is clear today is ambiguous, or another flag, after the next release.
    return _Parser(
        prog=prog,
        usage=usage,
        description=description,
        epilog=epilog,
        formatter_class=_Layout,
        add_help=False,
        allow_abbrev=False,
    )


class _Layout(argparse.RawDescriptionHelpFormatter):
    """Wide enough that most settings take one line."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=34, width=120)


def _heading(title: str) -> str:
    """argparse puts a colon behind it, and one is enough."""
    name, _, what = title.partition(": ")
    return f"{name} ({what})" if what else name


def _add(section: argparse._ActionsContainer, setting: Setting, *, show_default: bool = True, hidden: bool = False) -> None:
    default = setting.show(setting.default)
    text = f"{setting.help} ({default})" if show_default and default not in ("", "none") else setting.help
    section.add_argument(
        setting.flag,
        dest=setting.key,
        metavar=setting.kind.metavar,
        action="append" if setting.many else "store",
        nargs=None if setting.kind.bare is None else "?",
        const=setting.kind.bare,
        default=argparse.SUPPRESS,
        help=argparse.SUPPRESS if hidden else text.replace("%", "%%"),
    )


def _add_help(section: argparse._ArgumentGroup) -> None:
    section.add_argument("-h", "--help", action="store_true", help="show this")


# --- Parsing ----------------------------------------------------------------------------------------------------------


def _parse(parser: _Parser, argv: Sequence[str]) -> dict[str, Any] | Say:
    """What was given, by key; or help or version, which beat whatever else is there, right or wrong."""
    if "-h" in argv or "--help" in argv:
        return Say(parser.format_help())
    namespace, strange = parser.parse_known_args(argv)
    given = vars(namespace)
    del given["help"]
    if given.pop("version", False):
        return Say(f"gossamer {__version__}\n")
    if strange:
        raise _strange(strange[0], parser)
    return given


def _where(given: dict[str, Any], environ: Mapping[str, str]) -> Where:
    """Takes its own out of `given`."""
    crawl, state = given.pop("crawl"), given.pop("state")
    if crawl is not None and state is not None:
        raise SettingsError("--crawl and --state both name a crawl; leave one out")
    if crawl is not None:
        return Where(crawl=crawl)
    # As for a start: whoever keeps the folder's name in the environment means it for the verbs too.
    setting = BY_KEY["state"]
    named = {key: value for key, value in environ.items() if key == setting.variable}
    loaded = load({} if state is None else {setting.key: state}, named, None)
    return Where(state=loaded.settings.storage.state)


def _no_verb(word: str) -> SettingsError:
    if "://" in word:
        return SettingsError(f"{_brief(word)} is not a verb; did you mean --seed {word[:200]}?")
    near = _nearest(word, _VERBS, cutoff=0.0)
    return SettingsError(f"{_brief(word)} is not a verb; did you mean {near}? (verbs: {', '.join(_VERBS)})")


def _strange(word: str, parser: _Parser) -> SettingsError:
    flag = word.partition("=")[0]
    if not flag.startswith("-"):
        return SettingsError(f"{_brief(word)} belongs to no flag; a value stands behind its flag, a verb before everything else")
    if flag in _START_FLAGS and parser.prog != PROG:
        return _only_at_a_start(flag, resuming=parser.prog.endswith("resume"))
    near = _nearest(flag, parser._option_string_actions, cutoff=0.6)
    return SettingsError(f"{_brief(flag)} is not a flag here; " + (f"did you mean {near}?" if near else "see --help"))


def _only_at_a_start(flag: str, *, resuming: bool) -> SettingsError:
    if not resuming:
        return SettingsError(f"{flag} is for the start of a crawl; see --help")
    allowed = ", ".join(BY_KEY[key].flag for key in RESUMABLE)
    return SettingsError(f"{flag} can't be changed by resume: a crawl keeps its settings, but for {allowed}")


def _nearest(word: str, words: Iterable[str], cutoff: float) -> str | None:
    from difflib import get_close_matches  # slow to import, and seldom needed

    return next(iter(get_close_matches(word[:80], words, n=1, cutoff=cutoff)), None)


def _brief(word: str) -> str:
    return repr(word if len(word) <= 60 else word[:60] + "…")


_START_FLAGS: Final = frozenset(each.flag for each in BY_KEY.values()) | {"--config", "--dry-run"}


# --- What help says ---------------------------------------------------------------------------------------------------

_USAGE: Final = f"""\
{COMMAND} --seed URL [--workers N] [--module NAME] [option ...]
       {COMMAND} VERB [--crawl ID | --state DIR] [option ...]"""

_TEACHING: Final = f"""\
Gossamer crawls the web from its seeds on: politely (one request at a time to a host, a pause after each, robots.txt obeyed),
within budgets that are never passed, and so that a crawl which was killed at any moment can be resumed.

To begin with:
  {COMMAND} --seed https://en.wikipedia.org/wiki/Napoleon --max-pages 50
      fifty pages, wherever the links lead; shown while it goes, summed up at the end
  {COMMAND} --seed https://example.com --scope host --module jsonl:path=out/pages.jsonl
      one site, and a line of JSON for each page of it
  {COMMAND} --seeds seeds.txt --workers 8 --max-bytes 1GB --contact you@example.com --dry-run
      only shows the settings and what would be asked first

Verbs, for a crawl that exists (the latest one here, unless --crawl or --state names another):
""" + "".join(f"  {name:<12} {verb.help}\n" for name, verb in _VERBS.items())

_RESUME_TEXT: Final = """\
Goes on with a crawl that was stopped or killed, or that a budget ended. It keeps its own settings and modules; budgets can be
raised. A crawl that is complete stays as it is."""

_EXPLAIN_TEXT: Final = f"""\
Says what became of a URL and why: its state, the page that it was found on, what each rule says of it, its domain's clock, its
outcome. Of a URL that the crawl never saw it says what would become of it. Changes nothing, and asks nothing of the web.

Without a crawl, if there is none here or settings are given, it is answered by settings alone: any of a start, --config too.
  {COMMAND} explain 'https://example.com/a?b=1'
      in the latest crawl here
  {COMMAND} explain 'https://example.com/a?b=1' --seed https://example.com/ --scope host --max-url-params 3
      in a crawl that would be started so"""

_EXPORT_TEXT: Final = """\
Copies the pages that a crawl has stored into one WARC archive (FILE.warc.gz) and writes an index beside it (FILE.cdxj), so that
replay and research tools read them. While the crawl runs, too: then it is what was stored when the export began."""

_DEAD_LETTERS_TEXT: Final = """\
Lists what a crawl set aside so that it could do no harm: messages that nobody could read, and pages that were in flight each time
their worker died. Changes nothing."""

_UP_TEXT: Final = """\
The controller of a stack whose frontier and workers run in containers of their own (docker-compose.yml). Crawls what SEED,
WORKERS, MODULE and the settings in the environment name, and ends with the crawl's exit code; without SEED it says how to give
one, and waits."""

_SPELLINGS: Final = f"""\
Every setting can also be given in the environment ({PREFIX}MAX_PAGES=50) and in the file of --config (max_pages = 50); a flag
beats the environment, and that the file. Sizes: 500KB, 50MB, 2MiB. Times: 1.5, 90s, 5m, 1h. docs/settings.md lists them all.
The first start makes .venv from requirements.lock. A crawl is kept in ./crawls/ID. Ctrl-C ends it gently, twice at once."""


def _epilog() -> str:
    return "Exit codes:\n" + "".join(f"  {code.value:<4} {code.meaning}\n" for code in Exit) + "\n" + _SPELLINGS
