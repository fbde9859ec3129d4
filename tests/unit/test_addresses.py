"""Addresses, names and ports: what is refused, at the edges of each block and in every disguise."""

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gossamer.urls import requested
from services.worker.addresses import (
    BAD_PORTS,
    IPV4_REFUSED,
    IPV6_GLOBAL,
    IPV6_REFUSED,
    SERVICE_PORTS,
    Address,
    Network,
    carried,
    endpoint,
    own_refusal,
    own_servers,
    refusal,
    url_refusal,
)

BLOCKS = [*IPV4_REFUSED, *IPV6_REFUSED]


def refused_by_the_table(address: Address) -> bool:
    return any(address in block for block in BLOCKS) or (isinstance(address, IPv6Address) and address not in IPV6_GLOBAL)


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_is_refused_from_its_first_address_to_its_last(block: Network) -> None:
    assert refusal(block[0], ()) is not None
    assert refusal(block[-1], ()) is not None


@pytest.mark.parametrize("block", BLOCKS, ids=str)
def test_a_block_ends_where_it_ends(block: Network) -> None:
    first, last = int(block[0]), int(block[-1])
    kind = type(block[0])
    for neighbour in (first - 1, last + 1):
        if 0 <= neighbour < 2**block.max_prefixlen:
            assert (refusal(kind(neighbour), ()) is not None) == refused_by_the_table(kind(neighbour))


PUBLIC = [
    "1.1.1.1",
    "8.8.8.8",
    "9.255.255.255",
    "100.63.255.255",
    "100.128.0.0",
    "172.15.0.1",
    "172.32.0.1",
    "192.0.1.0",
    "223.255.255.255",
    "2606:4700::1111",
    "2001:4860:4860::8888",
    "2a00::1",
    "2003::",
    "3ffd::1",
    "2001:200::1",
]


@pytest.mark.parametrize("address", PUBLIC)
def test_a_public_address_may_be_dialled(address: str) -> None:
    assert refusal(address, ()) is None


#: Those that `ipaddress.is_global` of Python 3.11 calls public, clouds' metadata, and what lies outside of 2000::/3.
LOOKS_PUBLIC = [
    "192.0.0.192",
    "192.88.99.1",
    "224.0.0.1",
    "64:ff9b::7f00:1",
    "2002:7f00:1::",
    "::7f00:1",
    "::ffff:0:7f00:1",
    "100:0:0:1::1",
    "5f00::1",
    "3fff::1",
    "fec0::1",
    "ff0e::1",
    "100.64.0.1",
    "100.100.100.200",
    "169.254.169.254",
    "168.63.129.16",
    "fd00:ec2::254",
    "fe80::1%eth0",
    "4000::1",
    "::",
]


@pytest.mark.parametrize("address", LOOKS_PUBLIC)
def test_what_only_looks_public_is_refused(address: str) -> None:
    assert refusal(address, ()) is not None


INSIDE = ["127.0.0.1", "10.0.0.1", "169.254.169.254"]
DISGUISES = {
    "mapped": "::ffff:{}",
    "compatible": "::{}",
    "translated": "::ffff:0:{}",
    "NAT64": "64:ff9b::{}",
    "local NAT64": "64:ff9b:1::{}",
    "ISATAP": "2a00::5efe:{}",
    "ISATAP, global": "2a00::200:5efe:{}",
}


@pytest.mark.parametrize("inner", INSIDE)
@pytest.mark.parametrize("disguise", DISGUISES.values(), ids=DISGUISES)
def test_an_address_inside_another_is_refused_and_found(disguise: str, inner: str) -> None:
    address = IPv6Address(disguise.format(inner))

    assert carried(address) == (IPv4Address(inner),)
    assert refusal(address, ()) is not None


@pytest.mark.parametrize("inner", INSIDE)
def test_6to4_and_teredo_hide_it_in_the_middle_or_inverted(inner: str) -> None:
    bits = int(IPv4Address(inner))
    six_to_four = IPv6Address(0x2002 << 112 | bits << 80)
    teredo = IPv6Address(0x20010000 << 96 | int(IPv4Address("8.8.8.8")) << 64 | ~bits & 0xFFFF_FFFF)

    assert carried(six_to_four) == (IPv4Address(inner),)
    assert carried(teredo) == (IPv4Address("8.8.8.8"), IPv4Address(inner))
    assert refusal(six_to_four, ()) is not None
    assert refusal(teredo, ()) is not None


@pytest.mark.parametrize(
    ("address", "allowed", "may"),
    [
        pytest.param("10.1.2.3", ["10.0.0.0/8"], True, id="the network covers it"),
        pytest.param("10.1.2.3", ["10.1.2.3/32"], True, id="it alone is allowed"),
        pytest.param("11.0.0.1", ["127.0.0.0/8"], True, id="a public one needs no leave"),
        pytest.param("10.1.2.3", ["127.0.0.0/8", "::1/128"], False, id="others are covered"),
        pytest.param("::1", ["::1/128"], True, id="loopback in IPv6"),
        pytest.param("::1", ["127.0.0.0/8"], False, id="IPv4's loopback is not IPv6's"),
        pytest.param("::ffff:127.0.0.1", ["127.0.0.0/8"], False, id="a disguise is not what was allowed"),
        pytest.param("64:ff9b::8.8.8.8", ["64:ff9b::/96"], True, id="NAT64 to a public address"),
        pytest.param("64:ff9b::10.0.0.1", ["64:ff9b::/96"], False, id="NAT64 to a private address"),
        pytest.param("64:ff9b::10.0.0.1", ["64:ff9b::/96", "10.0.0.0/8"], True, id="NAT64 to an allowed address"),
    ],
)
def test_what_is_allowed_is_what_the_networks_cover(address: str, allowed: list[str], may: bool) -> None:
    assert (refusal(address, [ip_network(each) for each in allowed]) is None) is may


