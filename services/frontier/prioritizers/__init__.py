"""Ways to rank a URL. A prioritizer gives a priority from 0 (best) to 100 (worst) to each of a batch; it is chosen by name."""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from gossamer.errors import SettingsError
from gossamer.messages import Url
from services.frontier.prioritizers.breadth import breadth
from services.frontier.prioritizers.constant import constant

#: A priority for each, in order.
Prioritizer = Callable[[Sequence[Url]], list[int]]

PRIORITIZERS: Final[Mapping[str, Prioritizer]] = {"breadth": breadth, "constant": constant}


def prioritizer(name: str) -> Prioritizer:
    """Raises `SettingsError` with the right ones."""
    if name not in PRIORITIZERS:
        raise SettingsError(f"--prioritizer {name!r}: there are {', '.join(sorted(PRIORITIZERS))}")
    return PRIORITIZERS[name]
