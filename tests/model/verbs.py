"""The ledger's verbs, to be read beside the protocol's text: (world, ledger, ...) -> (ledger, answer), all pure.

Each is one atomic step. Fencing is the caller's here (`processes`), since it is the same for every verb with a seat. Every change
of a URL's state is held against the table in `gossamer.states`, unless a deliberate bug is switched on.
Must not know: queues, processes, time's passing, faults.
"""

from collections.abc import Iterable
from typing import TypeVar

from gossamer.states import STEPS
from tests.model.state import (
    CLOSED,
    COMPLETE,
    DRAINING,
    ENDED,
    FAILED,
    FETCHING,
    FORBIDDEN,
    HELD,
    NONE,
    OPEN,
    PARKED,
    POISON,
    ROUTED,
    RUNNING,
    SHED,
    STORED,
    UNKNOWN,
    WAITING,
    Domain,
    Ledger,
    Url,
    World,
)

T = TypeVar("T")
Answer = tuple[Ledger, str]

LEGAL = frozenset(
    (before.name if before is not None else UNKNOWN, verb.value, after.name)
    for (before, verb), afters in STEPS.items()
    for after in afters
)
SEEN = frozenset({"finish", "defer", "leave"})  # their callers saw how the request ended


# --- Reading ----------------------------------------------------------------------------------------------------------


def of_domain(world: World, ledger: Ledger, domain: int, states: frozenset[str]) -> list[int]:
    pages = world.scenario.pages
    return [n for n, url in enumerate(ledger.urls) if url.state in states and pages[n].domain == domain]


def load(ledger: Ledger, worker: int) -> int:
    return sum(1 for url in ledger.urls if url.worker == worker and url.state in HELD)


def roomy(world: World, ledger: Ledger) -> list[int]:
    """The live workers with room, the least loaded first."""
    loads = [(load(ledger, w), w) for w, live in enumerate(ledger.leases) if live]
    return [w for used, w in sorted(loads) if used < world.scenario.size]


def choices(world: World, ledger: Ledger) -> list[int]:
    """Who may become the owner of a domain that has nothing out."""
    return roomy(world, ledger)[: None if world.scenario.loose else 1] or [NONE]


def best(world: World, urls: list[int]) -> list[int]:
    """Those that may have the best priority: `rank` may have put any first."""
    return urls if world.scenario.ranked else urls[:1]


def held(ledger: Ledger, worker: int) -> list[int]:
    return [n for n, url in enumerate(ledger.urls) if url.worker == worker and url.state in HELD]


def waiting(ledger: Ledger) -> list[int]:
    return [n for n, url in enumerate(ledger.urls) if url.state == WAITING]


def engaged(world: World, ledger: Ledger, worker: int, but: int) -> list[int]:
    """What else goes on in this worker's process: URLs that are FETCHING or have a request in flight (robots.txt)."""
    pages, domains = world.scenario.pages, ledger.domains
    blind = world.bug == "robots-is-no-company"
    return [
        n
        for n in held(ledger, worker)
        if n != but and (ledger.urls[n].state == FETCHING or (domains[pages[n].domain].busy == n and not blind))
    ]


# --- Writing ----------------------------------------------------------------------------------------------------------


def put(items: tuple[T, ...], at: int, item: T) -> tuple[T, ...]:
    return (*items[:at], item, *items[at + 1 :])


def set_url(world: World, ledger: Ledger, url: int, new: Url, verb: str) -> Ledger:
    was, now = ledger.urls[url].state, "CLOSED" if new.state in CLOSED else new.state
    assert (was, verb, now) in LEGAL or world.bug, f"{verb} takes a URL from {was} to {now}"
    return ledger._replace(urls=put(ledger.urls, url, new))


def moved(ledger: Ledger, url: int, state: str, worker: int = NONE) -> Url:
    """The URL's record in another state: what is known of its past stays with it."""
    return ledger.urls[url]._replace(state=state, worker=worker)


def set_domain(ledger: Ledger, at: int, domain: Domain) -> Ledger:
    return ledger._replace(domains=put(ledger.domains, at, domain))


def idle(world: World, ledger: Ledger, at: int, verb: str) -> Ledger:
    """The domain's request is over, and its bytes are paid for. One whose end nobody saw counts as started just now."""
    domain = ledger.domains[at]
    cool = domain.cool and (domain.rested or world.bug == "next-at-from-begin") and verb in SEEN
    paid = world.budget(ledger).bytes is not None and world.bug != f"{verb}-charges-nothing"
    ledger = ledger._replace(flying=ledger.flying - (domain.busy != NONE), spent=ledger.spent + paid)
    return set_domain(ledger, at, domain._replace(busy=NONE, cool=cool))


