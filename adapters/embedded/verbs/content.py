"""The content index: is a page that says this stored already?

Looking up and entering are one step, so of two workers with the same page one is told *fresh*. An entry counts as a twin only
once its page is stored: until then it may yet fail, and its like waits.
"""

from collections.abc import Sequence
from typing import Final

from adapters.embedded.verbs.desk import Desk, UrlRow
from gossamer.answers import Dropped, Fresh, Judgement, Twin, Wait, Why
from gossamer.ids import UrlId
from gossamer.records import Content, Seat
from gossamer.states import State

#: Compared with: those that share the most bands, the newest of them first. A page of one template with many others shares a band
#: or two with each, and nearly all with its twin.
CANDIDATES: Final = 16
ASK_AGAIN_S: Final = 0.1
VALUE_BYTES: Final = 4

_OWN = "SELECT exact FROM content WHERE n = ?"
_CANDIDATE = "SELECT c.exact, c.signature, u.id, u.state FROM content c JOIN url u USING (n) WHERE c.n = ?"

#: The band that is the whole page: in front of its key, where others have their number; and how much of the hash is enough.
_WHOLE: Final = b"\xff"
KEY_BYTES: Final = 8

_FRESH: Final = Fresh()
_WAIT: Final = Wait(ASK_AGAIN_S, Why.TWIN)


def judge(desk: Desk, seat: Seat, contents: Sequence[Content]) -> list[Judgement]:
    desk.seated(seat)
    return [_judge(desk, seat, content) for content in contents]


def withdraw(desk: Desk, url: UrlRow) -> None:
    """Takes back the entry of a page that is not stored."""
    row = desk.sql.execute("DELETE FROM content WHERE n = ? RETURNING place, bands", (url.n,)).fetchone()
    if row is not None:
        desk.bands.withdraw(url.n, *row)


def _judge(desk: Desk, seat: Seat, content: Content) -> Judgement:
    url = desk.url(content.id)
    if url is None or url.state is not State.FETCHING or url.worker != seat.worker:
        return Dropped.CLOSED
    own = desk.sql.execute(_OWN, (url.n,)).fetchone()
    if own is not None:
        if own[0] == content.exact:
            return _FRESH
        withdraw(desk, url)  # it was judged before, with another content
    whole = _WHOLE + content.exact[:KEY_BYTES]
    if (like := _like(desk, whole, content)) is not None:
        return like
    values = (url.n, content.exact, content.signature, desk.bands.enter(url.n, (whole, *content.bands)))
    desk.sql.execute("INSERT INTO content (n, exact, signature, bands) VALUES (?, ?, ?, ?)", values)
    return _FRESH


def _like(desk: Desk, whole: bytes, content: Content) -> Twin | Wait | None:
    """The stored page that says the same, or else the most similar one; *wait* if only pages that are being fetched are like it.

    A stored twin beats *wait*.
    """
    threshold = desk.crawl.rules.similarity
    candidates = desk.bands.sharing((whole,), CANDIDATES)
    if threshold is not None and content.bands:
        candidates += desk.bands.sharing(content.bands, CANDIDATES)
    best: tuple[float, UrlId] | None = None
    waits = False
    for n in candidates:
        exact, signature, id, state = desk.sql.execute(_CANDIDATE, (n,)).fetchone()
        if exact == content.exact:
            similarity = 1.0
        elif threshold is None or (similarity := agreement(content.signature, signature)) < threshold:
            continue
        if desk.state_of(id, state) is not State.CLOSED:
            waits = True
        elif best is None or similarity > best[0]:
            best = similarity, id
    if best is not None:
        return Twin(best[1], best[0])
    return _WAIT if waits else None


def agreement(one: bytes, other: bytes) -> float:
    """The share of places at which two signatures have the same value: an estimate of how alike the pages are."""
    if len(one) != len(other) or not one:
        return 0.0
    ours, theirs = memoryview(one).cast("I"), memoryview(other).cast("I")
    return sum(map(int.__eq__, ours, theirs)) * VALUE_BYTES / len(one)
