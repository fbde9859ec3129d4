"""`dead-letters`: what was set aside for good, so that it could harm nobody: unreadable messages, pages that kill workers.

Changes nothing. All of it came from outside and is shown spelled out.
"""

import json
from typing import Final

import msgspec

from gossamer.ports.broker import DeadLetter
from gossamer.records import UrlRecord
from services.controller.crawls import Place
from services.controller.outside import Outside
from services.controller.reading import ledger_of
from services.controller.wording import safe, several

SHOWN: Final = 100
BODY_CHARACTERS: Final = 200


class Letters(msgspec.Struct, frozen=True):
    messages: list[DeadLetter]
    pages: list[UrlRecord]


async def letters(place: Place, outside: Outside) -> Letters:
    """Raises `SettingsError` if the crawl has not begun, `EngineUnavailable` if it can't be read."""
    async with ledger_of(place, outside) as ledger:
        pages = await ledger.poisoned(SHOWN)
    broker = outside.open_broker(place)
    if broker is None:  # its queues live and die with the process that crawls, which reads nothing but its own words
        return Letters([], pages)
    try:
        return Letters(await broker.dead_letters(SHOWN), pages)
    finally:
        await broker.close()


def letters_text(place: Place, found: Letters) -> str:
    if not found.messages and not found.pages:
        return f"Crawl {place.id} has no dead letters.\n"
    lines = [f"Crawl {place.id}: {several(len(found.messages), 'message')} that could not be read, "]
    lines[0] += f"{several(len(found.pages), 'page')} that ended workers."
    lines += [f"  {safe(each.queue):<12} {safe(_body(each), BODY_CHARACTERS)}" for each in found.messages]
    lines += [f"  page         {safe(each.url.url, 500)}: {safe(each.reason)}" for each in found.pages]
    return "\n".join(lines) + "\n"


def letters_json(place: Place, found: Letters) -> str:
    fields = {
        "crawl": place.id,
        "messages": [{"queue": each.queue, "body": _body(each)} for each in found.messages],
        "pages": [{"url": each.url.url, "deaths": each.deaths, "reason": each.reason} for each in found.pages],
    }
    return json.dumps(fields, indent=1) + "\n"


def _body(letter: DeadLetter) -> str:
    return letter.body[: 4 * BODY_CHARACTERS].decode("utf-8", "backslashreplace")
