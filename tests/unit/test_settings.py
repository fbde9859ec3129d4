"""Settings: three spellings of each, one of them wins, and whatever is wrong is said in one line."""

import dataclasses
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import gossamer.settings
from gossamer.errors import SettingsError
from gossamer.settings import BY_KEY, GROUPS, Engine, Loaded, Scope, Setting, Settings, load, reference, shown

SECRETS = [each for each in BY_KEY.values() if each.secret]
settings_of_all_kinds = pytest.mark.parametrize("setting", BY_KEY.values(), ids=lambda each: each.key)

#: A text for each setting that is not its default.
OTHER = {
    "N": "17",
    "SIZE": "1MB",
    "TIME": "7s",
    "SHARE": "0.5",
    "REGEX": "a+",
    "CIDR": "10.0.0.0/8",
    "DOMAIN": "example.com",
    "FILE": "x.txt",
    "DIR": "x",
    "NAME": "x",
    "NAME[:key=value,...]": "x:a=1",
    "TEXT": "x",
    "URL": "http://x/",
    "web|domain|host": "host",
    "follow|skip": "skip",
    "host|domain": "domain",
    "drop|follow": "follow",
    "human|json": "json",
    "embedded|external|compose": "external",
    "classic|quorum": "quorum",
    "path|auto": "auto",
    "here|elsewhere": "elsewhere",
    "square|even|strict": "even",
    "on|off": "on",
}
OTHER_SECRET = {
    "rabbitmq_url": "amqp://u:hidden@h",
    "redis_url": "redis://u:hidden@h",
    "s3_url": "http://u:hidden@h/b",
    "rank_api_key": "hidden",
}


def other(setting: Setting) -> str:
    return OTHER_SECRET[setting.key] if setting.secret else OTHER[setting.kind.metavar]


def written(folder: Path, toml: str) -> Path:
    file = folder / "crawl.toml"
    file.write_text(toml, encoding="utf-8")
    return file


def value(loaded: Loaded, setting: Setting) -> object:
    return getattr(getattr(loaded.settings, setting.group), setting.name)


def refusal(flags: Mapping[str, str | Sequence[str]] = {}, environ: Mapping[str, str] = {}, file: Path | None = None) -> str:
    with pytest.raises(SettingsError) as refused:
        load(flags, environ, file)
    message = str(refused.value)
    assert len(message.splitlines()) == 1
    return message


def test_nothing_given_is_all_defaults() -> None:
    loaded = load({}, {"PATH": "/bin"}, None)

    assert loaded.settings == Settings()
    assert {loaded.origin(key) for key in BY_KEY} == {"default"}


@settings_of_all_kinds
def test_every_setting_has_three_spellings(setting: Setting, tmp_path: Path) -> None:
    text = other(setting)
    file = written(tmp_path, f"{setting.key} = '{text}'")

    by_flag = load({setting.key: text}, {}, None)
    by_variable = load({}, {setting.variable: text}, None)
    by_file = load({}, {}, file)

    assert value(by_flag, setting) != setting.default
    assert by_flag.settings == by_variable.settings == by_file.settings
    assert by_flag.origin(setting.key) == f"flag {setting.flag}"
    assert by_variable.origin(setting.key) == f"environment {setting.variable}"
    assert by_file.origin(setting.key) == f"file {file}"


def test_flags_beat_the_environment_and_that_the_file(tmp_path: Path) -> None:
    file = written(tmp_path, "max_pages = 1\nbands = 1\ndelay = 1.5\nseed = ['http://a/', 'http://b/']")

    loaded = load({"max_pages": "3", "seed": ["http://c/"]}, {"GOSSAMER_MAX_PAGES": "2", "GOSSAMER_BANDS": "2"}, file)

    assert loaded.settings.budgets.max_pages == 3
    assert loaded.settings.frontier.bands == 2
    assert loaded.settings.manners.delay_s == 1.5
    assert loaded.settings.start.seeds == ("http://c/",), "a list is replaced as a whole"


def test_lists_are_repeated_flags_words_and_arrays(tmp_path: Path) -> None:
    nets = ("10.0.0.0/8", "fd00::/8")

    by_flag = load({"allow_net": nets}, {}, None)
    by_variable = load({}, {"GOSSAMER_ALLOW_NET": " 10.0.0.0/8\nfd00::/8 "}, None)
    by_file = load({}, {}, written(tmp_path, "allow_net = ['10.0.0.0/8', 'fd00::/8']"))

    assert by_flag.settings.manners.allow_net == nets
    assert by_flag.settings == by_variable.settings == by_file.settings
    assert load({"exclude": "a b"}, {}, None).settings.links.exclude == ("a b",), "a flag is one value, blanks and all"


