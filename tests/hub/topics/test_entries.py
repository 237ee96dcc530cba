from __future__ import annotations

from itertools import permutations

import pytest

from warrenmq.hub.topics.entries import MAX_KNOWN, FeedEntry, changed, digest_of, merged


def entry(name: str, digest: str = "d") -> FeedEntry:
    return FeedEntry(name, digest)


def test_new_and_changed_entries() -> None:
    entries = [entry("a"), entry("b"), entry("c")]
    known = merged({}, entries[:2])
    assert changed(entries, known) == [False, False, True]
    assert changed([entry("a", "other")], known) == [True]


def test_an_older_content_is_a_change() -> None:
    known = merged(merged({}, [entry("a", "1")]), [entry("a", "2")])
    assert changed([entry("a", "1")], known) == [True]


@pytest.mark.parametrize("moved", list(permutations("123")))
def test_entries_of_one_name_may_move(moved: tuple[str, ...]) -> None:
    known = merged({}, [entry("a", digest) for digest in "123"])
    assert changed([entry("a", digest) for digest in moved], known) == [False] * 3
    later = [entry("a", "new"), *(entry("a", digest) for digest in moved[:2])]
    assert changed(later, known) == [True, False, False]


def test_a_second_entry_with_the_same_name() -> None:
    known = merged({}, [entry("a", "1")])
    assert changed([entry("a", "2"), entry("a", "1")], known) == [True, False]


def test_the_number_of_known_digests_is_limited() -> None:
    entries = [entry(str(number)) for number in range(MAX_KNOWN)]
    known = merged({}, entries)
    known = merged(known, entries[:1])  # seen again
    known = merged(known, [entry("new")])
    first, second, new = map(digest_of, ("0", "1", "new"))
    assert len(known) == MAX_KNOWN
    assert first in known and new in known and second not in known


def test_several_of_one_name_count_as_several() -> None:
    many = [entry("a", str(number)) for number in range(MAX_KNOWN - 1)]
    known = merged(merged({}, [entry("old"), entry("kept")]), many)
    assert list(known) == [digest_of("kept"), digest_of("a")]


def test_digests_are_of_parts_and_not_of_their_sum() -> None:
    assert digest_of("ab", "c") != digest_of("a", "bc")
    assert len(digest_of("\ud800")) == 16
