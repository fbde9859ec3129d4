"""Where a crawler may go: which addresses are dialled, and which names and ports are not even looked up.

Any page can hold a link to `http://169.254.169.254/`, and any name can be given the address of a machine inside. So an address
is dialled only if it is a public one by the registries below, or if the operator allowed its network (`--allow-net`). The tables
are written out: `ipaddress.is_global` calls 224.0.0.1, 64:ff9b::7f00:1 and a dozen others public, and differs between versions.

Knows: addresses, names and numbers, and the setting that admits more of them. Must not know: DNS, sockets, HTTP.
"""

from collections.abc import Iterable, Mapping, Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final
from urllib.parse import urlsplit

from gossamer.settings import Settings
from gossamer.urls import origin_of

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

#: When the tables were last compared with IANA's special-purpose registries and with the port list of the Fetch Standard.
TABLES_OF: Final = "2026-11-18"


def allowed_nets(settings: Settings) -> list[Network]:
    """What the operator opens besides, of private addresses."""
    return [ip_network(each) for each in settings.manners.allow_net]


def url_refusal(url: str, allowed: Sequence[Network]) -> str | None:
    """Why this requested URL is not asked for, as far as that can be told without a look-up; None if it may be."""
    host, port = endpoint(url)
    if (reason := port_refusal(port)) is not None:
        return reason
    literal = address_in(host)
    return name_refusal(host, allowed) if literal is None else refusal(literal, allowed)


def endpoint(url: str) -> tuple[str, int]:
    """Host (an IPv6 address in its brackets) and port of a requested URL."""
    origin = origin_of(url)
    scheme, _, site = origin.partition("://")
    host, colon, port = site.rpartition(":")
    if not colon or port.endswith("]"):
        return site, 443 if scheme == "https" else 80
    return host, int(port)


def address_in(host: str) -> Address | None:
    """The address that a host of a URL *is*, rather than one it may have. WHATWG has turned `0x7f.1` into `127.0.0.1` before."""
    if host[0] == "[":
        return IPv6Address(host[1:-1])
    if not host[-1].isdigit():
        return None
    try:
        return IPv4Address(host)
    except ValueError:
        return None


def port_refusal(port: int) -> str | None:
    """Why no request goes to this port, on any address. A request is text, and these would read it as commands."""
    service = BAD_PORTS.get(port) or SERVICE_PORTS.get(port)
    return None if service is None else f"port {port} is {service}"


def own_servers(urls: Iterable[str | None]) -> frozenset[tuple[str, int]]:
    """Host and port of the servers that a crawl itself stands on, by their URLs."""
    parts = [urlsplit(url) for url in urls if url is not None]
    return frozenset(((each.hostname or "").lower(), each.port or _SERVER_PORTS[each.scheme]) for each in parts)


def own_refusal(host: str, port: int, addresses: Iterable[str], own: Iterable[tuple[str, int]]) -> str | None:
    """Why a host with these addresses is not asked at this port: one of the crawl's own servers is there, or may well be.

    A machine has more names and addresses than its URL shows. So inside it is the port that counts, whatever the host; but for
    the web's own ports, at which there are other machines. What is public is asked by everybody, and takes no harm from us.
    """
    if not any(port == each and (host.removesuffix(".") == name or port not in WEB_PORTS) for name, each in own):
        return None
    if all(refusal(address, ()) is None for address in addresses):
        return None
    return f"port {port} is a server's that the crawl stands on"


def name_refusal(host: str, allowed: Sequence[Network]) -> str | None:
    """Why this name is not looked up: it means something inside. Where networks inside are allowed, names in them are too."""
    if allowed:
        return None
    name = host.removesuffix(".")
    if "." not in name:
        return f"{name} is a name without a domain"
    if name.endswith(INSIDE_SUFFIXES):
        return f"{name} is a name for inside"
    return None


def refusal(address: str | Address, allowed: Sequence[Network]) -> str | None:
    """Why this address is not dialled; None if it may be. Raises `ValueError` for a text that is no address."""
    parsed = ip_address(address) if isinstance(address, str) else address
    if any(parsed in network for network in allowed):
        # An allowed NAT64 or 6to4 prefix leads to IPv4 addresses, which were not allowed with it.
        return next((reason for inner in carried(parsed) if (reason := refusal(inner, allowed)) is not None), None)
    if isinstance(parsed, IPv4Address):
        return _refusal_by(IPV4_REFUSED, parsed)
    if parsed.scope_id is not None:
        return f"{parsed} names a network card"
    if (reason := _refusal_by(IPV6_REFUSED, parsed)) is not None:
        return reason
    if _isatap(parsed):
        return f"{parsed} is ISATAP for {carried(parsed)[0]}"
    return None if parsed in IPV6_GLOBAL else f"{parsed} is not a global address"


