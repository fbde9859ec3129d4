"""Webs that are arrays: who links to whom, which site a page is on. Made from a seed, or read from files of documentation.

A page's in-links are heavy-tailed on two levels, as the web's are: some sites are linked to far more than others, and within a site
some pages far more than the rest.
"""

import posixpath
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.parse import unquote, urldefrag

import numpy as np
from numpy.typing import NDArray
from selectolax.lexbor import LexborHTMLParser


@dataclass(frozen=True, slots=True)
class Web:
    """Pages 0, 1, 2 … with their sites and their links."""

    name: str
    site: NDArray[np.int32]
    links: Sequence[NDArray[np.int32]]
    seeds: Sequence[int]

    def __len__(self) -> int:
        return len(self.links)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """What a generated web is like."""

    name: str
    seed: int
    sizes: float  #: how unequal sites are: the standard deviation of the logarithm of their sizes
    popular: float  #: how unequally they are linked to: the exponent of their popularity by rank
    local: float  #: the share of links that stay on their site
    within: float  #: how unequally pages of one site are linked to: as `popular`
    links: float  #: of a page, on average


PAGES: Final = 50_000
SITES: Final = 500
SEEDS: Final = 10
SHAPES: Final = (
    Shape(name="even sites, much linked inside", seed=1, sizes=0.5, popular=0.7, local=0.85, within=0.8, links=15),
    Shape(name="a few large sites", seed=2, sizes=1.2, popular=0.9, local=0.75, within=0.7, links=12),
    Shape(name="many links across", seed=3, sizes=0.9, popular=1.0, local=0.5, within=0.9, links=20),
)


def generate(shape: Shape, pages: int = PAGES, sites: int = SITES) -> Web:
    rng = np.random.default_rng(shape.seed)
    first = _first_pages(rng, shape, pages, sites)
    sizes = np.diff(np.append(first, pages))
    site = np.repeat(np.arange(sites, dtype=np.int32), sizes)
    by_popularity = rng.permutation(sites)
    out: list[NDArray[np.int32]] = []
    counts = np.minimum(rng.geometric(1 / shape.links, pages), 200)
    for page in range(pages):
        own = site[page]
        count = int(counts[page])
        inside = int(rng.binomial(count, shape.local))
        across = by_popularity[_by_rank(rng, shape.popular, np.full(count - inside, sites))]
        targets = np.concatenate([np.full(inside, own), across])
        out.append((first[targets] + _by_rank(rng, shape.within, sizes[targets])).astype(np.int32))
    # Whatever chance left out: every page is linked from an earlier one of its site, every home from another site's page.
    found: list[list[int]] = [[] for _ in range(pages)]
    for page in range(pages):
        home = int(first[site[page]])
        if page > home:
            found[int(rng.integers(home, page))].append(page)
        elif page:
            found[int(rng.integers(0, page))].append(page)
    links = [np.unique(np.append(to, more).astype(np.int32)) for to, more in zip(out, found, strict=True)]
    links = [to[to != page] for page, to in enumerate(links)]
    seeds = [0, *(int(first[each]) for each in rng.choice(np.arange(1, sites), SEEDS - 1, replace=False))]
    return Web(shape.name, site, links, seeds)


def from_files(root: Path, name: str, seed: str) -> Web:
    """The pages under a folder, linked as they are, on one host, as documentation is served."""
    paths = sorted(str(path.relative_to(root)) for path in root.rglob("*.html") if path.is_file())
    number = {path: at for at, path in enumerate(paths)}
    links = []
    for page, path in enumerate(paths):
        hrefs = (each.attributes.get("href") for each in LexborHTMLParser((root / path).read_bytes()).css("a[href]"))
        targets = {_target(path, href) for href in hrefs if href}
        to = {number[target] for target in targets if target in number} - {page}
        links.append(np.array(sorted(to), np.int32))
    return Web(name, np.zeros(len(paths), np.int32), links, [number[seed]])


def _first_pages(rng: np.random.Generator, shape: Shape, pages: int, sites: int) -> NDArray[np.int64]:
    """Where each site begins."""
    weights = rng.lognormal(0, shape.sizes, sites)
    sizes = np.maximum((weights / weights.sum() * pages).astype(np.int64), 2)
    sizes[int(np.argmax(sizes))] += pages - sizes.sum()
    first: NDArray[np.int64] = np.cumsum(sizes) - sizes
    return first


def _by_rank(rng: np.random.Generator, exponent: float, sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """A place below each size, the first likelier: the k-th about k to the power of minus `exponent`."""
    even = rng.random(len(sizes))
    if exponent >= 1:
        return np.minimum((sizes**even).astype(np.int64), sizes) - 1
    return np.minimum((sizes * even ** (1 / (1 - exponent))).astype(np.int64), sizes - 1)


def _target(path: str, href: str) -> str:
    href = unquote(urldefrag(href)[0])
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), href)) if href and ":" not in href else ""
