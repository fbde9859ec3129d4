"""Ports that nobody listens on: for servers that must be told theirs.

They lie below the range from which systems give out ports by themselves (32768 and up), so neither another test's listener
nor a connection on its way out takes one while a server is down for a moment. Two processes may still draw the same one; so
whoever starts a server tries again with others.
"""

import random
import socket
from typing import Final

_FIRST: Final = 10_000
_LAST: Final = 21_999

#: SeaweedFS listens on each of its ports plus this one as well.
GRPC_OFFSET: Final = 10_000


def free_ports(count: int) -> list[int]:
    """So many different ports of which each, and each plus `GRPC_OFFSET`, is free on the loopback address now."""
    # The system's own randomness: a test that seeds `random` must not make two processes draw the same ports.
    candidates = random.SystemRandom().sample(range(_FIRST, _LAST + 1), 50 * count)
    free = [port for port in candidates if _is_free(port) and _is_free(port + GRPC_OFFSET)][:count]
    assert len(free) == count
    return free


def _is_free(port: int) -> bool:
    with socket.socket() as probe:
        # Servers set this too: connections of an earlier one that linger in TIME_WAIT are no obstacle.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True
