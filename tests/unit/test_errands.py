"""Errands: a URL that says by itself what it is for, which day's it is, and how far it is from where it began."""

from collections.abc import Sequence
from pathlib import Path

from adapters.embedded.ledger import SqliteLedger
from gossamer.clock import ManualClock
from gossamer.messages import Url
from gossamer.records import Rules
from gossamer.states import State
from services.worker.errands import Errands, errand, fresh_s, is_errand, target_of

TARGET = "http://www.example.com/common/robots.txt?x=1-2"
DAY_S = 24 * 3600.0


def test_it_is_told_from_every_url_that_is_asked_for() -> None:
    assert is_errand(errand(TARGET, 1, 0.0))
    assert not is_errand(TARGET)
    assert target_of(errand(TARGET, 3, 1e9)) == (TARGET, 3)


def test_each_day_and_each_hop_has_its_own() -> None:
    now = 20_000 * DAY_S

    assert errand(TARGET, 1, now) == errand(TARGET, 1, now + DAY_S - 1)
    assert len({errand(TARGET, 1, now), errand(TARGET, 2, now), errand(TARGET, 1, now + DAY_S)}) == 3


def test_what_it_brings_is_never_gone_by_for_more_than_a_day() -> None:
    now = 20_000 * DAY_S
    sent = errand(TARGET, 1, now + 100)

    assert fresh_s(sent, now) == DAY_S
    assert fresh_s(sent, now + DAY_S - 60) == 60
    assert fresh_s(sent, now + DAY_S + 60) == 0


async def test_however_many_send_for_it_it_is_added_and_hinted_at_once(tmp_path: Path) -> None:
    announced: list[Url] = []

    async def announce(new: Sequence[Url]) -> None:
        announced.extend(new)

    ledger = SqliteLedger(tmp_path / "ledger.sqlite", ManualClock())
    await ledger.create(Rules())
    errands = Errands(ledger, await ledger.register("a worker"), announce, lambda host: "example.com", by_domain=False)
    sent = errand(TARGET, 1, 0.0)

    records = [await errands.send(sent) for _ in range(3)]

    assert [each.state for each in records if each is not None] == [State.WAITING] * 3
    assert [(url.url, url.domain, url.depth) for url in announced] == [(sent, "www.example.com", 0)]
    assert (await ledger.counts()).open == 1
    await ledger.close()


async def test_whose_gate_it_has_to_pass_is_a_matter_of_politeness(tmp_path: Path) -> None:
    async def nobody(new: Sequence[Url]) -> None: ...

    ledger = SqliteLedger(tmp_path / "ledger.sqlite", ManualClock())
    await ledger.create(Rules())
    seat = await ledger.register("a worker")
    by_host, by_domain = (Errands(ledger, seat, nobody, lambda host: "example.com", by_domain=each) for each in (False, True))

    assert by_host.domain_of(TARGET) == "www.example.com"
    assert by_domain.domain_of(TARGET) == "example.com"
    await ledger.close()
