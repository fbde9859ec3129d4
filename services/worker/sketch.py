"""Sketch: a page's main text in a kilobyte, so that the ledger can tell how alike two pages are without either of them.

Two pages are as alike as their sets of shingles (five words in a row) overlap: their Jaccard index. A signature estimates it
without bias: the shingles are dealt by their hashes into 256 bins, the least of each bin is kept, and two pages agree in as many
places as they are alike (one-permutation MinHash; Li, Owen and Zhang, 2012), with a standard error of 0.02 at 0.9. A bin that
nothing fell into takes the value of another, chosen by its own number alone (Shrivastava, 2017), so that short pages compare as
well.

Signatures are compared across processes, machines and restarts: nothing here may depend on any of them, nor on Python's `hash`.
Knows: texts and numbers. Must not know: where signatures are kept, or what becomes of pages that are alike.
"""

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from typing import Final

import numpy as np
from numpy.typing import NDArray

SHINGLE_WORDS: Final = 5
#: Of fewer no estimate is worth much: such pages are twins only if they are equal.
SHINGLES_MIN: Final = 50

BIN_BITS: Final = 8
BINS: Final = 1 << BIN_BITS

#: How many twins that are just alike enough the bands may miss, and how many of them a page is entered under.
MISSED_MAX: Final = 0.001
BANDS_MAX: Final = 16
#: Of pages that are half alike, as those in one template are, one in four then shares a band. More rows would need more bands.
ROWS_WANTED: Final = 5
BAND_KEY_BYTES: Final = 8

#: Of a text that is hashed at once.
PIECE_BYTES: Final = 1 << 16

Hashes = NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Sketch:
    signature: bytes = b""  #: 256 values of four bytes; empty for a page that is too short to be compared
    bands: tuple[bytes, ...] = ()  #: keys, of which two pages that are alike enough share one, nearly for certain


class Sketcher:
    """Sketches texts that are to be compared at one threshold."""

    def __init__(self, threshold: float) -> None:
        self._banding = banding(threshold)

    def __call__(self, text: str) -> Sketch:
        words = word_hashes(text)
        if len(words) < SHINGLES_MIN + SHINGLE_WORDS - 1:
            return _TOO_SHORT
        shingles = np.sort(_shingles(words))
        if 1 + np.count_nonzero(shingles[1:] != shingles[:-1]) < SHINGLES_MIN:
            return _TOO_SHORT
        signature = _signature(shingles).tobytes()
        return Sketch(signature, self._banding.keys(signature))


@dataclass(frozen=True, slots=True)
class Banding:
    """A signature cut into `bands` keys of `rows` values each: pages that share a key are compared."""

    bands: int
    rows: int

    def keys(self, signature: bytes) -> tuple[bytes, ...]:
        """Each begins with its number, so that only like is found under like."""
        size = self.rows * _VALUE.itemsize
        return tuple(
            bytes([band]) + blake2b(signature[band * size : (band + 1) * size], digest_size=BAND_KEY_BYTES).digest()
            for band in range(self.bands)
        )


@lru_cache
def banding(threshold: float) -> Banding:
    """Few bands, since the ledger keeps a row for each, with which hardly a twin is missed and few pages are compared in vain.

    Two pages that are `threshold` alike share a band of r values with a chance of threshold^r. It is made for 0.8 and above: below
    that the rows become so short that many pages share a key, of which the ledger looks at the newest alone.
    """
    if threshold >= 1:
        return Banding(1, BINS)
    fitting = [Banding(bands, rows) for rows in range(1, BINS + 1) if (bands := _bands_for(threshold, rows)) <= BANDS_MAX]
    telling = [each for each in fitting if each.rows >= ROWS_WANTED]
    return telling[0] if telling else fitting[-1] if fitting else Banding(BANDS_MAX, 1)


def _bands_for(threshold: float, rows: int) -> int:
    """How many bands of so many rows miss no more than is allowed."""
    shared = threshold**rows
    return BINS + 1 if shared < 1 / BINS else math.ceil(math.log(MISSED_MAX) / math.log1p(-shared))


def word_hashes(text: str) -> Hashes:
    """One for each word in lower case, in order. Scripts that put no blanks between words have each character for one.

    A word never becomes an object: the text is hashed as a whole, as a polynomial of its bytes, and a word's hash is what the
    polynomial gains along it, taken back to where all words begin.
    """
    encoded = _encoded(text.lower())
    if _MAYBE_UNSPACED(encoded):
        encoded = _encoded(_UNSPACED(_spaced, text.lower()))
    return np.concatenate([_hashes(np.frombuffer(piece, np.uint8)) for piece in _pieces(encoded)])