def test_a_stronger_source_can_undo_a_weaker_one(tmp_path: Path) -> None:
    file = written(tmp_path, "max_depth = 3\nmax_url_params = 2")

    loaded = load({"max_depth": "none", "max_url_params": "none"}, {}, file)

    assert loaded.settings == Settings()
    assert loaded.origin("max_depth") == "flag --max-depth"


def test_a_variable_set_to_nothing_is_not_set() -> None:
    loaded = load({}, {"GOSSAMER_MAX_PAGES": "", "GOSSAMER_SEED": " ", "GOSSAMER_REDIS_URL_FILE": ""}, None)

    assert loaded.settings == Settings()
    assert loaded.origin("max_pages") == "default"


@pytest.mark.parametrize("setting", SECRETS, ids=lambda each: each.key)
def test_a_secret_may_lie_in_a_file(setting: Setting, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(other(setting) + "\n", encoding="utf-8")
    variable = setting.variable + "_FILE"

    loaded = load({}, {variable: str(secret)}, None)

    assert value(loaded, setting) == other(setting)
    assert loaded.origin(setting.key) == f"environment {variable}"
    assert refusal({}, {variable: str(secret), setting.variable: other(setting)}) == (
        f"{setting.variable} and {variable} are both set; leave one out"
    )
    assert refusal({}, {variable: str(tmp_path / "none")}).endswith("can't be read: No such file or directory")


@pytest.mark.parametrize("setting", SECRETS, ids=lambda each: each.key)
def test_a_secret_is_nowhere_to_be_seen(setting: Setting, tmp_path: Path) -> None:
    loaded = load({setting.key: other(setting)}, {}, None)
    texts = [repr(loaded), str(loaded.settings), str(loaded.shown()), str(loaded._replace())]

    assert not [text for text in texts if "hidden" in text]
    assert loaded.shown()[setting.key] == other(setting).replace("hidden", "***")
    assert "hidden" not in refusal({setting.key: "ftp://u:hidden@h"})
    assert "hidden" not in refusal({setting.key: "http://[u:hidden@h"})
    assert "hidden" not in refusal({}, {}, written(tmp_path, f"{setting.key} = ['hidden', true]"))


@settings_of_all_kinds
def test_what_is_shown_can_be_written(setting: Setting) -> None:
    if not setting.many and not setting.secret:
        loaded = load({setting.key: other(setting)}, {}, None)

        assert load({setting.key: loaded.shown()[setting.key]}, {}, None).settings == loaded.settings
    assert shown(Settings())[setting.key] == setting.show(setting.default)


@pytest.mark.parametrize(
    ("flags", "environ", "message"),
    [
        ({"max_page": "5"}, {}, "'max_page' is not a setting; did you mean max_pages?"),
        ({}, {"GOSSAMER_MAX_PAGE": "5"}, "'GOSSAMER_MAX_PAGE' is not a setting; did you mean GOSSAMER_MAX_PAGES?"),
        ({}, {"GOSSAMER_WORKERS_FILE": "x"}, "'GOSSAMER_WORKERS_FILE' is not a setting; did you mean GOSSAMER_WORKERS?"),
        ({"workers": "0"}, {}, "--workers is '0'; it takes a whole number from 1 up"),
        ({"workers": "two"}, {}, "--workers is 'two'; it takes a whole number from 1 up"),
        ({}, {"GOSSAMER_BANDS": "101"}, "GOSSAMER_BANDS is '101'; it takes a whole number from 1 to 100"),
        ({"delay": "-1"}, {}, "--delay is '-1'; it takes a duration, such as 1.5, 90s, 5m or 1h"),
        ({"lease": "0"}, {}, "--lease is '0'; it takes a duration above 0, such as 1.5, 90s, 5m or 1h"),
        ({"max_bytes": "1K"}, {}, "--max-bytes is '1K'; it takes a size from 1 up, such as 500KB, 50MB, 2MiB or 4096"),
        ({"scope": "site"}, {}, "--scope is 'site'; it takes web, domain or host"),
        ({"similarity": "1.5"}, {}, "--similarity is '1.5'; it takes a number above 0, up to 1, or off"),
        ({"seeds": "http://a/"}, {}, "--seeds is 'http://a/'; it takes a file (its URLs go to --seed), or none"),
        ({"workers": ["1", "2"]}, {}, "--workers has 2 values; it takes one: a whole number from 1 up"),
        ({"user_agent": "a\nb"}, {}, "--user-agent is 'a\\nb'; it takes a text (printable ASCII), or none"),
        (
            {"include": ["ok", "("]},
            {},
            "--include is '('; it takes a regular expression (missing ), unterminated subpattern at position 0)",
        ),
        (
            {"allow_net": ["10.0.0.1/8"]},
            {},
            "--allow-net is '10.0.0.1/8'; it takes a network such as 10.0.0.0/8 or fd00::/8 (10.0.0.1/8 has host bits set)",
        ),
        (
            {"max_bytes": "100KB"},
            {},
            "--max-page-bytes (500KB) is more than --max-bytes (100KB): no page could be fetched",
        ),
    ],
)
def test_what_is_wrong_is_said_in_one_line(flags: dict[str, str], environ: dict[str, str], message: str) -> None:
    assert refusal(flags, environ) == message


@pytest.mark.parametrize(
    ("toml", "message"),
    [
        ("max_page = 5", "'max_page' is not a setting; did you mean max_pages?"),
        ("max-pages = 5", "'max-pages' is not a setting; did you mean max_pages?"),
        ('"max_\\npages" = 5', "'max_\\npages' is not a setting; did you mean max_pages?"),
        ("workers = 0", "workers is '0'; it takes a whole number from 1 up"),
        ("workers = true", "workers is 'True'; it takes a whole number from 1 up"),
        ("contact = true", "contact is 'True'; it takes a URL or mail address (printable ASCII), or none"),
        ("delay = inf", "delay is 'inf'; it takes a duration, such as 1.5, 90s, 5m or 1h"),
        ("sitemaps = 2", "sitemaps is '2'; it takes on or off"),
        ("workers = [1, 2]", "workers has 2 values; it takes one: a whole number from 1 up"),
        ("workers = { n = 1 }", "workers is \"{'n': 1}\"; it takes a whole number from 1 up"),
    ],
)
def test_what_is_wrong_in_a_file_is_said_with_its_name(toml: str, message: str, tmp_path: Path) -> None:
    file = written(tmp_path, toml)

    assert refusal(file=file) == f"{file}: {message}"


@pytest.mark.parametrize(("toml", "on"), [("true", True), ("false", False), ('"on"', True), ('"off"', False)])
def test_a_switch_in_a_file_may_be_a_truth_value(toml: str, on: bool, tmp_path: Path) -> None:
    assert load({}, {}, written(tmp_path, f"sitemaps = {toml}")).settings.links.sitemaps is on


@pytest.mark.parametrize("content", [b"workers =", b"\xff\xfe", b"workers = " + b"9" * 5000, b"a = 1\na = 2"])
def test_a_file_that_is_no_toml_is_refused(content: bytes, tmp_path: Path) -> None:
    file = tmp_path / "crawl.toml"
    file.write_bytes(content)

    assert refusal(file=file).startswith(f"{file} is not TOML: ")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    assert refusal(file=tmp_path / "none.toml") == f"{tmp_path / 'none.toml'} can't be read: No such file or directory"


def test_a_wrong_value_is_refused_even_where_it_is_beaten() -> None:
    assert refusal({"workers": "2"}, {"GOSSAMER_WORKERS": "none"}).startswith("GOSSAMER_WORKERS is 'none'")


@given(st.sampled_from(sorted(BY_KEY)), st.text() | st.lists(st.text(), max_size=3))
def test_any_text_is_a_setting_or_a_settings_error(key: str, text: str | list[str]) -> None:
    try:
        loaded = load({key: text}, {}, None)
    except SettingsError as error:
        refused = str(error)
    else:
        refused = loaded.shown()[key]

    assert len(refused.splitlines()) <= 1


def test_settings_can_not_be_changed() -> None:
    loaded = load({}, {}, None)

    with pytest.raises(dataclasses.FrozenInstanceError):
        loaded.settings.budgets.max_pages = 1  # type: ignore[misc]
    with pytest.raises(TypeError):
        loaded.origins["max_pages"] = "x"  # type: ignore[index]
    hash(loaded.settings)


def test_choices_are_enums() -> None:
    loaded = load({"scope": "domain", "engine": "compose"}, {}, None)

    assert loaded.settings.links.scope is Scope.DOMAIN
    assert loaded.settings.storage.engine is Engine.COMPOSE


@settings_of_all_kinds
def test_keys_have_no_units_and_help_is_one_line(setting: Setting) -> None:
    assert not setting.key.endswith("_s")
    assert len(setting.help.splitlines()) == 1
    assert len(setting.help) < 80
    # What stands for the value in the help is what stands for it behind the flag.
    for metavar in re.findall(r"\b(?:N|SIZE|TIME|FILE|DIR|REGEX|CIDR|TEXT)\b", setting.help):
        assert metavar == setting.kind.metavar


def test_no_key_stands_twice() -> None:
    assert len(BY_KEY) == sum(len(group.settings) for group in GROUPS)


def test_every_field_says_when_to_change_it() -> None:
    source = Path(gossamer.settings.__file__).read_text(encoding="utf-8")

    documented = re.findall(r"^    #: .*\n(?:    #: .*\n)*    (\w+): .* = (?:setting|several)\(", source, re.M)

    assert documented == [setting.name for setting in BY_KEY.values()]


def test_the_reference_is_the_docs() -> None:
    docs = Path(__file__).parents[2] / "docs" / "settings.md"

    assert docs.read_text(encoding="utf-8") == reference(), "python -m gossamer.settings > docs/settings.md"
