"""How alike two pages are, as their signatures tell it: against counting, against another library, and on other machines."""

import hashlib
import math
import os
import random
import subprocess
import sys
import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from datasketch import MinHash
from hypothesis import given, settings
from hypothesis import strategies as st

from adapters.embedded.verbs.content import agreement
from bench.pairs import Pair, Writer, frame, pairs, shingles, similarity
from services.worker.parse import parse
from services.worker.sketch import BANDS_MAX, BINS, MISSED_MAX, SHINGLES_MIN, Banding, Sketch, Sketcher, banding, word_hashes

THRESHOLD = 0.9
#: Their standard errors at 0.8 to 1, some 0.02, times six.
ERROR_MAX = 0.12

sketch = Sketcher(THRESHOLD)


def of_page(html: str) -> Sketch:
    return sketch(parse(html).main)


def estimate(one: Sketch, other: Sketch) -> float:
    return agreement(one.signature, other.signature)


def is_dropped(one: Sketch, other: Sketch) -> bool:
    """As a ledger decides it: they share a band, and their signatures say that they are alike enough."""
    return not set(one.bands).isdisjoint(other.bands) and estimate(one, other) >= THRESHOLD


def dropped(found: list[Pair]) -> float:
    return sum(is_dropped(of_page(each.one), of_page(each.other)) for each in found) / len(found)


# --- Against the truth ------------------------------------------------------------------------------------------------


def test_pages_that_are_alike_are_dropped_and_others_are_not() -> None:
    assert dropped(list(pairs(1, 300, 0.95, 1.0))) >= 0.995
    assert dropped(list(pairs(1, 300, 0.0, 0.80))) == 0
    assert dropped(list(pairs(1, 300, 0.70, 0.80))) <= 0.004  # one of them, where chance has it closest


