"""Names: looked up once, judged every one, remembered within bounds."""

import asyncio
from collections.abc import Sequence
from ipaddress import ip_network

import pytest

from gossamer.clock import ManualClock
from gossamer.outcomes import Outcome
from services.worker.resolve import (
    ADDRESSES_MAX,
    TTL_MAX_S,
    TTL_MIN_S,
    Dns,
    LookupFailed,
    Record,
    Resolved,
    Resolver,
    Unresolved,
)

PUBLIC = "93.184.216.34"


class Names:
    """Name servers that say what they are told to, and count."""

    def __init__(self, *answers: Sequence[Record] | LookupFailed) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []
        self.gate: asyncio.Event | None = None

    async def __call__(self, name: str) -> Sequence[Record]:
        self.asked.append(name)
        if self.gate is not None:
            await self.gate.wait()
        answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
        if isinstance(answer, LookupFailed):
            raise answer
        return answer


def records(*addresses: str, ttl_s: float = 300.0) -> list[Record]:
    return [Record(address, ttl_s) for address in addresses]


async def test_a_public_name_has_its_addresses_in_their_order() -> None:
    resolver = Resolver(Names(records(PUBLIC, "2606:4700::1111", PUBLIC)), ManualClock())

    assert await resolver.resolve("a.example.com", 80) == Resolved((PUBLIC, "2606:4700::1111"))


async def test_an_address_is_never_looked_up() -> None:
    names = Names(records("10.0.0.1"))
    resolver = Resolver(names, ManualClock())

    assert await resolver.resolve(PUBLIC, 80) == Resolved((PUBLIC,))
    assert await resolver.resolve("[2606:4700::1111]", 443) == Resolved(("2606:4700::1111",))
    refused = await resolver.resolve("127.0.0.1", 80)
    assert isinstance(refused, Unresolved)
    assert refused.outcome is Outcome.ADDRESS_REFUSED
    assert not names.asked


@pytest.mark.parametrize(
    "addresses",
    [
        pytest.param(["10.0.0.1"], id="a private one"),
        pytest.param([PUBLIC, "127.0.0.1"], id="a public and a private one"),
        pytest.param([PUBLIC, "::1"], id="public in IPv4, loopback in IPv6"),
        pytest.param([PUBLIC] * 20 + ["192.168.0.1"], id="a private one behind twenty public ones"),
    ],
)
async def test_one_refused_address_refuses_the_name(addresses: list[str]) -> None:
    resolution = await Resolver(Names(records(*addresses)), ManualClock()).resolve("a.example.com", 80)

    assert isinstance(resolution, Unresolved)
    assert (resolution.outcome, resolution.again) == (Outcome.ADDRESS_REFUSED, False)
    assert addresses[-1] in resolution.reason


async def test_of_a_thousand_addresses_the_first_few_are_used() -> None:
    thousand = [f"93.184.{n // 256}.{n % 256}" for n in range(1000)]
    resolution = await Resolver(Names(records(*thousand)), ManualClock()).resolve("a.example.com", 80)

    assert resolution == Resolved(tuple(thousand[:ADDRESSES_MAX]))


async def test_what_is_allowed_may_be_resolved() -> None:
    resolver = Resolver(Names(records("10.0.0.1")), ManualClock(), [ip_network("10.0.0.0/8")])

    assert await resolver.resolve("intranet", 80) == Resolved(("10.0.0.1",))


async def test_the_crawls_own_servers_are_refused_in_networks_that_are_allowed() -> None:
    names = Names(records("10.0.0.1"))
    resolver = Resolver(names, ManualClock(), [ip_network("10.0.0.0/8")], {("10.0.0.1", 40001)})

    for host in ("10.0.0.1", "intranet", "intranet"):  # by its address, by a name, by a name that is remembered
        refused = await resolver.resolve(host, 40001)
        assert isinstance(refused, Unresolved)
        assert (refused.outcome, refused.again) == (Outcome.URL_REFUSED, False)
        assert await resolver.resolve(host, 8080) == Resolved(("10.0.0.1",))


@pytest.mark.parametrize(
    ("host", "port"),
    [("localhost", 80), ("printer.local", 80), ("redis", 80), ("a.example.com", 6379), ("a.example.com", 22)],
)
async def test_names_for_inside_and_ports_of_other_services_are_not_looked_up(host: str, port: int) -> None:
    names = Names(records(PUBLIC))
    resolution = await Resolver(names, ManualClock()).resolve(host, port)

    assert isinstance(resolution, Unresolved)
    assert (resolution.outcome, resolution.again) == (Outcome.URL_REFUSED, False)
    assert not names.asked


