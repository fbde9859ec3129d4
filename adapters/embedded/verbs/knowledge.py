"""What all workers share besides URLs: robots.txt of origins, and named leases."""

from adapters.embedded.verbs.desk import Desk
from gossamer.records import Robots


def robots(desk: Desk, origin: str) -> Robots | None:
    row = desk.sql.execute("SELECT text, verdict FROM robots WHERE origin = ? AND until > ?", (origin, desk.now)).fetchone()
    return None if row is None else Robots(*row)


def know_robots(desk: Desk, origin: str, known: Robots, for_s: float) -> None:
    values = (origin, known.text, known.verdict, desk.now + for_s)
    desk.sql.execute("INSERT OR REPLACE INTO robots VALUES (?, ?, ?, ?)", values)


def lease(desk: Desk, name: str, holder: str, for_s: float) -> bool:
    taken = desk.sql.execute(
        "INSERT INTO lease VALUES (?1, ?2, ?3) ON CONFLICT (name) DO UPDATE SET holder = ?2, until = ?3 "
        "WHERE holder = ?2 OR until <= ?4 RETURNING name",
        (name, holder, desk.now + for_s, desk.now),
    ).fetchone()
    return taken is not None