def test_the_estimate_is_as_good_as_that_of_a_library_for_it() -> None:
    """datasketch, with as many values: both miss the truth by as much, and neither to one side."""
    writer = Writer(random.Random(7))
    ours, theirs = [], []
    for edits in range(1, 121):
        words = writer.words(500)
        other = writer.edited(words, 1 + edits // 4)
        truth = similarity(words, other)
        ours.append(estimate(sketch(" ".join(words)), sketch(" ".join(other))) - truth)
        theirs.append(oracle(words).jaccard(oracle(other)) - truth)

    assert math.sqrt(np.mean(np.square(ours))) <= 1.25 * math.sqrt(np.mean(np.square(theirs)))
    assert abs(np.mean(ours)) <= 0.006  # three standard errors of a mean of 120
    assert max(map(abs, ours)) <= ERROR_MAX


def oracle(words: list[str]) -> MinHash:
    found = MinHash(num_perm=BINS)
    found.update_batch([" ".join(each).encode() for each in shingles(words)])
    return found


@pytest.mark.parametrize("words", [54, 80, 120])
def test_short_pages_are_compared_as_well(words: int) -> None:
    writer = Writer(random.Random(words))
    errors = []
    for _ in range(100):
        text = writer.words(words)
        other = writer.edited(text, 1)
        if len(other) >= 54 and len(shingles(text)) >= SHINGLES_MIN <= len(shingles(other)):
            errors.append(estimate(sketch(" ".join(text)), sketch(" ".join(other))) - similarity(text, other))

    assert len(errors) > 30
    assert abs(np.mean(errors)) <= 0.02
    assert max(map(abs, errors)) <= ERROR_MAX


# --- Templates --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("marked", [True, False])
def test_two_articles_in_one_template_are_not_alike(marked: bool) -> None:
    """Not even in one that has four times their words and says nowhere what it is."""
    writer = Writer(random.Random(3))
    for _ in range(30):
        page = frame(writer, 800, marked=marked)
        one, other = (of_page(page("an article", writer.words(200))) for _ in range(2))
        assert estimate(one, other) < 0.8
        assert not is_dropped(one, other)


@pytest.mark.parametrize(("article", "template", "marked"), [(400, 300, True), (400, 1_200, True), (4_000, 100, False)])
def test_an_article_in_two_templates_is_alike_when_it_outweighs_them(article: int, template: int, marked: bool) -> None:
    """One that is marked as such weighs nothing."""
    writer = Writer(random.Random(4))
    for _ in range(10):
        words = writer.words(article)
        one, other = (of_page(frame(writer, template, marked=marked)("an article", words)) for _ in range(2))
        assert is_dropped(one, other)


# --- Equal everywhere -------------------------------------------------------------------------------------------------

TEXT = " ".join(f"word{number * number % 97}" for number in range(300))
#: If this changes, crawls can't be resumed by the new version: their pages were entered under the old signatures.
DIGEST = "b9b9efb8119a93a0b30a78eea5135d8918f43b60c8fd6e83df0b4ded53cabf66"


def digest(found: Sketch) -> str:
    return hashlib.sha256(found.signature + b"".join(found.bands)).hexdigest()


def test_a_signature_is_the_same_in_every_version() -> None:
    assert digest(sketch(TEXT)) == DIGEST


def test_a_signature_is_the_same_in_every_process() -> None:
    """Whatever that one's `hash` begins with."""
    program = (
        "from tests.unit.test_sketch import TEXT, digest\nfrom services.worker.sketch import Sketcher\n"
        "print(digest(Sketcher(0.9)(TEXT)), hash('a'))"
    )
    environ = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": "."}
    root = Path(__file__).parents[2]
    told = subprocess.run([sys.executable, "-c", program], cwd=root, env=environ, capture_output=True, text=True, check=True)

    found, hashed = told.stdout.split()
    assert found == digest(sketch(TEXT))
    assert hashed != str(hash("a"))


def test_what_was_sketched_before_makes_no_difference() -> None:
    fresh = Sketcher(THRESHOLD)
    for number in range(60):
        fresh(" ".join(f"new{number}x{word}" for word in range(1_000)))  # more words than are remembered

    assert fresh(TEXT) == sketch(TEXT)


def test_words_as_long_as_a_page_are_not_remembered() -> None:
    fresh = Sketcher(THRESHOLD)
    tracemalloc.start()
    for number in range(100):
        fresh(" ".join(f"{number}x{word}".ljust(5_000, "x") for word in range(60)))
    left_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()

    assert left_bytes < 3_000_000, "of 30 MB that were read"


# --- Bands ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("threshold", [0.5, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99])
def test_the_bands_miss_hardly_a_twin(threshold: float) -> None:
    bands = banding(threshold)

    assert (1 - threshold**bands.rows) ** bands.bands <= MISSED_MAX
    assert bands.bands <= BANDS_MAX
    assert bands.bands * bands.rows <= BINS


def test_the_bands_for_the_default() -> None:
    assert banding(0.9) == Banding(bands=8, rows=5)


def test_at_one_only_equal_signatures_share_a_band() -> None:
    assert banding(1.0) == Banding(bands=1, rows=BINS)


def test_a_threshold_that_is_near_nothing_has_bands_too() -> None:
    assert banding(0.0001) == Banding(bands=BANDS_MAX, rows=1)


# --- What is not compared ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="nothing"),
        pytest.param(" ".join(map(str, range(53))), id="49 shingles"),
        pytest.param("the same five words again " * 500, id="five shingles, many times"),
    ],
)
def test_a_page_of_fewer_than_fifty_shingles_has_no_signature(text: str) -> None:
    assert sketch(text) == Sketch()


def test_a_page_of_fifty_shingles_has_one() -> None:
    found = sketch(" ".join(map(str, range(54))))

    assert len(found.signature) == 4 * BINS
    assert len(found.bands) == 8


def test_case_and_white_space_make_no_difference() -> None:
    assert sketch(TEXT.upper().replace(" ", "\n\t")) == sketch(TEXT)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        pytest.param("Two Words", ["two", "words"], id="with blanks"),
        pytest.param("网页a网b", ["网", "页", "a", "网", "b"], id="without, and with others among them"),
        pytest.param("été 𠀀𠀁", ["été", "𠀀", "𠀁"], id="beyond sixteen bits"),
    ],
)
def test_what_a_word_is(text: str, words: list[str]) -> None:
    assert word_hashes(text).tolist() == [hash for word in words for hash in word_hashes(word).tolist()]
    assert len(set(word_hashes(text).tolist())) == len(set(words))


def test_scripts_without_blanks_are_compared_by_character() -> None:
    text = "".join(chr(0x4E00 + number * number % 997) for number in range(300))

    assert estimate(sketch(text), sketch(text[:150] + "网" + text[150:])) > THRESHOLD
    assert estimate(sketch(text), sketch(text[::-1])) < 0.1


@given(st.text(max_size=2_000) | st.lists(st.sampled_from("abcdefgh"), min_size=54, max_size=400).map(" ".join))
@settings(deadline=None)
def test_every_text_has_a_sketch_and_is_its_own_twin(text: str) -> None:
    found = sketch(text)

    assert found == sketch(text)
    assert not found.signature or is_dropped(found, found)
