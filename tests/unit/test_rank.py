"""The live rank: a graph that grows and forgets, and priorities by quantiles of what waits."""

import random
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from scipy import sparse

from gossamer.ids import UrlId
from gossamer.messages import Url
from gossamer.records import UNRANKED
from services.frontier.bands import BandTable
from services.frontier.rank.graph import DAMPING, Graph
from services.frontier.rank.nodes import UNKNOWN, Nodes, as_ids
from services.frontier.rank.quantiles import cuts, priorities
from services.frontier.rank.ranks import Ranks

#: Pages, each with the URLs that it links to; all are numbers below 30.
webs = st.lists(
    st.tuples(st.integers(0, 29), st.lists(st.integers(0, 29), max_size=8)), max_size=30, unique_by=lambda page: page[0]
)


def id_of(number: int) -> UrlId:
    return UrlId(random.Random(number).randbytes(16))


def packed(pages: Sequence[tuple[int, Sequence[int]]]) -> list[tuple[UrlId, bytes]]:
    return [(id_of(page), b"".join(map(id_of, links))) for page, links in pages]


def exact(pages: Sequence[tuple[int, Sequence[int]]], known: Sequence[int]) -> NDArray[np.float64]:
    """PageRank as the books have it, of the numbers that are known: pages without links link to all."""
    place = {number: at for at, number in enumerate(known)}
    steps = np.zeros((len(known), len(known)))
    for page, links in pages:
        for to in set(links) - {page}:
            steps[place[to], place[page]] = 1 / len(set(links) - {page})
    steps[:, steps.sum(axis=0) == 0] = 1 / len(known)
    worth = np.full(len(known), 1 / len(known))
    for _ in range(200):
        worth = DAMPING * (sparse.csr_array(steps) @ worth) + (1 - DAMPING) / len(known)
    return worth


def known_to(pages: Sequence[tuple[int, Sequence[int]]]) -> list[int]:
    return list(dict.fromkeys(number for page, links in pages for number in (page, *links)))


def worth(graph: Graph, numbers: Sequence[int]) -> NDArray[np.float64]:
    return graph.worth_of(graph.nodes.find(as_ids(b"".join(map(id_of, numbers)))))


# --- Ids ---


@given(st.lists(st.lists(st.integers(0, 50), max_size=20), max_size=8))
def test_a_url_has_one_place_for_life(batches: list[list[int]]) -> None:
    nodes = Nodes()
    places: dict[int, int] = {}
    for batch in batches:
        for number, place in zip(batch, nodes.enter(as_ids(b"".join(map(id_of, batch)))).tolist(), strict=True):
            assert places.setdefault(number, place) == place
    assert sorted(places.values()) == list(range(len(nodes)))
    assert nodes.ids(np.array(list(places.values()), np.int32)) == [id_of(number) for number in places]
    assert nodes.find(as_ids(id_of(99))).tolist() == [UNKNOWN]


# --- The graph ---


@given(webs.filter(bool), st.integers(1, 5))
def test_worth_is_the_pagerank_of_the_links_seen_so_far(pages: list[tuple[int, list[int]]], at_once: int) -> None:
    graph, known = Graph(), known_to(pages)
    for start in range(0, len(pages), at_once):
        graph.add(packed(pages[start : start + at_once]))

    found = worth(graph, known)

    assert found.min() >= 1
    assert np.allclose(found / found.sum(), exact(pages, known), rtol=0.25)  # each may be owed a little


@given(webs.filter(bool), st.randoms(use_true_random=False))
def test_whoever_reads_the_links_anew_comes_to_the_same(pages: list[tuple[int, list[int]]], rng: random.Random) -> None:
    grown, rebuilt, known = Graph(), Graph(), known_to(pages)
    for page in pages:
        grown.add(packed([page]))
    rebuilt.add(packed(rng.sample(pages, len(pages))))
    assert np.allclose(worth(grown, known), worth(rebuilt, known), rtol=0.25)


@given(webs.filter(bool))
def test_a_page_that_comes_twice_counts_once(pages: list[tuple[int, list[int]]]) -> None:
    once, twice, together = Graph(), Graph(), Graph()
    once.add(packed(pages))
    twice.add(packed(pages))
    twice.add(packed(pages))
    together.add(packed([*pages, *pages[::-1]]))
    for graph in (twice, together):
        assert (len(graph), graph.links) == (len(once), once.links)
        assert np.allclose(worth(graph, known_to(pages)), worth(once, known_to(pages)), rtol=0.25)


def test_what_more_pages_link_to_is_worth_more() -> None:
    graph = Graph()
    graph.add(packed([(page, [10, 10 + page]) for page in range(1, 6)]))
    ten, eleven, one = worth(graph, [10, 11, 1])
    assert ten > eleven > one == 1


