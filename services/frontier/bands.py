"""Bands: priorities 0 (best) … 100 (worst) cut into queues of equal width, the best first."""

from collections.abc import Mapping, Sequence

import msgspec

from gossamer.crash import step
from gossamer.messages import Ranked, Url, encode, in_hints
from gossamer.ports.broker import Broker, band_queue

PRIORITY_MAX = 100


class BandTable(msgspec.Struct, frozen=True):
    """Which priorities go to which queue. It is data: the router reads it, `status` shows it."""

    bands: int

    def band(self, priority: int) -> int:
        assert 0 <= priority <= PRIORITY_MAX
        return min(priority * self.bands // PRIORITY_MAX, self.bands - 1)

    def ranges(self) -> list[tuple[int, int]]:
        """The first and last priority of each band, in order."""
        of = [self.band(priority) for priority in range(PRIORITY_MAX + 1)]
        return [(of.index(band), PRIORITY_MAX - of[::-1].index(band)) for band in range(self.bands) if band in of]

    def queues(self) -> list[str]:
        return [band_queue(band) for band in range(self.bands)]


@step("frontier.band")
async def publish(broker: Broker, table: BandTable, ranked: Sequence[tuple[Url, int]]) -> list[tuple[Url, int]]:
    """Hints at each URL in the band of its priority; returns those that a full band refused."""
    refused: list[tuple[Url, int]] = []
    for band, urls in _by_band(table, ranked).items():
        hints = list(in_hints(urls))
        taken = await broker.publish(band_queue(band), [encode(Ranked(each)) for each in hints])
        refused += [pair for each in hints[taken:] for pair in each]
    return refused


def _by_band(table: BandTable, ranked: Sequence[tuple[Url, int]]) -> Mapping[int, list[tuple[Url, int]]]:
    by_band: dict[int, list[tuple[Url, int]]] = {}
    for url, priority in ranked:
        by_band.setdefault(table.band(priority), []).append((url, priority))
    return by_band
