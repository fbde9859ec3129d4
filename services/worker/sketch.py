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
from functools import lru_cache
from hashlib import blake2b
from typing import Final

import msgspec
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
Shingles = NDArray[np.uint32]


class Sketch(msgspec.Struct, frozen=True):
    signature: bytes = b""  #: 256 values of four bytes; empty for a page that is too short to be compared
    bands: tuple[bytes, ...] = ()  #: keys, of which two pages that are alike enough share one, nearly for certain


#: Of a page that is too short to be compared, or that nobody wants to compare.
NO_SKETCH: Final = Sketch()


class Sketcher:
    """Sketches texts that are to be compared at one threshold."""

    def __init__(self, threshold: float) -> None:
        self._banding = banding(threshold)

    def __call__(self, text: str) -> Sketch:
        words = word_hashes(text)
        if len(words) < SHINGLES_MIN + SHINGLE_WORDS - 1:
            return NO_SKETCH
        shingles = _shingles(words)
        signature = _signature(shingles)
        # As many shingles as bins that hold one of their own, at least: only where these are few must the shingles be counted.
        if np.count_nonzero(signature >> _BIN_SHIFT == _BIN_NUMBERS) < SHINGLES_MIN and len(set(shingles.tolist())) < SHINGLES_MIN:
            return NO_SKETCH
        told = signature.astype(_VALUE).tobytes()
        return Sketch(told, self._banding.keys(told))


class Banding(msgspec.Struct, frozen=True):
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
    try:
        latin = text.encode("latin-1")
    except UnicodeEncodeError:
        encoded = _encoded(text.lower())
        if _MAYBE_UNSPACED(encoded):
            encoded = _encoded(re.sub(_UNSPACED, _spaced, text.lower()))
    else:
        # Python keeps such a text in this form, so this takes half as long.
        encoded = b"\0%b\0" % latin.translate(_LOWER).decode("latin-1").encode()
    hashes = [_hashes(np.frombuffer(piece, np.uint8)) for piece in _pieces(encoded)]
    return hashes[0] if len(hashes) == 1 else np.concatenate(hashes)


def _encoded(text: str) -> bytes:
    """With zeros for blanks, which so count for nothing, and one at either end."""
    return f" {text} ".replace("\xa0", " ").encode(errors="replace").translate(_BLANKS)


def _pieces(text: bytes) -> Iterator[bytes]:
    """Cut at blanks, as long as words are shorter than pieces; each has one at either end."""
    start = 0
    while len(text) - start > PIECE_BYTES:
        end = text.rfind(b"\0", start, start + PIECE_BYTES)
        end = end if end > start else start + PIECE_BYTES - 1
        yield text[start : end + 1]
        start = end
    yield text[start:]


def _hashes(text: NDArray[np.uint8]) -> Hashes:
    blanks = (text == 0).nonzero()[0]
    sums: Hashes = (_POWERS[: len(text)] * text).cumsum(dtype=np.uint64)
    at = sums[blanks]
    words = (at[1:] - at[:-1]) * _BACK[blanks[:-1]]
    told: Hashes = words[blanks[1:] - blanks[:-1] > 1]
    return told


#: Thai, Lao, Burmese, Khmer; kana; Chinese characters and their extensions. In runs: one at a time takes ten times as long.
#: Compiled when the first of them comes: it takes longer than any other expression, and many crawls meet none.
_UNSPACED: Final = (
    "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]++"
)
#: The first bytes of these in UTF-8, and of little else that is common: to look for the characters themselves takes longer than all
#: the rest.
_MAYBE_UNSPACED: Final = re.compile(rb"[\xe0\xe1\xe3-\xe9\xef\xf0]").search


def _spaced(run: re.Match[str]) -> str:
    return f" {' '.join(run[0])} "


def _shingles(words: Hashes) -> Shingles:
    """A hash for each five words in a row: the upper half of a sum that depends on their order, with all its bits stirred."""
    sums: Hashes = np.correlate(words, _FACTORS, "valid")
    sums ^= sums >> _HALF
    sums *= _STIR
    return (sums >> _HALF).astype(np.uint32)


def _signature(shingles: Shingles) -> Shingles:
    """The least of each bin, or what stands in for it; a shingle's first bits are its bin."""
    values = np.full(BINS, _EMPTY)
    np.minimum.at(values, shingles >> _BIN_SHIFT, shingles)
    empty = (values == _EMPTY).nonzero()[0]
    if len(empty):
        found = _first_of(values[_SOME_OTHER_BINS[empty]])
        values[empty] = found if np.count_nonzero(found == _EMPTY) == 0 else _first_of(values[_OTHER_BINS[empty]])
    return values


def _first_of(others: Shingles) -> Shingles:
    """In each row the first that is not empty, if there is one."""
    first: Shingles = others[np.arange(len(others)), (others != _EMPTY).argmax(axis=1)]
    return first


def _mixed(values: Hashes) -> Hashes:
    """Spreads every bit over all of them (the finaliser of SplitMix64)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


_BLANK_BYTES: Final = b" \t\n\v\f\r\x1c\x1d\x1e\x1f"
_BLANKS: Final = bytes.maketrans(_BLANK_BYTES, bytes(len(_BLANK_BYTES)))
#: In latin-1, with zeros for blanks. Python's own lower case of these characters, which is always one of them.
_LOWER: Final = bytes(0 if byte in _BLANK_BYTES or byte == 0xA0 else chr(byte).lower().encode("latin-1")[0] for byte in range(256))
#: Of an odd number at random, and of what undoes it, modulo 2^64.
_BASE: Final = 0x9E3779B97F4A7C15
_POWERS: Final[Hashes] = np.cumprod(np.full(PIECE_BYTES, _BASE, np.uint64), dtype=np.uint64)
_BACK: Final[Hashes] = np.cumprod(np.full(PIECE_BYTES, pow(_BASE, -1, 1 << 64), np.uint64), dtype=np.uint64)
_VALUE: Final = np.dtype("<u4")
_HALF: Final = np.uint64(32)
#: An odd number at random.
_STIR: Final = np.uint64(0x94D049BB133111EB)
_BIN_SHIFT: Final = np.uint32(32 - BIN_BITS)
_BIN_NUMBERS: Final = np.arange(BINS, dtype=np.uint32)
#: Of a bin that nothing fell into. Should something have just this value, the bin counts as empty.
_EMPTY: Final = np.uint32(0xFFFF_FFFF)
#: Odd numbers at random, one for each place of a word, so that the order of words counts.
_FACTORS: Final = _mixed(np.arange(1, SHINGLE_WORDS + 1, dtype=np.uint64)) | np.uint64(1)
#: For each bin all of them in an order of its own: an empty one takes the value of the first that is not.
_OTHER_BINS: Final = (
    _mixed(np.arange(BINS * BINS, dtype=np.uint64) + np.uint64(BINS)).reshape(BINS, BINS).argsort(axis=1).astype(np.uint8)
)
#: Nearly always enough, and then a sixteenth of the work.
_SOME_OTHER_BINS: Final = _OTHER_BINS[:, :16].copy()