def _encoded(text: str) -> bytes:
    """With one kind of blank, and one at either end."""
    return f" {text} ".replace("\xa0", " ").encode(errors="replace").translate(_BLANKS)


def _pieces(text: bytes) -> Iterator[bytes]:
    """Cut at blanks, as long as words are shorter than pieces; each has one at either end."""
    start = 0
    while len(text) - start > PIECE_BYTES:
        end = text.rfind(b" ", start, start + PIECE_BYTES)
        end = end if end > start else start + PIECE_BYTES - 1
        yield text[start : end + 1]
        start = end
    yield text[start:]


def _hashes(text: NDArray[np.uint8]) -> Hashes:
    is_letter = text != _BLANK
    blanks = np.flatnonzero(~is_letter)
    sums: Hashes = np.cumsum(_POWERS[: len(text)] * text * is_letter, dtype=np.uint64)
    at = sums[blanks]
    words = (at[1:] - at[:-1]) * _BACK[blanks[:-1]]
    return words[np.diff(blanks) > 1]


#: Thai, Lao, Burmese, Khmer; kana; Chinese characters and their extensions. In runs: one at a time takes ten times as long.
_UNSPACED: Final = re.compile(
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]++"
).sub
#: The first bytes of these in UTF-8, and of little else that is common: to look for the characters themselves takes longer than all
#: the rest.
_MAYBE_UNSPACED: Final = re.compile(rb"[\xe0\xe1\xe3-\xe9\xef\xf0]").search


def _spaced(run: re.Match[str]) -> str:
    return f" {' '.join(run[0])} "


def _shingles(words: Hashes) -> Hashes:
    """A hash for each five words in a row."""
    count = len(words) - SHINGLE_WORDS + 1
    mixed = words[:count] * _FACTORS[0]
    for place in range(1, SHINGLE_WORDS):
        mixed += words[place : place + count] * _FACTORS[place]
    return _mixed(mixed)


def _mixed(values: Hashes) -> Hashes:
    """Spreads every bit over all of them (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _signature(shingles: Hashes) -> NDArray[np.uint32]:
    """Of shingles in order: the first bits are the bin, so the first shingle at or behind a bin's beginning is the least of it."""
    first = np.searchsorted(shingles, _BIN_STARTS)
    least = shingles[np.minimum(first, len(shingles) - 1)]
    filled = (least >> _BIN_SHIFT == _BIN_NUMBERS) & (first < len(shingles))
    values = least.astype(_VALUE)  # its last bits
    empty = np.flatnonzero(~filled)
    if len(empty):
        others = _OTHER_BINS[empty]
        values[empty] = values[others[np.arange(len(empty)), filled[others].argmax(axis=1)]]
    return values


_TOO_SHORT: Final = Sketch()
_BLANK: Final = np.uint8(ord(" "))
_BLANKS: Final = bytes.maketrans(b"\t\n\v\f\r\x1c\x1d\x1e\x1f", b" " * 9)
#: Of an odd number at random, and of what undoes it, modulo 2^64.
_BASE: Final = 0x9E3779B97F4A7C15
_POWERS: Final[Hashes] = np.cumprod(np.full(PIECE_BYTES, _BASE, np.uint64), dtype=np.uint64)
_BACK: Final[Hashes] = np.cumprod(np.full(PIECE_BYTES, pow(_BASE, -1, 1 << 64), np.uint64), dtype=np.uint64)
_VALUE: Final = np.dtype("<u4")
_BIN_SHIFT: Final = np.uint64(64 - BIN_BITS)
_BIN_NUMBERS: Final = np.arange(BINS, dtype=np.uint64)
_BIN_STARTS: Final = _BIN_NUMBERS << _BIN_SHIFT
#: Odd numbers at random, one for each place of a word, so that the order of words counts.
_FACTORS: Final = _mixed(np.arange(1, SHINGLE_WORDS + 1, dtype=np.uint64)) | np.uint64(1)
#: For each bin all of them in an order of its own: an empty one takes the value of the first that is not.
_OTHER_BINS: Final = _mixed(np.arange(BINS * BINS, dtype=np.uint64) + np.uint64(BINS)).reshape(BINS, BINS).argsort(axis=1)
