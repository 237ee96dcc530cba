"""Round trips of the small records."""

from __future__ import annotations

from array import array

from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.store import small_records as entries
from warrenmq.core.store.record_index import RecordIndex

numbers = st.integers(0, 2**64 - 1)
ranges = st.lists(numbers, max_size=6).map(lambda found: array("Q", found[: len(found) // 2 * 2]))


@given(st.dictionaries(numbers, ranges, max_size=5))
def test_settled_ranges(held: dict[int, array[int]]) -> None:
    assert dict(entries.read_settled(memoryview(entries.encode_settled(held)))) == held


@given(st.dictionaries(numbers, numbers, max_size=5))
def test_marks(marks: dict[int, int]) -> None:
    assert dict(entries.read_marks(memoryview(entries.encode_marks(marks)))) == marks


@given(st.binary(max_size=70_000), st.none() | st.binary())
def test_definitions(key: bytes, value: bytes | None) -> None:
    key = key[:65_535]
    body = memoryview(entries.encode_definition(key, value))
    assert entries.read_definition(body) == (key, value)


@given(numbers)
def test_numbers(number: int) -> None:
    assert entries.read_number(memoryview(entries.encode_number(number))) == number


@given(st.dictionaries(numbers, st.lists(st.tuples(*[numbers] * 3), min_size=1), max_size=5))
def test_indexes(held: dict[int, list[tuple[int, int, int]]]) -> None:
    indexes = {
        queue: RecordIndex(array("Q", [number for row in rows for number in row]))
        for queue, rows in held.items()
    }
    body = memoryview(b"".join(entries.encode_indexes(indexes.items())))
    for queue, index in indexes.items():
        assert entries.IndexTable(body).index(queue).numbers == index.numbers
    unknown = next(number for number in range(6) if number not in indexes)
    assert len(entries.IndexTable(body).index(unknown)) == 0