def let_go(world: World, ledger: Ledger, url: int, new: Url, verb: str) -> Ledger:
    """The one way out of a worker's hands: what the URL had reserved, marked busy, filled or entered is given back."""
    old, at = ledger.urls[url], world.scenario.pages[url].domain
    ledger = set_url(world, ledger, url, new, verb)
    if old.state == FETCHING and world.bug != f"{verb}-keeps-reservation":
        ledger = ledger._replace(reserved=ledger.reserved - 1)
    its_own = ledger.domains[at].busy == url or (world.bug == "busy-has-no-name" and old.state == FETCHING)
    if its_own and world.bug != f"{verb}-leaves-busy":
        ledger = idle(world, ledger, at, verb)
    if new.state != STORED and url in ledger.content and world.bug != "reap-keeps-entry":
        ledger = ledger._replace(content=tuple(NONE if entry == url else entry for entry in ledger.content))
    told = "gate" if verb in ("begin", "knock") else verb
    if world.bug != f"{told}-without-due" and of_domain(world, ledger, at, frozenset({PARKED})):
        ledger = set_domain(ledger, at, ledger.domains[at]._replace(due=True))
    return ledger


def count_failure(world: World, ledger: Ledger, at: int) -> Ledger:
    """At the limit the domain rests, and after a rest one failure more is enough; one that comes during a rest is not."""
    scenario, domain = world.scenario, ledger.domains[at]
    if not scenario.fail_limit or domain.closed:
        return ledger
    failures = min(domain.failures + 1, scenario.fail_limit)
    if failures < scenario.fail_limit or domain.held:
        domain = domain._replace(failures=failures)
    elif domain.rests < scenario.rest_limit:
        rests = 0 if world.bug == "rest-forgotten" else domain.rests + 1
        domain = domain._replace(failures=failures, rests=rests, held=True)
    else:
        domain = domain._replace(failures=0, rests=0, closed=True)
    return set_domain(ledger, at, domain)


# --- Seats ------------------------------------------------------------------------------------------------------------


def register(world: World, ledger: Ledger, former: int = NONE) -> tuple[Ledger, int]:
    """`former`: the seat that this process, which lives, lost. The id, or NONE if none is free."""
    if world.bug != "register-without-reap":
        ledger = reap(world, ledger)
    free = [w for w, live in enumerate(ledger.leases) if not live]
    if not free:
        return ledger, NONE
    seat = free[0]
    urls = tuple(pardon(world, url) if url.blame == former else url for url in ledger.urls)
    urls = tuple(url._replace(blame=outdated(world, url.blame, seat)) for url in urls)
    return ledger._replace(urls=urls, leases=put(ledger.leases, seat, True)), seat


def pardon(world: World, url: Url) -> Url:
    """Nobody died: the lapse is taken back. Once, or a page that stuns its worker each time would go round for ever.

    One that was begun alone meanwhile is cleared by that visit, or isn't.
    """
    if url.pardoned or not url.suspect or url.state == FETCHING:
        return url
    once = world.bug != "pardon-without-end"
    return url._replace(suspect=False, deaths=max(0, url.deaths - 1), blame=NONE, pardoned=once)


def outdated(world: World, former: int, seat: int) -> int:
    """A seat's name once its id has a newer epoch."""
    return former + world.scenario.workers if former == seat else former


def reap(world: World, ledger: Ledger) -> Ledger:
    over = {url.worker for url in ledger.urls if url.state in HELD and not ledger.leases[url.worker]}
    for worker in sorted(over):
        ledger = give_back(world, ledger, worker, "reap")
    return ledger


def release(world: World, ledger: Ledger, worker: int) -> Ledger:
    ledger = ledger._replace(leases=put(ledger.leases, worker, False))
    return give_back(world, ledger, worker, "release")


