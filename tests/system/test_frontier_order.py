"""The order of a crawl's pages, on small webs: the frontier as it runs, in simulated time, against others.

`make bench-frontier` measures it on large ones; here it is the safe side.
"""

from dataclasses import replace

import pytest

from bench import orders
from bench.webgraphs import SHAPES, Shape, generate
from services.frontier.prioritizers.constant import Constant
from services.frontier.prioritizers.pagerank import Pagerank

PAGES, SITES, FETCHED = 4_000, 60, 400
#: In each of four workers. With more downloads at once than hosts there would be no choice between hosts.
PARALLEL = 1


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_pagerank_collects_nearly_what_exact_greedy_does_and_more_than_chance(shape: Shape) -> None:
    web = generate(replace(shape, seed=shape.seed + 100), PAGES, SITES)
    worth = orders.true_pagerank(web)
    greedy = worth[orders.greedy(web, FETCHED)].sum()
    ours = orders.as_it_runs(web, FETCHED, Pagerank(), parallel=PARALLEL)
    assert len(set(ours.tolist())) == FETCHED, "each page once"
    assert worth[ours].sum() >= 0.7 * greedy, "which has no manners: on a web of few sites that is worth a lot"
    assert worth[ours].sum() > worth[orders.as_it_runs(web, FETCHED, Constant(), parallel=PARALLEL)].sum()
