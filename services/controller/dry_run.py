"""`--dry-run`: what a crawl would be, and what it would ask for first. Pure; nothing is made, nobody is asked."""

from collections.abc import Iterator
from typing import Final

from gossamer.settings import GROUPS, Loaded
from gossamer.urls import origin_of
from services.controller.wording import safe

SEEDS_SHOWN: Final = 10


def dry_run(loaded: Loaded, seeds: tuple[str, ...]) -> str:
    """Every setting with its value and where that came from; then the first requests."""
    return "\n".join((*_settings(loaded), *_requests(seeds))) + "\n"


def _settings(loaded: Loaded) -> Iterator[str]:
    values = loaded.shown()
    for group in GROUPS:
        yield group.title
        for setting in group.settings:
            value = safe(values[setting.key] or "none", 200)
            yield f"  {setting.key:<20} {value:<24} {loaded.origin(setting.key)}"
        yield ""


def _requests(seeds: tuple[str, ...]) -> Iterator[str]:
    yield "Asked first: each site's robots.txt, and then its seed if that allows it"
    for seed in seeds[:SEEDS_SHOWN]:
        yield f"  {origin_of(seed)}/robots.txt"
        yield f"  {safe(seed, 500)}"
    if len(seeds) > SEEDS_SHOWN:
        yield f"  and {len(seeds) - SEEDS_SHOWN:,} more seeds"
    yield ""
    yield "Nothing was asked for, and nothing was written."
