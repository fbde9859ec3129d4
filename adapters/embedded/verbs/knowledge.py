"""What all roles share besides URLs: robots.txt of origins, ranks of domains, named leases, and notes for who watches."""

from collections.abc import Mapping, Sequence

from adapters.embedded.verbs.desk import Desk
from gossamer.records import Robots


def robots(desk: Desk, origin: str) -> Robots | None:
    row = desk.sql.execute("SELECT text, verdict FROM robots WHERE origin = ? AND until > ?", (origin, desk.now)).fetchone()
    return None if row is None else Robots(*row)


def know_robots(desk: Desk, origin: str, known: Robots, for_s: float) -> None:
    values = (origin, known.text, known.verdict, desk.now + for_s)
    desk.sql.execute("INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?)", values)


def known_ranks(desk: Desk, domains: Sequence[str]) -> dict[str, int]:
    _ = desk.crawl  # there must be one
    found = (
        desk.sql.execute("SELECT domain, priority FROM rank WHERE domain = ? AND until > ?", (each, desk.now)).fetchone()
        for each in domains
    )
    return dict(row for row in found if row is not None)


def know_ranks(desk: Desk, ranks: Mapping[str, int], for_s: float) -> None:
    _ = desk.crawl
    rows = [(domain, priority, desk.now + for_s) for domain, priority in ranks.items()]
    desk.sql.executemany("INSERT OR REPLACE INTO rank VALUES (?, ?, ?)", rows)


def lease(desk: Desk, name: str, holder: str, for_s: float) -> bool:
    taken = desk.sql.execute(
        "INSERT INTO lease VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE SET holder = ?2, until = ?3 "
        "WHERE holder = ?2 OR until <= ?4 RETURNING name",
        (name, holder, desk.now + for_s, desk.now),
    ).fetchone()
    return taken is not None


def note(desk: Desk, name: str, text: str) -> None:
    _ = desk.crawl  # there must be one
    desk.sql.execute("INSERT OR REPLACE INTO note VALUES (?, ?)", (name, text))


def notes(desk: Desk) -> dict[str, str]:
    _ = desk.crawl
    return dict(desk.sql.execute("SELECT name, text FROM note"))