def carried(address: Address) -> tuple[IPv4Address, ...]:
    """The IPv4 addresses that packets to an IPv6 address end up at, by the transition scheme that it belongs to."""
    if isinstance(address, IPv4Address):
        return ()
    bits = int(address)
    if address in _TEREDO:
        return _ipv4(bits >> 64), _ipv4(~bits)  # the server, and the client, which is written inverted
    if address in _SIX_TO_FOUR:
        return (_ipv4(bits >> 80),)
    # :: and ::1 are not addresses 0.0.0.0 and 0.0.0.1 in the IPv4-compatible block, though they lie in it.
    if (bits > 1 and any(address in network for network in _IPV4_AT_THE_END)) or _isatap(address):
        return (_ipv4(bits),)
    return ()


def _refusal_by(table: Mapping[Network, str], address: Address) -> str | None:
    return next((f"{address} is {use} ({network})" for network, use in table.items() if address in network), None)


def _ipv4(bits: int) -> IPv4Address:
    return IPv4Address(bits & 0xFFFF_FFFF)


def _isatap(address: IPv6Address) -> bool:
    return int(address) >> 32 & 0xFDFF_FFFF == 0x5EFE  # 0:5efe and 200:5efe, in any /64


def _networks(rows: Mapping[str, str]) -> Mapping[Network, str]:
    return {(IPv6Network(block) if ":" in block else IPv4Network(block)): use for block, use in rows.items()}


#: All else is global.
IPV4_REFUSED: Final = _networks(
    {
        "0.0.0.0/8": "this network",
        "10.0.0.0/8": "private",
        "100.64.0.0/10": "shared behind a carrier's NAT",  # and 100.100.100.200, a cloud's metadata
        "127.0.0.0/8": "loopback",
        "168.63.129.16/32": "a cloud's host channel",  # global by the registry
        "169.254.0.0/16": "link local",  # and 169.254.169.254, most clouds' metadata
        "172.16.0.0/12": "private",
        "192.0.0.0/24": "for protocols",  # and 192.0.0.192, a cloud's metadata
        "192.0.2.0/24": "for documentation",
        "192.31.196.0/24": "AS112",
        "192.52.193.0/24": "AMT",
        "192.88.99.0/24": "a 6to4 relay",
        "192.168.0.0/16": "private",
        "192.175.48.0/24": "AS112",
        "198.18.0.0/15": "for benchmarks",
        "198.51.100.0/24": "for documentation",
        "203.0.113.0/24": "for documentation",
        "224.0.0.0/4": "multicast",
        "255.255.255.255/32": "broadcast",
        "240.0.0.0/4": "reserved",
    }
)

#: All else in 2000::/3 is global, and nothing outside of it. Blocks that carry IPv4 addresses are refused whole.
IPV6_GLOBAL: Final = IPv6Network("2000::/3")
IPV6_REFUSED: Final = _networks(
    {
        "::/128": "unspecified",
        "::1/128": "loopback",
        "::/96": "IPv4-compatible",
        "::ffff:0:0/96": "IPv4-mapped",
        "::ffff:0:0:0/96": "IPv4-translated",
        "64:ff9b::/96": "NAT64",
        "64:ff9b:1::/48": "local NAT64",
        "100::/64": "discarded",
        "100:0:0:1::/64": "a dummy",
        "2001::/32": "Teredo",
        "2001:2::/48": "for benchmarks",
        "2001:10::/28": "ORCHID",
        "2001:20::/28": "ORCHIDv2",
        "2001:30::/28": "DRIP",
        "2001::/23": "for protocols",
        "2001:db8::/32": "for documentation",
        "2002::/16": "6to4",
        "2620:4f:8000::/48": "AS112",
        "3ffe::/16": "6bone, given back",
        "3fff::/20": "for documentation",
        "5f00::/16": "segment routing",
        "fc00::/7": "unique local",  # and fd00:ec2::254, a cloud's metadata
        "fe80::/10": "link local",
        "fec0::/10": "site local",
        "ff00::/8": "multicast",
    }
)

_TEREDO: Final = IPv6Network("2001::/32")
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")
_IPV4_AT_THE_END: Final = (
    IPv6Network("::/96"),
    IPv6Network("::ffff:0:0/96"),
    IPv6Network("::ffff:0:0:0/96"),
    IPv6Network("64:ff9b::/96"),
    IPv6Network("64:ff9b:1::/48"),  # where the IPv4 lies depends on the operator's prefix (RFC 6052); most use a /96
)