def give_back(world: World, ledger: Ledger, worker: int, verb: str) -> Ledger:
    suspected = verb == "reap" or world.bug == f"{verb}-makes-suspects"
    for n in held(ledger, worker):
        url, at = ledger.urls[n], world.scenario.pages[n].domain
        if url.state == FETCHING and world.bug == "reap-skips-fetching":
            continue
        robots = url.state == ROUTED and ledger.domains[at].busy == n
        new = lapsed(world, ledger, n) if suspected and url.state == FETCHING else moved(ledger, n, WAITING)
        ledger = let_go(world, ledger, n, new, verb)
        if robots and suspected and world.bug != "robots-never-kills":
            ledger = count_failure(world, ledger, at)  # no URL is to blame for what robots.txt does: the domain is
    return ledger


def lapsed(world: World, ledger: Ledger, n: int) -> Url:
    """What was FETCHING when its worker's lease ran out. A suspect is begun alone, so that it died alone."""
    url, limit = ledger.urls[n], world.scenario.poison
    if not limit:
        return moved(ledger, n, WAITING)
    deaths = url.deaths + (url.suspect or world.bug == "bystander-poisoned")
    if deaths >= limit:
        return Url(POISON)
    return moved(ledger, n, WAITING)._replace(suspect=True, deaths=deaths, blame=url.worker)


# --- The frontier's verbs ---------------------------------------------------------------------------------------------


def route(world: World, ledger: Ledger, url: int, prefer: int) -> Answer:
    if world.bug != "route-without-reap":
        ledger = reap(world, ledger)
    at = world.scenario.pages[url].domain
    domain, out = ledger.domains[at], of_domain(world, ledger, at, HELD)
    if ledger.urls[url].state != WAITING and world.bug != "route-ignores-state":
        return ledger, "closed"
    if ledger.status != RUNNING:
        return ledger, "no room"
    if domain.closed:
        return set_url(world, ledger, url, Url(FAILED), "route"), "closed"
    owner = ledger.urls[out[0]].worker if out else NONE
    if owner != NONE and (not ledger.leases[owner] or world.bug == "owner-changes"):
        owner = NONE
    full = owner != NONE and load(ledger, owner) >= world.scenario.size
    parked = of_domain(world, ledger, at, frozenset({PARKED}))
    if parked or len(out) >= world.scenario.window or domain.held or full:
        due = domain.due or (not out and world.bug != "park-without-due")
        ledger = set_url(world, ledger, url, moved(ledger, url, PARKED), "route")
        return set_domain(ledger, at, domain._replace(due=due)), "parked"
    room = [owner] if owner != NONE else roomy(world, ledger)
    if not room:
        return ledger, "no room"
    worker = prefer if prefer in room else room[0]
    return routed(world, ledger, url, worker, "route"), f"to w{worker}"


def promote(world: World, ledger: Ledger, at: int, prefer: int, nth: int = 0) -> tuple[Ledger, int]:
    """One URL of a due domain, the `nth` of those that may be the best; the URL if it was routed, or NONE."""
    ledger = reap(world, ledger)
    domain, out = ledger.domains[at], of_domain(world, ledger, at, HELD)
    parked = of_domain(world, ledger, at, frozenset({PARKED}))
    if not domain.due or ledger.status != RUNNING:
        return ledger, NONE
    if domain.closed and parked:
        due = len(parked) > 1 and world.bug != "closed-domain-forgets-parked"
        ledger = set_domain(ledger, at, domain._replace(due=due))
        return set_url(world, ledger, parked[nth % len(parked)], Url(FAILED), "promote"), NONE
    if domain.held and world.bug != "promote-ignores-not-before":
        return ledger, NONE
    if not parked or len(out) >= world.scenario.window:
        return set_domain(ledger, at, domain._replace(due=False)), NONE
    room = roomy(world, ledger)
    if out:
        room = [w for w in room if w == ledger.urls[out[0]].worker]
    if not room:  # while something is out, its letting go enters the domain again
        return set_domain(ledger, at, domain._replace(due=not out and world.bug != "promote-forgets-full")), NONE
    if world.bug == "rank-ignores-state":
        parked = of_domain(world, ledger, at, CLOSED) + parked
    more = len(parked) > 1 and len(out) + 1 < world.scenario.window
    worker, url = prefer if prefer in room else room[0], parked[nth % len(parked)]
    return routed(world, set_domain(ledger, at, domain._replace(due=more)), url, worker, "promote"), url


def routed(world: World, ledger: Ledger, url: int, worker: int, verb: str) -> Ledger:
    new = Url(ROUTED, worker) if world.bug == "past-forgotten" else moved(ledger, url, ROUTED, worker)
    return set_url(world, ledger, url, new, verb)


