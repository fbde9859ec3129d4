"""What somebody outside says of a host: the operator's file, or else the API. Quick: it is asked for every URL."""

from collections.abc import Mapping
from typing import Final

from services.frontier.outside.known import Known
from services.role.registrable import registrable

#: Hosts whose registered domain is at hand: looking it up takes ten times as long as all the rest. Past it, all are forgotten.
NAMES_MAX: Final = 200_000


class Sources:
    def __init__(self, file: Mapping[str, int], known: Known | None) -> None:
        """`known`: what the API said; None: no API is asked."""
        self._file, self._known = file, known
        self._names: dict[str, str] = {}

    def __call__(self, host: str) -> int | None:
        """The priority of the host in the file, or else of its registered domain there, or else of that by the API.

        Others rank registered domains; and a site with a thousand hosts is asked for once.
        """
        name = self._name(host)
        if self._file:
            found = self._file.get(host.removeprefix("www."), self._file.get(name))
            if found is not None:
                return found
        return None if self._known is None else self._known.priority(name)

    def _name(self, host: str) -> str:
        name = self._names.get(host)
        if name is None:
            if len(self._names) >= NAMES_MAX:
                self._names.clear()
            name = self._names[host] = registrable(host)
        return name