WEB_PORTS: Final = frozenset({80, 443})
_SERVER_PORTS: Final = {"amqp": 5672, "amqps": 5671, "redis": 6379, "rediss": 6379, "http": 80, "https": 443}

#: RFC 6761, 6762, 7686, 8375, 9476; .internal by ICANN; then what routers, container engines and offices use.
INSIDE_SUFFIXES: Final = tuple(
    f".{name}"
    for name in (
        *("localhost", "test", "invalid", "example", "local", "onion", "home.arpa", "alt", "internal"),
        *("corp", "home", "intranet", "lan", "localdomain", "mail", "private", "svc"),
    )
)

#: The bad ports of the Fetch Standard.
BAD_PORTS: Final[Mapping[int, str]] = {
    0: "no port",
    1: "tcpmux",
    7: "echo",
    9: "discard",
    11: "systat",
    13: "daytime",
    15: "netstat",
    17: "qotd",
    19: "chargen",
    20: "FTP",
    21: "FTP",
    22: "SSH",
    23: "telnet",
    25: "SMTP",
    37: "time",
    42: "name",
    43: "whois",
    53: "DNS",
    69: "TFTP",
    77: "rje",
    79: "finger",
    87: "ttylink",
    95: "supdup",
    101: "hostname",
    102: "iso-tsap",
    103: "gppitnp",
    104: "acr-nema",
    109: "POP2",
    110: "POP3",
    111: "sunrpc",
    113: "auth",
    115: "sftp",
    117: "uucp-path",
    119: "NNTP",
    123: "NTP",
    135: "epmap",
    137: "NetBIOS",
    139: "NetBIOS",
    143: "IMAP",
    161: "SNMP",
    179: "BGP",
    389: "LDAP",
    427: "SLP",
    465: "SMTP",
    512: "exec",
    513: "login",
    514: "shell",
    515: "printer",
    526: "tempo",
    530: "courier",
    531: "chat",
    532: "netnews",
    540: "UUCP",
    548: "AFP",
    554: "RTSP",
    556: "remotefs",
    563: "NNTP",
    587: "SMTP",
    601: "syslog",
    636: "LDAP",
    989: "FTP",
    990: "FTP",
    993: "IMAP",
    995: "POP3",
    1719: "H.323",
    1720: "H.323",
    1723: "PPTP",
    2049: "NFS",
    3659: "apple-sasl",
    4045: "lockd",
    4190: "sieve",
    5060: "SIP",
    5061: "SIP",
    6000: "X11",
    6566: "SANE",
    6665: "IRC",
    6666: "IRC",
    6667: "IRC",
    6668: "IRC",
    6669: "IRC",
    6679: "IRC",
    6697: "IRC",
    10080: "amanda",
}

#: What else answers to text inside: brokers, caches, databases, container engines. Refused in allowed networks as well. None lies
#: between 32768 and 60999, from which Linux takes the ports of servers that name none, those of tests among them.
SERVICE_PORTS: Final[Mapping[int, str]] = {
    445: "SMB",
    873: "rsync",
    1433: "SQL Server",
    1521: "Oracle",
    1883: "MQTT",
    2181: "ZooKeeper",
    2375: "Docker",
    2376: "Docker",
    2377: "Docker Swarm",
    2379: "etcd",
    2380: "etcd",
    3260: "iSCSI",
    3306: "MySQL",
    3389: "RDP",
    4222: "NATS",
    4369: "Erlang",
    5432: "PostgreSQL",
    5671: "RabbitMQ",
    5672: "RabbitMQ",
    5900: "VNC",
    5984: "CouchDB",
    6379: "Redis",
    6380: "Redis",
    6443: "Kubernetes",
    7687: "Neo4j",
    8086: "InfluxDB",
    8125: "StatsD",
    8300: "Consul",
    8500: "Consul",
    8883: "MQTT",
    9042: "Cassandra",
    9092: "Kafka",
    9160: "Cassandra",
    9200: "Elasticsearch",
    9300: "Elasticsearch",
    10250: "kubelet",
    10255: "kubelet",
    11211: "memcached",
    15672: "RabbitMQ",
    16379: "Redis",
    25672: "RabbitMQ",
    26379: "Redis",
    27017: "MongoDB",
    27018: "MongoDB",
    27019: "MongoDB",
    28015: "RethinkDB",
    61613: "ActiveMQ",
    61616: "ActiveMQ",
}