def shed(world: World, ledger: Ledger, url: int) -> Ledger:
    """Which URL is the worst is the rank's word: here any."""
    sheddable = ledger.urls[url].state in (OPEN if world.bug == "shed-takes-held" else (WAITING, PARKED))
    return set_url(world, ledger, url, Url(SHED), "shed") if sheddable else ledger


# --- The worker's verbs -----------------------------------------------------------------------------------------------


def begin(world: World, ledger: Ledger, worker: int, url: int) -> Answer:
    pages_max, entry = world.budget(ledger).pages, ledger.urls[url]
    if entry.state == FETCHING and entry.worker == worker:
        return ledger, "closed" if world.bug == "begin-once-only" else "go"
    if entry.state != ROUTED or entry.worker != worker:
        return ledger, "closed"
    after, answer = gate(world, ledger, worker, url, "begin")
    if answer != "go":
        return after, answer
    reserved = 0 if world.bug == "budget-at-finish" else ledger.reserved
    if pages_max is not None and ledger.stored + reserved >= pages_max:
        final = ledger.reserved == 0 or world.bug == "budget-final-at-once"
        return (ledger._replace(status=DRAINING), "budget") if final else (ledger, "wait")
    after = set_url(world, after, url, moved(after, url, FETCHING, worker), "begin")
    return after._replace(reserved=after.reserved + 1), "go"


def knock(world: World, ledger: Ledger, worker: int, url: int) -> Answer:
    entry = ledger.urls[url]
    if entry.state not in HELD or entry.worker != worker:
        return ledger, "closed"
    return gate(world, ledger, worker, url, "knock")


def gate(world: World, ledger: Ledger, worker: int, url: int, verb: str) -> Answer:
    """What `begin` and `knock` have in common: the domain's state decides, and *go* makes it busy and reserves the bytes."""
    at, first = world.scenario.pages[url].domain, ledger.urls[url].state == ROUTED
    domain = ledger.domains[at]
    if first and ledger.status != RUNNING:
        # It may be busy with this very URL: a *go* whose answer was lost. Nothing was asked for, and nothing will be.
        lost = domain.busy == url and world.bug != "budget-leaves-busy"
        return (idle(world, ledger, at, verb) if lost else ledger), "budget"
    if first and domain.closed and world.bug != "gate-ignores-closed":
        return let_go(world, ledger, url, Url(FAILED), verb), "closed"
    if domain.held and world.bug != "gate-ignores-not-before":
        if not first and world.bug != "gate-parks-a-retry":
            return ledger, "wait"
        return let_go(world, ledger, url, moved(ledger, url, PARKED), verb), "closed"
    if domain.busy not in (NONE, url) and world.bug != "gate-ignores-busy":
        return ledger, "wait"
    if not domain.cool and world.bug != "gate-ignores-delay":
        return ledger, "wait"
    if first and crowds(world, ledger, worker, url, verb):
        return ledger, "wait"
    mine = domain.busy == url and not (verb == "begin" and world.bug == "begin-waits-for-itself")
    others = ledger.flying - mine
    bytes_max = world.budget(ledger).bytes
    taken = verb == "begin" or world.bug != "knock-takes-no-bytes"
    if taken and bytes_max is not None and ledger.spent + others + 1 > bytes_max:
        if others or (not first and world.bug == "retry-waits-for-bytes"):
            return ledger, "wait"
        return ledger._replace(status=DRAINING), "budget"
    ledger = ledger._replace(flying=ledger.flying + (taken and domain.busy == NONE))
    return set_domain(ledger, at, domain._replace(busy=url, cool=False)), "go"


def crowds(world: World, ledger: Ledger, worker: int, url: int, verb: str) -> bool:
    """A suspect starts alone, and nothing starts beside it."""
    if not world.scenario.poison or (verb == "knock" and world.bug == "robots-is-no-company"):
        return False
    others = engaged(world, ledger, worker, url)
    if ledger.urls[url].suspect and world.bug != "suspect-begun-in-company":
        return bool(others)
    return any(ledger.urls[n].suspect for n in others) and world.bug != "company-for-a-suspect"


def leave(world: World, ledger: Ledger, url: int, later: bool = False) -> Ledger:
    """`later`: robots.txt can't be had yet, and not_before is moved."""
    at = world.scenario.pages[url].domain
    if ledger.domains[at].busy != url and world.bug != "busy-has-no-name":
        return ledger
    ledger = idle(world, ledger, at, "leave")
    return set_domain(ledger, at, ledger.domains[at]._replace(held=ledger.domains[at].held or later))


