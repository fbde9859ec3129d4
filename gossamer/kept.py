"""A crawl's settings as a text, which its ledger keeps, so that `resume` goes on with what the crawl was started with.

Kept are the values that differ from their defaults, as they would be written on a command line. Left out are secrets, which
don't belong in a ledger, and what the crawl's folder knows: where it is, and its seeds (there may be a hundred thousand, and the
ledger writes this text down again and again).
"""

import json
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from gossamer.errors import SettingsError
from gossamer.settings import BY_KEY, Loaded, Setting, Settings, load

_ELSEWHERE: Final = frozenset({"seed", "seeds", "state"})

#: What may be given anew at a `resume`, but only more of it: budgets are promises, and what is spent is spent.
RAISED: Final = ("max_pages", "max_bytes", "max_host_pages", "max_domain_pages", "max_hosts", "max_variants")


def to_text(settings: Settings) -> str:
    """What `from_text` reads."""
    return json.dumps({key: _written(each, settings) for key, each in BY_KEY.items() if _worth_keeping(each, settings)})


def from_text(text: str, flags: Mapping[str, str]) -> Loaded:
    """The settings of a crawl that is resumed with these flags. Raises `SettingsError` for a budget that would shrink."""
    own: Mapping[str, str | Sequence[str]] = json.loads(text) if text else {}
    before = load(own, {}, None).settings
    after = load({**own, **flags}, {}, None)
    for key in RAISED:
        _refuse_less(BY_KEY[key], before, after.settings)
    origins = {key: origin if key in flags else "the crawl" for key, origin in after.origins.items()}
    return Loaded(after.settings, MappingProxyType(origins))


def _worth_keeping(setting: Setting, settings: Settings) -> bool:
    return setting.key not in _ELSEWHERE and not setting.secret and _value(setting, settings) != setting.default


def _written(setting: Setting, settings: Settings) -> str | list[str]:
    value = _value(setting, settings)
    return [setting.kind.show(each) for each in value] if setting.many else setting.kind.show(value)


def _value(setting: Setting, settings: Settings) -> Any:
    return getattr(getattr(settings, setting.group), setting.name)


def _refuse_less(setting: Setting, before: Settings, after: Settings) -> None:
    had, asked = _value(setting, before), _value(setting, after)
    if asked is not None and (had is None or asked < had):  # none is without a bound
        raise SettingsError(
            f"{setting.flag} is {setting.show(asked)}, and the crawl has {setting.show(had)}: it can only be raised"
        )
