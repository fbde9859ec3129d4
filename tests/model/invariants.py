"""What must hold: I1-I7 as far as one state or one step shows them. What only the whole graph shows is in `search`.

The rest of I3 is where requests begin (`processes`): only the server sees it.
"""

from tests.model.state import (
    CLOSED,
    COMPLETE,
    ENDED,
    FETCHING,
    HELD,
    NONE,
    OPEN,
    PARKED,
    POISON,
    STORED,
    TWIN,
    UNKNOWN,
    Ledger,
    State,
    World,
)
from tests.model.verbs import of_domain


def ended(world: World, state: State) -> bool:
    """Nothing can follow: complete, or ended for the last time."""
    ledger = state.ledger
    return ledger.status == COMPLETE or (ledger.status == ENDED and ledger.resumed + 1 == len(world.scenario.budgets))


def broken(world: World, state: State) -> str:
    """The invariant that a state breaks, or nothing."""
    return broken_url(world, state) or broken_budget(world, state.ledger) or broken_end(world, state.ledger)


def broken_url(world: World, state: State) -> str:
    ledger, scenario = state.ledger, world.scenario
    stored: set[int] = set()
    owners: dict[int, int] = {}
    for n, url in enumerate(ledger.urls):
        page = scenario.pages[n]
        if url.state == PARKED and not ledger.domains[page.domain].due and not of_domain(world, ledger, page.domain, HELD):
            return f"I1 u{n} is parked, its domain neither due nor out"
        if url.state in HELD and owners.setdefault(page.domain, url.worker) != url.worker:
            return f"I5 domain {page.domain} is with two workers"
        if url.state == STORED:
            if any(ledger.urls[link].state == UNKNOWN for link in page.links):
                return f"I2 a link of the closed u{n} is missing"
            if url.content in stored and url.content != NONE:
                return f"I2 content {url.content} is stored twice"
            stored.add(url.content)
        if url.state == POISON and framed(world, n, world.faults - state.faults):
            return f"I2 u{n} is closed as poison and never killed anybody"
    for n, url in enumerate(ledger.urls):
        if url.state == TWIN and url.content not in stored:
            return f"I2 u{n} is closed as the twin of a page that isn't stored"
    return ""


def framed(world: World, n: int, faults: int) -> bool:
    """Faults don't account for it: one makes an innocent page a suspect (or a deadly neighbour does), and each death is one."""
    scenario = world.scenario
    if scenario.pages[n].deadly or scenario.pages[n].stunning:
        return False
    neighbours = scenario.deadly_robots or any(page.deadly or page.stunning for page in scenario.pages)
    return faults < scenario.poison + (0 if neighbours else 1)


def broken_budget(world: World, ledger: Ledger) -> str:
    budget = world.budget(ledger)
    if ledger.reserved != sum(url.state == FETCHING for url in ledger.urls):
        return "I4 what is reserved isn't what is being fetched"
    if budget.pages is not None and ledger.stored + ledger.reserved > budget.pages:
        return "I4 more pages than the budget"
    if budget.bytes is not None and ledger.spent + ledger.flying > budget.bytes:
        return "I4 more bytes than the budget"
    if ledger.asked > ledger.spent + ledger.flying:
        return "I4 a request was sent whose bytes are neither reserved nor paid"
    if ledger.flying != sum(domain.busy != NONE for domain in ledger.domains):
        return "I4 the bytes reserved aren't those of the requests in flight"
    if ledger.status == ENDED and budget.pages is not None and ledger.stored != budget.pages:
        return "I4 the page budget ended early"
    return ""


def broken_end(world: World, ledger: Ledger) -> str:
    if ledger.status == ENDED and (ledger.reserved or ledger.flying):
        return "I7 ended with requests in flight"
    if ledger.status == COMPLETE and any(url.state in OPEN for url in ledger.urls):
        return "I7 complete with open URLs"
    return ""


def changed_a_closed_one(before: Ledger, after: Ledger) -> str:
    if before.urls is not after.urls:
        for n, (old, new) in enumerate(zip(before.urls, after.urls, strict=True)):
            if old.state in CLOSED and old != new:
                return f"I2 the closed u{n} changed"
    return ""
