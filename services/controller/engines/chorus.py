"""The chorus: what several roles say at once is told once.

A server that is full troubles all of them, and each says so in its log. Told is what the first one says when it begins, and what
the last one says when it is over.
"""

from typing import Final

from gossamer.pauses import read_pause

#: Of the broker: an event, what it is about, and whether that begins or ends there.
_BROKER: Final = {
    "broker.away": ("away", True),
    "broker.back": ("away", False),
    "broker.blocked": ("blocked", True),
    "broker.unblocked": ("blocked", False),
}
_FENCED: Final = "worker.fenced"


class Chorus:
    """Of the roles of one run."""

    def __init__(self) -> None:
        self._troubled: dict[str, set[str]] = {}  # the roles, by what troubles them

    def is_news(self, role: str, text: str) -> bool:
        """Whether this line of a role's log is to be told."""
        if text.startswith(_FENCED):
            self.has_died(role)  # it has given up what it waited for, without a word, and begins anew
        if (read := _read(text)) is None:
            return True
        trouble, begins = read
        others = self._troubled.setdefault(trouble, set())
        others.discard(role)
        is_news = not others
        if begins:
            others.add(role)
        return is_news

    def has_died(self, role: str) -> None:
        """What troubled it troubles its next life anew."""
        for roles in self._troubled.values():
            roles.discard(role)


def _read(text: str) -> tuple[str, bool] | None:
    """What a line is about, and whether it begins or ends there; None if it stands for itself."""
    event, _, fields = text.partition(" ")
    if event in _BROKER:
        about, begins = _BROKER[event]
        return f"{about} {fields.partition(' ')[0]}", begins  # the server; the rest may differ
    return read_pause(text)
