"""The servers of a crawl that stands on some: named in the environment, for whoever comes back to the crawl.

A crawl's settings lie in its ledger, but what leads to the ledger can't, and passwords must not. So `resume`, `status` and `stop`
read these again, as the start did.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from adapters.wiring import SERVER_KEYS
from gossamer.settings import BY_KEY, Settings, Storage, load

_VARIABLES: Final = frozenset(
    variable for key in SERVER_KEYS for variable in (BY_KEY[key].variable, BY_KEY[key].variable + "_FILE")
)


def named_in(environ: Mapping[str, str]) -> Storage:
    """Those of the three that are set; the rest is as by default. Raises `SettingsError`."""
    return load({}, {name: value for name, value in environ.items() if name in _VARIABLES}, None).settings.storage


def with_rank_api_key(settings: Settings, environ: Mapping[str, str]) -> Settings:
    """The key is as secret as a password, and is named again in the same way."""
    variable = BY_KEY["rank_api_key"].variable
    named = {name: value for name, value in environ.items() if name in (variable, f"{variable}_FILE")}
    return replace(settings, frontier=replace(settings.frontier, rank_api_key=load({}, named, None).settings.frontier.rank_api_key))


def with_servers(settings: Settings, environ: Mapping[str, str]) -> Settings:
    named = named_in(environ)
    return replace(settings, storage=replace(settings.storage, **{key: getattr(named, key) for key in SERVER_KEYS}))