def know_robots(world: World, ledger: Ledger, url: int) -> Ledger:
    """Needs no seat: what a site says is true whoever heard it. So it must touch nothing that somebody holds."""
    at = world.scenario.pages[url].domain
    if world.bug == "know-robots-ends-busy":
        ledger = idle(world, ledger, at, "leave")
    return set_domain(ledger, at, ledger.domains[at]._replace(robots=True))


def judge(world: World, ledger: Ledger, url: int, content: int) -> Answer:
    entry = ledger.content[content] if content != NONE else NONE
    if content == NONE or (entry == url and world.bug != "own-twin"):
        return ledger, "fresh"
    if entry != NONE:
        known = ledger.urls[entry].state == STORED or entry == url or world.bug == "twin-of-open-page"
        return ledger, "twin" if known else "wait"
    if world.bug == "judge-in-two-steps":
        return ledger, "enter"
    return ledger._replace(content=put(ledger.content, content, url)), "fresh"


def finish(world: World, ledger: Ledger, worker: int, url: int, outcome: str, content: int) -> tuple[Ledger, tuple[int, ...]]:
    entry, at = ledger.urls[url], world.scenario.pages[url].domain
    if entry.state != FETCHING or entry.worker != worker:
        return ledger, ()
    ledger = let_go(world, ledger, url, Url(outcome, NONE, content), "finish")
    if outcome == FAILED:
        return count_failure(world, ledger, at), ()
    ledger = set_domain(ledger, at, ledger.domains[at]._replace(failures=0, rests=0))
    if outcome != STORED:
        return ledger, ()
    ledger = ledger._replace(stored=ledger.stored + 1)
    links = world.scenario.pages[url].links
    return (ledger, links) if world.bug == "links-after-closing" else add(world, ledger, links, "finish")


def defer(world: World, ledger: Ledger, worker: int, url: int, later: bool) -> Ledger:
    """`later`: the site asked for it (429, 503), and until moves not_before; else until is the one that the gate named."""
    entry, at = ledger.urls[url], world.scenario.pages[url].domain
    if entry.state != FETCHING or entry.worker != worker:
        return ledger
    counted = later and world.scenario.deferrals and world.bug != "deferrals-forgotten"
    # It was begun, alone if it was a suspect, and its worker lives.
    new = moved(ledger, url, PARKED)._replace(deferrals=entry.deferrals + bool(counted), suspect=False, blame=NONE)
    ledger = let_go(world, ledger, url, new, "defer")
    if not later:
        return ledger
    ledger = count_failure(world, ledger, at)  # before the wait, which is no rest and excuses no failure
    return set_domain(ledger, at, ledger.domains[at]._replace(held=True))


def pass_up(world: World, ledger: Ledger, worker: int, url: int) -> Ledger:
    entry = ledger.urls[url]
    if entry.state != ROUTED or entry.worker != worker:
        return ledger
    return let_go(world, ledger, url, Url(FORBIDDEN), "pass_up")


# --- The controller's verbs -------------------------------------------------------------------------------------------


def add(world: World, ledger: Ledger, urls: Iterable[int], verb: str = "add") -> tuple[Ledger, tuple[int, ...]]:
    """Also a part of `finish`, for the links."""
    new = tuple(sorted({url for url in urls if ledger.urls[url].state == UNKNOWN}))
    for url in new:
        ledger = set_url(world, ledger, url, Url(WAITING), verb)
    return ledger, new


def resume(world: World, ledger: Ledger) -> Ledger:
    """Every lease is void at once, and nobody is suspected: the operator says that nobody lives, not that somebody died."""
    leases = ledger.leases
    ledger = ledger._replace(status=RUNNING, resumed=ledger.resumed + 1, leases=(False,) * len(leases))
    for worker in range(len(leases)):
        ledger = give_back(world, ledger, worker, "resume")
    return ledger._replace(leases=leases) if world.bug == "resume-keeps-leases" else ledger


def end(world: World, ledger: Ledger) -> Ledger:
    if ledger.status not in (RUNNING, DRAINING):
        return ledger
    if not any(url.state in OPEN for url in ledger.urls):
        return ledger._replace(status=COMPLETE)
    robots = ledger.flying and world.bug != "end-beside-robots"  # robots.txt is asked for without a page reserved
    if ledger.status == DRAINING and not ledger.reserved and not robots:
        return ledger._replace(status=ENDED)
    return ledger
