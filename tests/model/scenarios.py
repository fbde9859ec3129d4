"""The configurations that are explored: each as small as it can be and still have its subject in it."""

from tests.model.state import DEFER, FAIL, OK, RETRY, Budget, Page, Scenario

FLAKY = (OK, FAIL)
DEATHS = frozenset({"kill", "freeze"})

SCENARIOS = {
    scenario.name: scenario
    for scenario in (
        # Two domains; links to a known page, to oneself, and across; one URL at a time per domain and worker.
        Scenario("links", (Page(0, (1, 2, 0)), Page(0, (0,)), Page(1, (0,))), seeds=(0, 1)),
        Scenario("four pages", (Page(0, (1, 2, 0)), Page(0, (3,)), Page(1, (0, 3)), Page(1))),
        # From nothing: seeds are added and workers register at any time; processes ask whenever they may.
        Scenario("cold start", (Page(0, (1,)), Page(0)), cold=True, loose=True),
        # A worker that comes late gets the id of one whose lease is over while the old one is still about.
        Scenario("late worker", (Page(0, (1,)), Page(0)), late=1),
        Scenario("kills only", (Page(0, (1,)), Page(0)), kinds=frozenset({"kill"})),
        Scenario("bands", (Page(0, (1,)), Page(0)), bands=True, frontiers=2),
        Scenario("two frontiers", (Page(0), Page(0)), seeds=(0, 1), workers=1, frontiers=2, window=2, size=2, loose=True),
        # One worker, two domains: a due domain meets a full worker.
        Scenario("crowded", (Page(0, (), (OK, DEFER)), Page(1, (), (OK, DEFER))), seeds=(0, 1), workers=1),
        Scenario("full owner", (Page(0), Page(0), Page(1)), seeds=(0, 1, 2), window=2),
        # Window 2: a retry waits while another URL of its domain begins.
        Scenario("retry", (Page(0, (), (OK, RETRY)), Page(0, (), (OK, RETRY))), seeds=(0, 1), window=2, size=2),
        Scenario("defer", (Page(0, (), (OK, DEFER, RETRY)), Page(0, (), (OK, DEFER))), seeds=(0, 1), window=2, size=2),
        Scenario("stopped", (Page(0, (1,), (OK, RETRY), (0,)), Page(1, (), (OK, DEFER), (0,))), seeds=(0, 1), stop=True),
        Scenario(
            "robots", (Page(0, (1,)), Page(0, forbidden=True), Page(0, (), (OK, DEFER))), seeds=(0, 2), robots=frozenset({0})
        ),
        Scenario(
            "wide robots",
            (Page(0, (), (OK, DEFER)), Page(0, forbidden=True)),
            seeds=(0, 1),
            robots=frozenset({0}),
            window=2,
            size=2,
        ),
        # The same content under two URLs; the first may fail later, or have changed when it is fetched again.
        Scenario("twins", (Page(0, (), FLAKY, (0,)), Page(1, (), (OK,), (0,))), seeds=(0, 1)),
        Scenario("changing twins", (Page(0, (), FLAKY, (0, 1)), Page(1, (), (OK,), (0, 1))), seeds=(0, 1)),
        Scenario(
            "twins in budget",
            (Page(0, (), FLAKY, (0,)), Page(1, (2,), (OK,), (0,)), Page(1)),
            seeds=(0, 1),
            budgets=(Budget(pages=2),),
        ),
        Scenario(
            "page budget",
            (Page(0, (2,), FLAKY), Page(1, (), FLAKY), Page(1)),
            seeds=(0, 1),
            budgets=(Budget(pages=1),),
        ),
        Scenario(
            "byte budget",
            (Page(0, (2,), FLAKY), Page(1, (), FLAKY), Page(1)),
            seeds=(0, 1),
            budgets=(Budget(bytes=2),),
        ),
        # Requests that aren't a URL's first take bytes too: robots.txt, and a retry.
        Scenario(
            "bytes at the door",
            (Page(0, (), (OK, RETRY)), Page(1)),
            seeds=(0, 1),
            workers=1,
            size=2,
            robots=frozenset({1}),
            budgets=(Budget(bytes=2),),
            stop=True,
        ),
        Scenario(
            "bytes for retries",
            (Page(0, (), (OK, RETRY)), Page(1, (), (OK, RETRY))),
            seeds=(0, 1),
            budgets=(Budget(bytes=3),),
        ),
        # Robots.txt comes to be known while another worker's request for it is in flight.
        Scenario(
            "late robots",
            (Page(0),),
            robots=frozenset({0}),
            budgets=(Budget(bytes=2),),
            kinds=frozenset({"freeze", "answer"}),
        ),
        # A page that kills whoever fetches it, beside an innocent one in the same process; then two such pages.
        Scenario("deadly page", (Page(0, deadly=True), Page(1)), seeds=(0, 1), workers=1, size=2, poison=1),
        Scenario("deadly twice", (Page(0, deadly=True), Page(1)), seeds=(0, 1), workers=1, size=2, poison=2),
        Scenario(
            "deadly pages",
            (Page(0, deadly=True), Page(1, deadly=True), Page(2)),
            seeds=(0, 1, 2),
            workers=1,
            size=2,
            poison=1,
        ),
        # Nobody is deadly: what dies or freezes is chance.
        Scenario("innocent", (Page(0), Page(1)), seeds=(0, 1), size=2, poison=1, kinds=DEATHS),
        Scenario("innocent twice", (Page(0), Page(1)), seeds=(0, 1), workers=1, size=2, poison=2, kinds=DEATHS),
        # A page that hangs its worker past its lease: the worker comes back each time, and says so.
        Scenario("stunning page", (Page(0, stunning=True), Page(1)), seeds=(0, 1), workers=1, size=2, poison=1),
        Scenario(
            "deadly robots",
            (Page(0), Page(1)),
            seeds=(0, 1),
            workers=1,
            size=2,
            robots=frozenset({0}),
            deadly_robots=True,
            poison=1,
            fail_limit=1,
            rest_limit=1,
        ),
        # A domain that is given up while URLs of it wait, are parked and are held; one that rests first.
        Scenario(
            "failing domain",
            (Page(0, (), FLAKY), Page(0, (), (OK, RETRY)), Page(0), Page(0)),
            seeds=(0, 1, 2, 3),
            workers=1,
            window=2,
            size=3,
            fail_limit=1,
        ),
        Scenario(
            "resting domain",
            (Page(0, (2,), FLAKY), Page(0, (), FLAKY), Page(0, (), FLAKY)),
            seeds=(0, 1),
            workers=1,
            window=2,
            size=2,
            fail_limit=1,
            rest_limit=1,
        ),
        # Sites that never answer otherwise: without a limit such a URL is parked and promoted for ever.
        Scenario("always later", (Page(0, (), (DEFER,)), Page(0, (), (DEFER, FAIL))), seeds=(0, 1), fail_limit=2, rest_limit=1),
        Scenario("deferrals", (Page(0, (), (DEFER,)), Page(0, (), (OK, DEFER))), seeds=(0, 1), deferrals=2),
        # The frontier's other verbs: any URL may be the best, any may be shed.
        Scenario("ranked", (Page(0), Page(0), Page(0)), seeds=(0, 1, 2), workers=1, size=2, ranked=True),
        Scenario("shed", (Page(0, (2,)), Page(0), Page(1)), seeds=(0, 1), sheds=2, ranked=True),
        # A worker leaves while it holds URLs, and may come back.
        Scenario("release", (Page(0, (1,), (OK, RETRY)), Page(0)), release=True, poison=1),
        Scenario("lonely release", (Page(0, (), (OK, RETRY)), Page(0)), seeds=(0, 1), workers=1, size=2, release=True, poison=1),
        Scenario("release in budget", (Page(0, (), (OK, RETRY)),), release=True, budgets=(Budget(bytes=2),)),
        # A crawl that ended is resumed with more room; one that runs is, by an operator who is wrong about its workers.
        Scenario(
            "resumed",
            (Page(0, (1,)), Page(0), Page(1)),
            seeds=(0, 2),
            budgets=(Budget(pages=1), Budget(pages=2)),
        ),
        Scenario(
            "resumed bytes",
            (Page(0, (1,), FLAKY), Page(0)),
            robots=frozenset({0}),
            budgets=(Budget(bytes=2), Budget(bytes=4)),
        ),
        Scenario("stopped robots", (Page(0),), robots=frozenset({0}), stop=True, budgets=(Budget(), Budget())),
        Scenario("impatient", (Page(0, (1,)), Page(0)), budgets=(Budget(),) * 3, impatient=True, poison=1),
        # Most of it in one: what is safe by itself must be so beside the rest.
        Scenario(
            "all at once",
            (Page(0, (), (OK, FAIL, RETRY, DEFER)), Page(0, deadly=True)),
            seeds=(0, 1),
            workers=1,
            window=2,
            size=2,
            robots=frozenset({0}),
            budgets=(Budget(bytes=4), Budget(bytes=6)),
            impatient=True,
            stop=True,
            poison=1,
            fail_limit=2,
            rest_limit=1,
            deferrals=1,
            sheds=1,
        ),
    )
}

