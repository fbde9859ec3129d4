"""What the rank API answers, as priorities. Its words are not trusted: whatever is not in its form is rubbish, and no rank.

The form is Open PageRank's: `{"status_code": 200, "response": [{"status_code", "domain", "page_rank_decimal", …}, …]}`, with a
decimal from 0 to 10, the more the better. Pure. Must not know: how it was asked.
"""

from collections.abc import Collection
from typing import Final

import msgspec

from services.frontier.bands import PRIORITY_MAX

DECIMAL_MAX: Final = 10
FOUND: Final = 200
NOT_FOUND: Final = 404


class Rubbish(Exception):
    """No answer in the form that was agreed; says in a few words of ours what is wrong."""


class Failed(Exception):
    """A request that brought no ranks."""

    def __init__(self, reason: str, *, again: bool, retry_after_s: float | None = None) -> None:
        super().__init__(reason)
        self.again = again  #: whether it may go better in a moment
        self.retry_after_s = retry_after_s


class Entry(msgspec.Struct, frozen=True):
    """What is said of one domain, as far as it matters."""

    status_code: int
    domain: str
    page_rank_decimal: float | str | None = None  #: "" for a domain that is not known


class Answer(msgspec.Struct, frozen=True):
    status_code: int
    response: list[Entry]


def priorities(body: bytes, asked: Collection[str]) -> dict[str, int]:
    """The priorities of those that were asked for and that it speaks of. Raises `Rubbish`."""
    try:
        answer = _decoder.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Rubbish("its answer is not in the form of Open PageRank") from error
    if answer.status_code != FOUND:
        raise Rubbish(f"it answers with status_code {answer.status_code}")
    wanted = set(asked)
    return {entry.domain: _priority(entry) for entry in answer.response if entry.domain in wanted}


def _priority(entry: Entry) -> int:
    """10 is 0, 0 is 100; a domain that is not known there is worth nothing."""
    decimal = entry.page_rank_decimal
    if entry.status_code == NOT_FOUND or decimal in (None, ""):
        return PRIORITY_MAX
    if entry.status_code != FOUND or not isinstance(decimal, float | int) or not 0 <= decimal <= DECIMAL_MAX:
        raise Rubbish("it gives a rank that is no number from 0 to 10")
    return round(PRIORITY_MAX - PRIORITY_MAX / DECIMAL_MAX * decimal)


_decoder: Final = msgspec.json.Decoder(Answer)