@pytest.mark.parametrize(
    ("answer", "again"),
    [
        pytest.param(LookupFailed("NXDOMAIN", again=False), False, id="no such name"),
        pytest.param(LookupFailed("SERVFAIL", again=True), True, id="a server that fails"),
        pytest.param([], False, id="an empty answer"),
    ],
)
async def test_a_name_without_address_failed_and_says_whether_to_try_again(
    answer: Sequence[Record] | LookupFailed, again: bool
) -> None:
    names = Names(answer)
    resolver = Resolver(names, ManualClock())
    resolution = await resolver.resolve("a.example.com", 80)

    assert isinstance(resolution, Unresolved)
    assert (resolution.outcome, resolution.again) == (Outcome.DNS_FAILED, again)
    assert "a.example.com" in resolution.reason
    # What may be otherwise in a moment is asked again, what may not is remembered.
    await resolver.resolve("a.example.com", 80)
    assert len(names.asked) == (2 if again else 1)


async def test_a_look_up_has_a_deadline() -> None:
    names = Names(records(PUBLIC))
    names.gate = asyncio.Event()
    resolution = await Resolver(names, ManualClock(), deadline_s=0.05).resolve("a.example.com", 80)

    assert isinstance(resolution, Unresolved)
    assert (resolution.outcome, resolution.again) == (Outcome.DNS_FAILED, True)


async def test_many_who_ask_for_a_name_share_one_query() -> None:
    names = Names(records(PUBLIC))
    names.gate = asyncio.Event()
    resolver = Resolver(names, ManualClock())
    asking = [asyncio.create_task(resolver.resolve(host, 80)) for host in ["a.example.com", "a.example.com."] * 10]
    await asyncio.sleep(0)

    names.gate.set()

    assert set(await asyncio.gather(*asking)) == {Resolved((PUBLIC,))}
    assert names.asked == ["a.example.com"]


async def test_one_who_gives_up_leaves_the_others_their_query() -> None:
    names = Names(records(PUBLIC))
    names.gate = asyncio.Event()
    resolver = Resolver(names, ManualClock())
    first, second = (asyncio.create_task(resolver.resolve("a.example.com", 80)) for _ in range(2))
    await asyncio.sleep(0)

    first.cancel()
    await asyncio.sleep(0)
    names.gate.set()

    assert await second == Resolved((PUBLIC,))
    assert first.cancelled()


async def test_closing_drops_the_queries_under_way() -> None:
    names = Names(records(PUBLIC))
    names.gate = asyncio.Event()
    resolver = Resolver(names, ManualClock())
    asking = asyncio.create_task(resolver.resolve("a.example.com", 80))
    await asyncio.sleep(0)

    await resolver.close()

    with pytest.raises(asyncio.CancelledError):
        await asking


@pytest.mark.parametrize(
    ("ttl_s", "kept_s"),
    [
        pytest.param(0, TTL_MIN_S, id="none"),
        pytest.param(90, 90, id="its own"),
        pytest.param(86_400, TTL_MAX_S, id="a day"),
    ],
)
async def test_a_name_is_remembered_as_long_as_its_servers_say_within_bounds(ttl_s: float, kept_s: float) -> None:
    clock = ManualClock()
    names = Names(records(PUBLIC, ttl_s=ttl_s), records("10.0.0.1"))
    resolver = Resolver(names, clock)
    first = await resolver.resolve("a.example.com", 80)

    clock.advance(kept_s - 1)
    assert await resolver.resolve("a.example.com", 80) == first
    clock.advance(1)
    changed = await resolver.resolve("a.example.com", 80)

    # A name that moves inside after it was judged is judged again, and refused.
    assert isinstance(changed, Unresolved)
    assert changed.outcome is Outcome.ADDRESS_REFUSED
    assert len(names.asked) == 2


async def test_no_more_names_are_remembered_than_may_be() -> None:
    names = Names(records(PUBLIC))
    resolver = Resolver(names, ManualClock(), names_max=3)
    for host in ("a.example.com", "b.example.com", "c.example.com", "d.example.com"):
        await resolver.resolve(host, 80)

    assert resolver.known("a.example.com", 80) is None
    assert resolver.known("d.example.com", 80) == Resolved((PUBLIC,))


async def test_what_is_known_is_told_without_waiting() -> None:
    resolver = Resolver(Names(records(PUBLIC)), ManualClock())

    assert resolver.known("a.example.com", 80) is None
    resolution = await resolver.resolve("a.example.com", 80)
    assert resolver.known("a.example.com", 443) == resolution


async def test_the_machines_own_hosts_file_is_read() -> None:
    """By RFC 6761 no server is asked for localhost, so this needs no network."""
    dns = Dns()
    found = await dns("localhost")
    await dns.close()

    assert {record.address for record in found} <= {"127.0.0.1", "::1"}
    assert found


async def test_a_name_that_no_server_could_be_asked_for_does_not_exist() -> None:
    dns = Dns()
    with pytest.raises(LookupFailed) as failed:
        await dns("a..b")
    await dns.close()

    assert failed.value.again is False
