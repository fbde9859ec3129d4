"""Pairs of pages whose similarity is known: realistic text in the frames that sites put around it.

The truth is counted, not estimated: the Jaccard index of the sets of five words in a row of the two *articles*. What the site says
on every page is not part of it.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

SHINGLE_WORDS: Final = 5


@dataclass(frozen=True, slots=True)
class Pair:
    one: str  #: a page's markup
    other: str
    truth: float  #: how alike the two articles are


class Writer:
    """Writes texts as people do: a few words all the time, most of them seldom, sentences of different lengths."""

    def __init__(self, rng: random.Random) -> None:
        self.rng = rng
        syllables = [f"{a}{b}" for a in "bdfgklmnprstvw" for b in ("a", "e", "i", "o", "u", "en", "or", "is")]
        self._vocabulary = ["".join(rng.choices(syllables, k=rng.choice((1, 1, 2, 2, 2, 3, 3, 4)))) for _ in range(8_000)]
        self._weights = [1 / (rank + 3) for rank in range(len(self._vocabulary))]  # Zipf's law

    def words(self, count: int) -> list[str]:
        """With the capitals and full stops of sentences."""
        words = self.rng.choices(self._vocabulary, self._weights, k=count)
        at = 0
        while at < count:
            end = min(at + self.rng.randrange(5, 25), count)
            words[at] = words[at].capitalize()
            words[end - 1] += "."
            at = end
        return words

    def edited(self, words: list[str], edits: int) -> list[str]:
        """As a later version of it would be: words replaced, sentences taken out, moved or put in."""
        words = list(words)
        for _ in range(edits):
            at = self.rng.randrange(len(words))
            match self.rng.randrange(6):
                case 0:
                    del words[at : at + self.rng.randrange(1, 4)]
                case 1:
                    words[at:at] = self.words(self.rng.randrange(1, 6))
                case _:
                    words[at] = self.words(1)[0]
        return words


def similarity(one: list[str], other: list[str]) -> float:
    """The Jaccard index of their shingles, by counting."""
    ours, theirs = shingles(one), shingles(other)
    return len(ours & theirs) / len(ours | theirs)


def shingles(words: list[str]) -> set[tuple[str, ...]]:
    folded = [word.lower() for word in words]
    return {tuple(folded[at : at + SHINGLE_WORDS]) for at in range(len(folded) - SHINGLE_WORDS + 1)}


Frame = Callable[[str, list[str]], str]  #: from a title and an article's words to a page


def frame(writer: Writer, words: int, *, marked: bool = True) -> Frame:
    """A site's template of so many words. `marked`: with the elements or ids that say what is what, as most sites have them."""
    rng = writer.rng
    menu, teasers, legal = (writer.words(max(words * share // 10, 1)) for share in (3, 4, 3))
    links = "".join(
        f'<li><a href="/{rng.randrange(10**6)}">{" ".join(menu[at : at + 2])}</a></li>\n' for at in range(0, len(menu), 2)
    )
    side = "".join(f"<h3>{teasers[at]}</h3><p>{' '.join(teasers[at : at + 12])}</p>\n" for at in range(0, len(teasers), 12))
    foot = f"<p>{' '.join(legal)}</p>"
    if not marked:
        parts = (f"<div><ul>{links}</ul></div>", f"<div>{side}</div>", f"<div>{foot}</div>")
    elif rng.random() < 0.7:
        parts = (f"<header><nav><ul>{links}</ul></nav></header>", f"<aside>{side}</aside>", f"<footer>{foot}</footer>")
    else:
        parts = (
            f'<div id="header"><ul role="navigation">{links}</ul></div>',
            f'<div class="wide sidebar">{side}</div>',
            f'<div role="contentinfo">{foot}</div>',
        )

    def page(title: str, article: list[str]) -> str:
        paragraphs = "".join(f"<p>{' '.join(article[at : at + 60])}</p>\n" for at in range(0, len(article), 60))
        return (
            f"<!doctype html><html><head><title>{title}</title></head><body>\n{parts[0]}\n"
            f"<div class=content>{paragraphs}</div>\n{parts[1]}\n{parts[2]}</body></html>"
        )

    return page


def pairs(seed: int, count: int, low: float, high: float, *, marked: bool = True) -> Iterator[Pair]:
    """Pairs in one frame each, whose articles are between `low` and `high` alike and hold at least a quarter of its words."""
    writer = Writer(random.Random(f"pairs {seed} {low} {high}"))
    rng = writer.rng
    found = 0
    while found < count:
        in_frame = rng.randrange(200, 1_200)
        article = writer.words(rng.randrange(max(in_frame // 4, 120), 1_500))
        # Each edit costs some five shingles of each page: from that the number that is about right.
        wanted = rng.uniform(low, high)
        other = writer.edited(article, round(len(article) * (1 - wanted) / (1 + wanted) / SHINGLE_WORDS * rng.uniform(0.7, 1.3)))
        truth = similarity(article, other)
        if not low <= truth <= high:
            continue
        found += 1
        page = frame(writer, in_frame, marked=marked)
        yield Pair(page("one", article), page("other", other), truth)
