"""A web of traps: sites that never end, each in its own way, and a healthy one that links to them all.

Each is a registered domain of its own under .test, and every name there is, known or made up, is on loopback. What counts is what
the server saw: a trap names how many requests it may bring about, robots.txt not among them.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qsl, urlsplit

from services.worker.resolve import Record

HEALTHY: Final = "healthy.test"
HEALTHY_PAGES: Final = 60
#: As `--max-host-pages` is for the crawl: only a budget ends what is endless and never repeats itself.
HOST_PAGES: Final = 300
HOSTS_MAX: Final = 100
FILTERS, VALUES = 12, 5
MONTHS: Final = (
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
)


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, as the server saw it."""

    host: str
    target: str  #: path and query
    root: str  #: of the whole web: what is put behind a host's name to get a URL
    visit: int  #: how many came before it: what makes every visit another one

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> dict[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query))


@dataclass(frozen=True, slots=True)
class Answer:
    body: str = ""
    status: int = 200
    headers: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Trap:
    domain: str
    starts: Sequence[str]  #: what the healthy site links to
    answer: Callable[[Asked], Answer]
    most: int  #: requests that it may bring about
    robots: str = ""


# --- Texts ---


def prose(seed: object, words: int = 150) -> list[str]:
    """Words that are the same for the same seed, and like no others."""
    rng = random.Random(str(seed))
    return ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(3, 9))) for _ in range(words)]


def page(words: Iterable[str], links: Iterable[str] = ()) -> Answer:
    anchors = "".join(f'<li><a href="{href}">on</a>' for href in links)
    return Answer(f"<!doctype html><title>a page</title><p>{' '.join(words)}</p><ul>{anchors}</ul>")


def unique(asked: Asked, links: Iterable[str] = ()) -> Answer:
    return page(prose(asked.host + asked.target), links)


# --- Calendars ---


def calendar(asked: Asked) -> Answer:
    """The next month and the one before, for ever; pages differ by the month's name alone."""
    year, month = int(asked.query.get("y", 2031)), int(asked.query.get("m", 7))
    near = [divmod(year * 12 + month - 1 + step, 12) for step in (-1, 1)]
    return page([*prose("calendar"), MONTHS[month - 1]], [f"/cal?y={y}&amp;m={m + 1}" for y, m in near])


def almanac(asked: Asked) -> Answer:
    """The same, with years and months as folders."""
    _, _, year, month, _ = asked.path.split("/")
    near = [divmod(int(year) * 12 + int(month) - 1 + step, 12) for step in (-1, 1)]
    return page([*prose("almanac"), MONTHS[int(month) - 1]], [f"/cal/{y}/{m + 1:02}/" for y, m in near])


# --- Session ids: five pages, and a new id with every visit ---


def sessions(spell: Callable[[str, str], str]) -> Callable[[Asked], Answer]:
    """`spell`: the URL of a page under an id of 32 hexadecimal digits."""

    def answer(asked: Asked) -> Answer:
        number = asked.path.partition(";")[0].rpartition("p")[2]
        id = f"{random.Random(asked.visit).getrandbits(128):032x}"
        return page(prose(f"{asked.host} {number}"), [spell(f"p{n}", id) for n in range(5)])

    return answer


def jsessionid(name: str, id: str) -> str:
    return f"/{name};jsessionid={id.upper()}"


def asp_net(name: str, id: str) -> str:
    return f"/(S({id[:24]}))/{name}"


def parameter(name: str, id: str) -> str:
    return f"/{name}?{('PHPSESSID', 'sid', 's')[int(id, 16) % 3]}={id}"


def campaign(name: str, id: str) -> str:
    return f"/{name}?utm_source={id[:6]}&amp;utm_campaign=x&amp;gclid={id}&amp;fbclid={id[::-1]}"


def segment(name: str, id: str) -> str:
    return f"/{id}/{name}"


# --- Paths and parameters ---


def growing(*hrefs: str) -> Callable[[Asked], Answer]:
    """Every path is a page, and links to longer ones."""
    return lambda asked: unique(asked, hrefs)


def ping_pong(asked: Asked) -> Answer:
    return unique(asked, ["x/" if asked.path.endswith("y/") else "y/"])


