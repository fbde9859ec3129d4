"""The asking: whoever is idle while the ledger has work for it finds that work here. And the ranks that order it."""

from collections.abc import Sequence

from adapters.embedded.verbs.desk import Desk
from gossamer.ids import UrlId
from gossamer.messages import Url
from gossamer.records import Seat
from gossamer.states import State

_URL = "SELECT u.id, u.url, d.name, u.depth, u.hop, u.parent{more} FROM url u JOIN domain d ON d.n = u.domain WHERE {where}"
_HELD = _URL.format(more="", where="u.state IN (2, 3) AND u.worker = ? ORDER BY u.priority, u.n")
_WAITING = _URL.format(more=", u.priority, u.n", where="u.state = 0 AND u.offered_at <= ? ORDER BY {order} LIMIT ?")
_BEST, _OLDEST = _WAITING.format(order="u.priority, u.n"), _WAITING.format(order="u.n")


def held(desk: Desk, seat: Seat) -> list[Url]:
    desk.seated(seat)
    return [Url(*row) for row in desk.written().execute(_HELD, (seat.worker,))]


def waiting(desk: Desk, most: int, idle: bool) -> list[tuple[Url, int]]:
    """Three quarters by priority; the last quarter by age, so that the worst are met as well."""
    offered_before = float("inf") if idle else desk.now - desk.crawl.rules.lease_s
    sql = desk.written()
    found = {row[7]: row for row in sql.execute(_BEST, (offered_before, most - most // 4))}
    for row in sql.execute(_OLDEST, (offered_before, most)):
        if len(found) >= most:
            break
        found.setdefault(row[7], row)
    sql.executemany("UPDATE url SET offered_at = ? WHERE n = ?", [(desk.now, n) for n in found])
    return [(Url(*row[:6]), row[6]) for row in found.values()]


def rank(desk: Desk, urls: Sequence[tuple[UrlId, int]]) -> None:
    for id, priority in urls:
        url = desk.url(id)
        if url is not None and url.state in (State.WAITING, State.PARKED) and url.priority != priority:
            url.priority = priority
            desk.save(url)


def outlinks(desk: Desk, after: int, most: int) -> list[tuple[int, UrlId, bytes]]:
    select = "SELECT o.place, u.id, o.links FROM outlinks o JOIN url u USING (n) WHERE o.place > ? ORDER BY o.place LIMIT ?"
    return desk.written().execute(select, (after, most)).fetchall()
