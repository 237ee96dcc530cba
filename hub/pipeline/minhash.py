"""Finds which texts may be alike, by MinHash: all texts of a batch at once, in columns.

The share of permutations in which two sets of shingles have the same lowest one is about their
Jaccard similarity. Of 64 permutations, four each make a bucket: texts that are 70 % alike share one
of the sixteen with a probability of 98.8 %, texts that are 20 % alike with one of 2.5 %.
"""

from __future__ import annotations

from hashlib import blake2b, shake_256
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from .chunk_format import ranges

SHINGLE_WORDS: Final = 3
BANDS: Final = 16
BAND_ROWS: Final = 4
_NO_WORD: Final = r"[^\p{L}\p{M}\p{N}]+"

Hashes = NDArray[np.uint64]
Numbers = NDArray[np.int64]


def _random(name: str, count: int) -> Hashes:
    """Returns numbers that are the same everywhere: executors compare what others have computed."""
    return np.frombuffer(shake_256(name.encode()).digest(8 * count), "<u8").astype(np.uint64)


_ONE: Final = np.uint64(1)
_PLACES: Final = _random("places", SHINGLE_WORDS) | _ONE
_FACTORS: Final = _random("factors", BANDS * BAND_ROWS) | _ONE
_TERMS: Final = _random("terms", BANDS * BAND_ROWS)
_ROWS: Final = (_random("rows", BAND_ROWS) | _ONE).reshape(BAND_ROWS, 1)


def shingles(texts: pa.Array) -> pa.LargeListArray:
    """Returns the hashes of each text's shingles: three words in a row, whatever their case, each
    shingle once and in order. A text of fewer words is one shingle, one without words has none."""
    parts = pc.split_pattern_regex(pc.utf8_lower(pc.fill_null(texts, "")), _NO_WORD)
    texts_of, words = pc.list_parent_indices(parts), pc.list_flatten(parts)
    is_word = pc.not_equal(words, "")
    hashes = _hashes(words.filter(is_word))
    counts = np.bincount(texts_of.filter(is_word).to_numpy(), minlength=len(texts))
    return _distinct(*_shingles(hashes, counts))


def _hashes(words: pa.Array) -> Hashes:
    encoded = words.dictionary_encode()
    found = [
        int.from_bytes(blake2b(word.encode(), digest_size=8).digest())
        for word in encoded.dictionary.to_pylist()
    ]
    values: Hashes = np.array(found, np.uint64)[encoded.indices.to_numpy()]
    return values


def _shingles(words: Hashes, counts: Numbers) -> tuple[Hashes, Numbers]:
    """Returns the hashes of all shingles, with repeats, and how many each text has."""
    many = np.where(counts, np.maximum(counts - SHINGLE_WORDS + 1, 1), 0)
    ends = np.repeat(np.cumsum(counts), many)
    at = ranges(np.cumsum(counts) - counts, many)
    padded = np.append(words, np.zeros(SHINGLE_WORDS, np.uint64))
    found = np.zeros(len(at), np.uint64)
    for place, factor in enumerate(_PLACES):
        found += np.where(at + place < ends, padded[at + place] * factor, np.uint64(0))
    return _mixed(found), many


def _distinct(hashes: Hashes, counts: Numbers) -> pa.LargeListArray:
    texts_of = np.repeat(np.arange(len(counts)), counts)
    order = np.lexsort((hashes, texts_of))
    hashes, texts_of = hashes[order], texts_of[order]
    is_first = np.ones(len(hashes), bool)
    is_first[1:] = (hashes[1:] != hashes[:-1]) | (texts_of[1:] != texts_of[:-1])
    bounds = np.append(0, np.cumsum(np.bincount(texts_of[is_first], minlength=len(counts))))
    return pa.LargeListArray.from_arrays(
        pa.array(bounds, pa.int64()), pa.array(hashes[is_first].view(np.int64))
    )


def buckets(found: pa.LargeListArray) -> NDArray[np.int64]:
    """Returns the sixteen buckets of each text, a row each. Every text must have shingles."""
    bounds = found.offsets.to_numpy()
    hashes = found.values.to_numpy().view(np.uint64)
    lowest = np.empty((BANDS * BAND_ROWS, len(found)), np.uint64)
    for number, (factor, term) in enumerate(zip(_FACTORS, _TERMS, strict=True)):
        lowest[number] = np.minimum.reduceat(hashes * factor + term, bounds[:-1])
    bands = (lowest.reshape(BANDS, BAND_ROWS, -1) * _ROWS).sum(axis=1, dtype=np.uint64)
    return _mixed(bands + np.arange(BANDS, dtype=np.uint64)[:, None]).T.view(np.int64)


def candidates(found: Numbers, neighbours: int) -> tuple[Numbers, Numbers]:
    """Returns pairs of rows of `buckets` that share one, each once: the earlier rows, and the later
    ones. In each bucket a row is paired with up to `neighbours` before it."""
    # Each bucket's rows together, in their order.
    order = np.argsort(found, axis=None, kind="stable")
    rows, sorted_buckets = order // BANDS, found.ravel()[order]
    at = np.arange(len(rows))
    pairs: list[NDArray[Any]] = [np.empty(0, np.int64)]
    for distance in range(1, neighbours + 1):
        at = at[at >= distance]
        at = at[sorted_buckets[at] == sorted_buckets[at - distance]]
        if not len(at):
            break
        pairs.append(np.unique(rows[at - distance] * len(found) + rows[at]))
    return np.divmod(np.unique(np.concatenate(pairs)), max(1, len(found)))


def _mixed(values: Hashes) -> Hashes:
    """Returns MurmurHash3's finalizer of the values: each bit depends on all others."""
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xFF51AFD7ED558CCD)
    values = (values ^ (values >> np.uint64(33))) * np.uint64(0xC4CEB9FE1A85EC53)
    return values ^ (values >> np.uint64(33))