@given(st.ip_addresses())
def test_every_address_gets_an_answer_and_the_answer_names_it(address: IPv4Address | IPv6Address) -> None:
    reason = refusal(address, ())

    assert reason == refusal(str(address), ())
    assert reason is None or str(address) in reason
    if refused_by_the_table(address):
        assert reason is not None


@given(st.ip_addresses())
def test_an_address_that_is_allowed_may_be_dialled_unless_it_carries_another(address: IPv4Address | IPv6Address) -> None:
    if not carried(address):
        assert refusal(address, [ip_network(address)]) is None


SPELLINGS = [
    "http://0177.0.0.1/",
    "http://0x7f.1/",
    "http://0x7f000001/",
    "http://2130706433/",
    "http://017700000001/",
    "http://127.1/",
    "http://127.0.1/",
    "http://127.0.0.1./",
    "http://①②⑦.0.0.1/",
    "http://%31%32%37.0.0.1/",
    "http://[::1]/",
    "http://[::]/",
    "http://[::ffff:7f00:1]:8080/",
    "https://10.0.0.1:8443/x",
]


@pytest.mark.parametrize("url", SPELLINGS)
def test_an_address_is_refused_however_it_is_spelled(url: str) -> None:
    assert url_refusal(requested(url), ()) is not None


INSIDE_NAMES = [
    "localhost",
    "localhost.",
    "a.localhost",
    "printer.local",
    "metadata.google.internal",
    "host.docker.internal",
    "x.home.arpa",
    "abc.onion",
    "kubernetes.default.svc",
    "redis",
    "a.test",
    "router.lan",
    "LOCALHOST",
    "ⓛocalhost",
]


@pytest.mark.parametrize("host", INSIDE_NAMES)
def test_a_name_for_inside_is_refused_unless_a_network_inside_is_allowed(host: str) -> None:
    url = requested(f"http://{host}/")

    assert url_refusal(url, ()) is not None
    assert url_refusal(url, [ip_network("10.0.0.0/8")]) is None


PUBLIC_URLS = [
    "http://example.com/",
    "https://example.com:8443/",
    "http://127.0.0.1.nip.io/",
    "http://local.example.com/",
    "http://a_b.example.com/",
    "http://1.1.1.1:8080/",
    "http://[2606:4700::1111]/",
    "http://example.com:080/",
    "http://example.com:/",
    "http://a.b1/",
]


@pytest.mark.parametrize("url", PUBLIC_URLS)
def test_a_public_name_or_address_is_not_refused(url: str) -> None:
    assert url_refusal(requested(url), ()) is None


@pytest.mark.parametrize("port", [0, 22, 25, 2375, 5672, 6379, 9200, 11211])
def test_a_port_of_something_else_is_refused_even_where_the_network_is_allowed(port: int) -> None:
    assert url_refusal(f"http://10.0.0.1:{port}/", [ip_network("10.0.0.0/8")]) is not None


OWN = frozenset({("rabbit.lan", 5672), ("10.0.0.5", 40001), ("s3.lan", 80)})


def test_the_crawls_own_servers_are_known_by_host_and_port() -> None:
    assert own_servers(["amqp://u:p@Rabbit.lan", None, "redis://:p@10.0.0.5:40001/0", "http://s3.lan/bucket"]) == OWN


@pytest.mark.parametrize(
    ("host", "port", "address", "refused"),
    [
        pytest.param("10.0.0.5", 40001, "10.0.0.5", True, id="the server itself"),
        pytest.param("other.lan", 40001, "10.0.0.5", True, id="by another name"),
        pytest.param("10.0.0.6", 40001, "10.0.0.6", True, id="by another address that may be its own too"),
        pytest.param("10.0.0.5", 8080, "10.0.0.5", False, id="another port of the machine"),
        pytest.param("s3.lan.", 80, "10.0.0.7", True, id="at the web's own port, by its name"),
        pytest.param("intranet.lan", 80, "10.0.0.8", False, id="another machine at the web's own port"),
        pytest.param("a.example.com", 40001, "93.184.216.34", False, id="a public one"),
    ],
)
def test_no_page_leads_to_the_crawls_own_servers(host: str, port: int, address: str, refused: bool) -> None:
    assert (own_refusal(host, port, [address], OWN) is not None) is refused


def test_no_port_is_listed_twice_and_none_that_tests_are_given() -> None:
    assert BAD_PORTS.keys().isdisjoint(SERVICE_PORTS)
    assert not any(32_768 <= port <= 60_999 for port in (*BAD_PORTS, *SERVICE_PORTS))
    assert {80, 443, 8000, 8080, 8443, 3000, 5000, 9000}.isdisjoint((*BAD_PORTS, *SERVICE_PORTS))


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://h.example/", ("h.example", 80)),
        ("https://h.example/a:b", ("h.example", 443)),
        ("http://h.example:8080/?x=:1", ("h.example", 8080)),
        ("https://[2a00::1]/", ("[2a00::1]", 443)),
        ("http://[2a00::1]:81/", ("[2a00::1]", 81)),
    ],
)
def test_host_and_port_of_a_url(url: str, expected: tuple[str, int]) -> None:
    assert endpoint(url) == expected


def test_the_tables_are_networks_of_their_own_family() -> None:
    assert all(isinstance(block, IPv4Network) for block in IPV4_REFUSED)
    assert all(isinstance(block, IPv6Network) for block in IPV6_REFUSED)
    assert ip_address("2000::") in IPV6_GLOBAL