def test_what_a_page_says_of_itself_counts_for_nothing() -> None:
    graph = Graph()
    graph.add(packed([(1, [1, 1, 2])]))
    assert worth(graph, [1, 2]).tolist() == [1, 1 + DAMPING]


def test_past_the_limit_the_links_of_the_first_pages_are_forgotten_and_what_they_gave_stays() -> None:
    graph, whole = Graph(links_max=40), Graph()
    pages = [(page, [100 + page, 200 + page]) for page in range(60)]
    for start in range(0, 60, 10):
        graph.add(packed(pages[start : start + 10]))
        assert graph.links <= 40
    whole.add(packed(pages))
    assert np.allclose(worth(graph, known_to(pages)), worth(whole, known_to(pages)))
    assert whole.size_bytes > 0


def test_past_the_limit_the_least_worthy_urls_are_forgotten() -> None:
    graph = Graph(urls_max=40)
    graph.add(packed([(page, [100, 101]) for page in range(8)]))  # 100 and 101 are worth most
    kept = graph.add(packed([(200, list(range(300, 340)))]))

    assert kept is not None
    assert len(graph) == kept.sum() == 30
    assert not (graph.nodes.find(as_ids(id_of(100) + id_of(101))) == UNKNOWN).any()
    before = worth(graph, [100])[0]
    graph.add(packed([(400, [100])]))
    assert worth(graph, [100])[0] == pytest.approx(before + DAMPING)


@settings(deadline=None)
@given(webs, st.integers(5, 20), st.integers(5, 40))
def test_a_graph_that_forgets_stays_whole(pages: list[tuple[int, list[int]]], urls_max: int, links_max: int) -> None:
    ranks = Ranks(Graph(urls_max=urls_max, links_max=links_max))
    for page in pages:
        ranks.add(packed([page]))
        assert len(ranks.graph) <= urls_max
        assert ranks.graph.links <= links_max
        assert np.isfinite(ranks.graph.worth).all()
        assert len(ranks.told(np.arange(len(ranks.graph)))) == len(ranks.graph)


# --- Quantiles ---

worths = st.lists(st.floats(1, 1e6), min_size=1, max_size=300).map(np.array)


@given(worths)
def test_more_worth_is_never_a_worse_priority(found: NDArray[np.float64]) -> None:
    given = priorities(found, cuts(found))
    order = np.argsort(-found, kind="stable")
    assert (np.diff(given[order].astype(int)) >= 0).all()
    assert 0 <= given.min() <= given.max() <= 99
    assert priorities(np.array([0.5]), cuts(found)).tolist() == [100], "worth less than all"


def test_all_bands_are_used_however_unevenly_worth_is_spread() -> None:
    found = np.random.default_rng(1).pareto(0.7, 20_000) + 1
    table = BandTable(10)
    bands = np.array([table.band(int(each)) for each in priorities(found, cuts(found))])
    shares = np.bincount(bands) / len(found)
    assert np.allclose(shares, [((band + 1) ** 3 - band**3) / 1000 for band in range(10)], atol=0.001)


# --- Ranks ---


def url(number: int, *, depth: int = 1, hop: int = 0, parent: int | None = None, domain: str = "a.example") -> Url:
    return Url(id_of(number), f"http://{domain}/{number}", domain, depth, hop, None if parent is None else id_of(parent))


def ranked() -> Ranks:
    """Ten pages link to 100, nine to 101, and so on."""
    ranks = Ranks()
    ranks.add(packed([(page, [100 + k for k in range(10 - page)]) for page in range(10)]))
    ranks.cuts = cuts(ranks.graph.worth[ranks.open()])
    return ranks


def test_before_anything_is_known_seeds_are_best_and_nobody_else_is_ranked() -> None:
    assert Ranks().rank([url(1, depth=0), url(2)]) == [0, UNRANKED]


def test_a_url_gets_the_priority_of_its_worth() -> None:
    found = ranked().rank([url(100 + k) for k in range(10)])
    assert found == sorted(found)
    assert found[0] < found[-1] == 99


def test_a_redirects_target_is_worth_what_led_to_it() -> None:
    ranks = ranked()
    assert ranks.rank([url(500, hop=1, parent=100)]) == ranks.rank([url(100)])


def test_what_no_link_leads_to_is_taken_as_its_host_is() -> None:
    ranks = ranked()
    ranks.rank([url(100, domain="best.example"), url(109, domain="worst.example")])  # hosts are learnt from hints
    ranks.hosts.sum_up(ranks.graph.worth)
    best, worst, nowhere = ranks.rank([url(500 + k, domain=f"{name}.example") for k, name in enumerate(("best", "worst", "no"))])
    assert best < worst
    assert nowhere == UNRANKED
    assert list(ranks.hosts.best(1)) == ["best.example"]