def facets(asked: Asked) -> Answer:
    """Twelve filters of five values each, freely combined, in any order."""
    chosen = list(asked.query.items())
    more = [(f"f{n}", str(value)) for n in range(FILTERS) if f"f{n}" not in asked.query for value in range(VALUES)]
    rng = random.Random(asked.target)
    return unique(asked, [_shuffled(rng, [*chosen, one]) for one in more])


def _shuffled(rng: random.Random, chosen: list[tuple[str, str]]) -> str:
    rng.shuffle(chosen)
    return "/shop?" + "&amp;".join(f"{name}={value}" for name, value in chosen)


def brackets(asked: Asked) -> Answer:
    """A list of values that grows by one with each click."""
    query = urlsplit(asked.target).query
    return unique(asked, [f"/shop?{query}&amp;a[]={n}" if query else f"/shop?a[]={n}" for n in range(9)])


def shallow(asked: Asked) -> Answer:
    """Four hundred combinations, all of them two clicks away."""
    return unique(asked, [f"/shop?x={n % 20}&amp;y={n // 20}" for n in range(400)] if asked.path == "/all" else ["/all"])


# --- Hosts ---


def wildcard(asked: Asked) -> Answer:
    """A name server that knows every name: fifty new hosts on each page."""
    rng = random.Random(asked.host + asked.target)
    return unique(asked, [f"http://{rng.getrandbits(40):010x}.wildcard.test{asked.root}/" for _ in range(50)])


def ring(asked: Asked) -> Answer:
    """Three hosts that each say that it is with the next."""
    number = int(asked.host[0])
    return Answer(status=302, headers=[f"Location: http://{(number + 1) % 3}.ring.test{asked.root}/"])


# --- Redirects ---


def maze(asked: Asked) -> Answer:
    number = int(asked.query.get("n", 0))
    match asked.path:
        case "/self":
            return Answer(status=302, headers=["Location: /self", f"Set-Cookie: seen={asked.visit}"])
        case "/there" | "/back":
            return Answer(status=301, headers=[f"Location: {'/back' if asked.path == '/there' else '/there'}"])
        case "/hops" if number < 21:
            return Answer(status=302, headers=[f"Location: /hops?n={number + 1}"])
        case "/endless":
            return Answer(status=307, headers=[f"Location: /endless?n={number + 1}"])
        case "/nowhere":
            return Answer(status=302)
        case "/empty":
            return Answer(status=302, headers=["Location:"])
        case "/double":
            return Answer(status=302, headers=["Location: /one", "Location: /two"])
        case "/broken":
            return Answer(status=302, headers=["Location: http://[broken/"])
        case "/heavy":
            return Answer("x" * 400_000, 301, ["Location: /light"])
        case "/choices":
            return Answer(unique(asked, ["/one-choice"]).body, 300)
        case _:
            return unique(asked)


# --- Tarpits and farms ---


def tarpit(asked: Asked) -> Answer:
    """Text without end, never the same, and forty links to more of it."""
    rng = random.Random(asked.target)
    return unique(asked, [f"/{rng.getrandbits(60):x}/{rng.getrandbits(60):x}" for _ in range(40)])


def farm(asked: Asked) -> Answer:
    """Pages that are the same but for one passage, of two words in a hundred."""
    return page(prose("farm", 980) + prose(asked.target, 20), _more(asked))


def scattered_farm(asked: Asked) -> Answer:
    """The same, with the changes all over the text: no passage is left whole, and so no two pages are alike by 0.9."""
    words, rng = prose("farm", 1000), random.Random(asked.target)
    for n in rng.sample(range(len(words)), 20):
        words[n] = f"w{rng.getrandbits(32)}"
    return page(words, _more(asked))


def _more(asked: Asked) -> list[str]:
    rng = random.Random(asked.target)
    return [f"/{rng.getrandbits(40)}" for _ in range(10)]


