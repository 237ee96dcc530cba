"""Texts as long as entries of feeds, some of which are nearly the same."""

from __future__ import annotations

import random

WORDS = 60
MOST_CHANGED = 5
_SHINGLE = 3


def near_copies(
    count: int, share: int, seed: int
) -> tuple[list[str], dict[tuple[int, int], float]]:
    """Returns texts, and by the numbers of two of them how alike these are: one text in `share` is
    a copy of an earlier one, with one to five words that are new. All others differ."""
    chance = random.Random(seed)
    texts: list[list[str]] = []
    alike: dict[tuple[int, int], float] = {}
    originals = iter(range(count))
    for number in range(count):
        if number % share != share - 1:
            texts.append([f"word{chance.randrange(5_000)}" for _ in range(WORDS)])
            continue
        original = next(one for one in originals if one % share != share - 1)
        copy = list(texts[original])
        for place in chance.sample(range(WORDS), 1 + original % MOST_CHANGED):
            copy[place] = f"new{number}"
        texts.append(copy)
        alike[original, number] = similarity(texts[original], copy)
    return [" ".join(text) for text in texts], alike


def similarity(first: list[str], second: list[str]) -> float:
    """Returns the Jaccard similarity of what three words in a row there are."""
    one, other = _shingles(first), _shingles(second)
    return len(one & other) / len(one | other)


def _shingles(words: list[str]) -> set[tuple[str, ...]]:
    return set(zip(*(words[at:] for at in range(_SHINGLE)), strict=False))
