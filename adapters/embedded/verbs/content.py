"""The content index: is a page that says this stored already?

Looking up and entering are one step, so of two workers with the same page one is told *fresh*. An entry counts as a twin only
once its page is stored: until then it may yet fail, and its like waits.
"""

from collections.abc import Sequence
from typing import Final

import msgspec

from adapters.embedded.verbs.desk import Desk, UrlRow
from gossamer.answers import Dropped, Fresh, Judgement, Twin, Wait, Why
from gossamer.ids import UrlId
from gossamer.records import Content, Seat
from gossamer.states import State

#: Looked at in each band, the newest first: a band that a whole site shares must not cost a walk over the site.
CANDIDATES: Final = 8
ASK_AGAIN_S: Final = 0.1
VALUE_BYTES: Final = 4

_EXACT = "SELECT c.n, u.id, u.state FROM content c JOIN url u USING (n) WHERE c.exact = ?"
_IN_BAND = f"SELECT n FROM band WHERE key = ? ORDER BY n DESC LIMIT {CANDIDATES}"
_CANDIDATE = "SELECT c.signature, u.id, u.state FROM content c JOIN url u USING (n) WHERE c.n = ?"

_encode = msgspec.json.Encoder().encode
_decode_bands = msgspec.json.Decoder(list[bytes]).decode
_FRESH: Final = Fresh()
_WAIT: Final = Wait(ASK_AGAIN_S, Why.TWIN)


def judge(desk: Desk, seat: Seat, contents: Sequence[Content]) -> list[Judgement]:
    desk.seated(seat)
    return [_judge(desk, seat, content) for content in contents]


def withdraw(desk: Desk, url: UrlRow) -> None:
    """Takes back the entry of a page that is not stored."""
    row = desk.sql.execute("DELETE FROM content WHERE n = ? RETURNING bands", (url.n,)).fetchone()
    if row is not None:
        desk.sql.executemany("DELETE FROM band WHERE key = ? AND n = ?", [(key, url.n) for key in _decode_bands(row[0])])


def _judge(desk: Desk, seat: Seat, content: Content) -> Judgement:
    url = desk.url(content.id)
    if url is None or url.state is not State.FETCHING or url.worker != seat.worker:
        return Dropped.CLOSED
    found = desk.sql.execute(_EXACT, (content.exact,)).fetchone()
    if found is not None and found[0] == url.n:
        return _FRESH
    withdraw(desk, url)  # it was judged before, with another content
    near = _nearest(desk, content)
    if found is not None and desk.state_of(found[1], found[2]) is State.CLOSED:
        return Twin(found[1], 1.0)
    if isinstance(near, Twin):
        return near
    if found is not None or near is not None:
        return _WAIT
    desk.sql.execute("INSERT INTO content VALUES (?, ?, ?, ?)", (url.n, content.exact, content.signature, _encode(content.bands)))
    desk.sql.executemany("INSERT INTO band VALUES (?, ?)", [(key, url.n) for key in set(content.bands)])
    return _FRESH


def _nearest(desk: Desk, content: Content) -> Twin | Wait | None:
    """The most similar stored page, or *wait* if only pages that are being fetched are alike. A stored twin beats *wait*."""
    threshold = desk.crawl.rules.similarity
    if threshold is None or not content.bands:
        return None
    candidates = {n: None for key in content.bands for (n,) in desk.sql.execute(_IN_BAND, (key,))}
    best: tuple[float, UrlId] | None = None
    waits = False
    for n in candidates:
        signature, id, state = desk.sql.execute(_CANDIDATE, (n,)).fetchone()
        similarity = agreement(content.signature, signature)
        if similarity < threshold:
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
