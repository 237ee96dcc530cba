"""Texts become shingles, and texts that are alike share a bucket."""

from __future__ import annotations

import random

import numpy as np
import pyarrow as pa
import pytest

from warrenmq.hub.pipeline.minhash import buckets, candidates, shingles


def shingle_sets(*texts: str | None) -> list[set[int]]:
    return [set(one) for one in shingles(pa.array(texts, pa.string())).to_pylist()]


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("one two three four", 2),
        ("a b c a b c", 3),
        ("one two three", 1),
        ("one two", 1),
        ("one", 1),
        (" -- ... ", 0),
        ("", 0),
        (None, 0),
    ],
)
def test_a_shingle_is_three_words_and_counts_once(text: str | None, count: int) -> None:
    """Between two others, for shingles do not reach into the next text."""
    before, found, behind = shingle_sets("x y z", text, "x y z")
    assert len(found) == count
    assert before == behind and not before & found


@pytest.mark.parametrize(
    ("text", "other", "is_same"),
    [
        ("The quick, brown fox.", "the QUICK brown   fox", True),
        ("Ärger mit Größe 7", "ärger - mit größe (7)", True),
        ("one two three", "three two one", False),
        ("one two", "two one", False),
    ],
)
def test_case_and_punctuation_do_not_matter_but_order_does(
    text: str, other: str, is_same: bool
) -> None:
    first, second = shingle_sets(text, other)
    assert (first == second) == is_same


def test_all_texts_have_the_same_shingles_in_any_batch() -> None:
    texts = pa.array(["w x y z", "a b c d", "e f g"])
    whole = shingles(texts).to_pylist()
    assert [shingles(texts.slice(at, 1)).to_pylist()[0] for at in range(3)] == whole


def test_texts_that_are_alike_share_a_bucket() -> None:
    chance = random.Random(1)
    words = [str(number) for number in range(5000)]
    texts = [chance.choices(words, k=60) for _ in range(400)]
    # Two words of sixty belong to six shingles of 58: they are 81 % alike.
    alike = [[*text[:20], "new", *text[21:40], "new", *text[41:]] for text in texts]
    found = buckets(shingles(pa.array([" ".join(text) for text in texts + alike])))
    assert found.shape == (800, 16)
    shared = [bool(set(found[at]) & set(found[400 + at])) for at in range(400)]
    strange = [bool(set(found[at]) & set(found[at + 1])) for at in range(399)]
    assert sum(shared) >= 0.95 * 400 and sum(strange) == 0


@pytest.mark.parametrize("neighbours", [1, 3, 50])
def test_rows_are_paired_with_those_before_them_in_each_bucket(neighbours: int) -> None:
    chance = random.Random(1)
    rows = [[chance.randrange(20) for _ in range(16)] for _ in range(60)]
    found: dict[int, list[int]] = {}
    for row, numbers in enumerate(rows):
        for number in numbers:
            found.setdefault(number, []).append(row)
    pairs = {
        (first, second)
        for members in found.values()
        for at, second in enumerate(members)
        for first in members[max(0, at - neighbours) : at]
    }
    first, second = candidates(np.array(rows), neighbours)
    assert sorted(zip(first.tolist(), second.tolist(), strict=True)) == sorted(pairs)