TRAPS: Final = (
    Trap("calendar.test", ["/cal?y=2031&amp;m=7"], calendar, most=200),
    Trap("almanac.test", ["/cal/2031/07/"], almanac, most=200),
    Trap("jsessionid.test", ["/p0"], sessions(jsessionid), most=5),
    Trap("aspnet.test", ["/p0"], sessions(asp_net), most=5),
    Trap("parameter.test", ["/p0"], sessions(parameter), most=5),
    Trap("campaign.test", ["/p0"], sessions(campaign), most=5),
    Trap("segment.test", ["/p0"], sessions(segment), most=50),
    Trap("growing.test", ["/"], growing("a/", "a/b/../c/"), most=15),
    Trap("pingpong.test", ["/x/"], ping_pong, most=15),
    Trap("index.test", ["/index.php/"], growing("index.php/"), most=15),
    Trap("facets.test", ["/shop"], facets, most=100),
    Trap("brackets.test", ["/shop"], brackets, most=100),
    Trap("shallow.test", ["/"], shallow, most=102),  # the path itself, and two pages on the way
    Trap("wildcard.test", ["/"], wildcard, most=1000),
    *(Trap(f"{name}.test", [f"/{name}"], maze, most=most) for name, most in {
        "self": 1, "there": 2, "hops": 6, "endless": 6, "nowhere": 1, "empty": 1, "double": 2, "broken": 1,
        "heavy": 2, "choices": 1,
    }.items()),
    Trap("ring.test", [], ring, most=3),
    Trap("tarpit.test", ["/"], tarpit, most=HOST_PAGES),
    Trap("farm.test", ["/"], farm, most=11),
    Trap("scattered.test", ["/"], scattered_farm, most=HOST_PAGES),
    Trap("forbidden.test", ["/maze/"], tarpit, most=0, robots="User-agent: *\nDisallow: /maze/\n"),
)  # fmt: skip
_BY_DOMAIN: Final = {trap.domain: trap for trap in TRAPS}


# --- The web ---


@dataclass
class Web:
    """All of it behind one port; names are told apart by the Host header."""

    root: str = ""  #: the port, as it stands behind a host's name
    pages: Counter[tuple[str, str]] = field(default_factory=Counter)  #: requests by host and target, robots.txt not among them
    robots: Counter[str] = field(default_factory=Counter)  #: by host
    looked_up: Counter[str] = field(default_factory=Counter)  #: names that were asked for

    @property
    def seed(self) -> str:
        return f"http://{HEALTHY}{self.root}/"

    def requests(self, domain: str) -> int:
        """For pages, at all hosts of a domain."""
        return sum(count for (host, _), count in self.pages.items() if is_of(host, domain))

    def hosts(self, domain: str) -> set[str]:
        return {host for host in (*self.robots, *(host for host, _ in self.pages)) if is_of(host, domain)}

    async def look_up(self, name: str) -> Sequence[Record]:
        self.looked_up[name] += 1
        return [Record("127.0.0.1", 300)]

    def answer(self, host: str, target: str) -> Answer:
        domain = ".".join(host.split(".")[-2:])
        if target == "/robots.txt":
            self.robots[host] += 1
            robots = _BY_DOMAIN[domain].robots if domain in _BY_DOMAIN else ""
            return Answer(robots, 200 if robots else 404, ["Content-Type: text/plain"])
        self.pages[host, target] += 1
        asked = Asked(host, target, self.root, self.pages.total())
        return self._healthy(asked) if host == HEALTHY else _BY_DOMAIN[domain].answer(asked)

    def _healthy(self, asked: Asked) -> Answer:
        """A tree of pages; its first page leads to the traps."""
        number = int(asked.path[1:] or 0)
        links = [f"/{child}" for child in (2 * number + 1, 2 * number + 2) if child < HEALTHY_PAGES]
        if not number:
            links += [f"http://{trap.domain}{self.root}{start}" for trap in TRAPS for start in trap.starts]
            links.append(f"http://0.ring.test{self.root}/")
        return unique(asked, links)


def is_of(host: str, domain: str) -> bool:
    return host == domain or host.endswith("." + domain)


@asynccontextmanager
async def served() -> AsyncIterator[Web]:
    web = Web()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                lines = head.decode("latin-1").split("\r\n")
                host = next(line[6:] for line in lines if line.lower().startswith("host: ")).partition(":")[0]
                writer.write(_message(web.answer(host, lines[0].split(" ")[1])))
                await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the client went away
        finally:
            writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    web.root = f":{server.sockets[0].getsockname()[1]}"
    try:
        yield web
    finally:
        server.close()


def _message(answer: Answer) -> bytes:
    body = answer.body.encode()
    typed = any(line.startswith("Content-Type") for line in answer.headers)
    head = [f"HTTP/1.1 {answer.status} Whatever", f"Content-Length: {len(body)}", *answer.headers]
    head += [] if typed else ["Content-Type: text/html; charset=utf-8"]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body