# The faults per run: what a plain run explores, what --full adds (some seven minutes), and --deep (some twelve more).
QUICK: dict[str, tuple[int, ...]] = {
    "links": (0, 1),
    "cold start": (0,),
    "late worker": (1, 2),
    "kills only": (3,),
    "bands": (1,),
    "two frontiers": (0,),
    "crowded": (1, 2),
    "full owner": (1,),
    "retry": (1,),
    "defer": (1,),
    "stopped": (1,),
    "robots": (1,),
    "wide robots": (1,),
    "twins": (1,),
    "changing twins": (1,),
    "twins in budget": (1,),
    "page budget": (1,),
    "byte budget": (1,),
    "bytes at the door": (0,),
    "bytes for retries": (1,),
    "late robots": (2,),
    "deadly page": (1,),
    "deadly twice": (0,),
    "deadly pages": (0,),
    "innocent": (1,),
    "innocent twice": (1,),
    "stunning page": (0,),
    "deadly robots": (0,),
    "failing domain": (0,),
    "resting domain": (1,),
    "always later": (1,),
    "deferrals": (0,),
    "ranked": (1,),
    "shed": (0,),
    "release": (0,),
    "lonely release": (0,),
    "release in budget": (0,),
    "resumed": (0,),
    "resumed bytes": (0,),
    "stopped robots": (0,),
    "impatient": (0,),
}
FULL: dict[str, tuple[int, ...]] = {
    "four pages": (1,),
    "cold start": (1,),
    "late worker": (3,),
    "bands": (2,),
    "two frontiers": (1,),
    "crowded": (3,),
    "twins": (2,),
    "changing twins": (2,),
    "page budget": (2,),
    "byte budget": (2,),
    "bytes at the door": (1,),
    "deadly page": (2,),
    "deadly twice": (1,),
    "innocent twice": (2,),
    "stunning page": (1,),
    "deadly robots": (1,),
    "failing domain": (1,),
    "resting domain": (2,),
    "always later": (2,),
    "deferrals": (1,),
    "ranked": (2,),
    "shed": (1,),
    "release": (1,),
    "lonely release": (1,),
    "release in budget": (1,),
    "resumed": (1,),
    "resumed bytes": (1,),
    "stopped robots": (1,),
    "impatient": (1,),
    "all at once": (0,),
}
DEEP: dict[str, tuple[int, ...]] = {
    "links": (2,),
    "full owner": (2,),
    "retry": (2,),
    "defer": (2,),
    "stopped": (2,),
    "robots": (2,),
    "wide robots": (2,),
    "twins": (3,),
    "bytes for retries": (2,),
    "deadly pages": (1,),
}
