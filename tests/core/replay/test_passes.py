"""The scans of a replay, against a list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.replay import passes as module
from warrenmq.core.replay.passes import WINDOW, passes
from warrenmq.core.route.persistence import ReplayRequest


def taken(request: ReplayRequest, first: int, matches: list[bool]) -> tuple[list[int], int]:
    """Returns the offsets published, and the number of messages scanned."""
    end = first + len(matches)
    found: list[int] = []
    scanned = 0
    for one in passes(request, first, end, None):
        for offset in range(one.start, min(one.stop, end)):
            scanned += 1
            if not matches[offset - first] or not one.left:
                continue
            if one.offsets is not None:
                one.offsets.append(offset)
            elif one.skip:
                one.skip -= 1
            else:
                one.left -= 1
                found.append(offset)
    return found, scanned


def expected(request: ReplayRequest, first: int, matches: list[bool]) -> list[int]:
    matching = [first + at for at, match in enumerate(matches) if match]
    count = len(matching)
    if request.head is not None:
        return matching[: request.head if request.head >= 0 else max(0, count + request.head)]
    if request.tail is not None:
        skipped = count - request.tail if request.tail >= 0 else -request.tail
        return matching[max(0, skipped) :]
    since = request.since or 0
    since = since if first <= since <= first + len(matches) else first
    return [offset for offset in matching if offset >= since]


@pytest.fixture(scope="module", autouse=True)
def _small_windows() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WINDOW", 3)
        yield


@given(
    st.lists(st.booleans(), max_size=20),
    st.integers(0, 5),
    st.one_of(
        st.integers(-25, 25).map(lambda number: ReplayRequest(head=number)),
        st.integers(-25, 25).map(lambda number: ReplayRequest(tail=number)),
        st.integers(0, 30).map(lambda number: ReplayRequest(since=number)),
    ),
)
def test_passes_against_a_list(matches: list[bool], first: int, request: ReplayRequest) -> None:
    assert taken(request, first, matches)[0] == expected(request, first, matches)


@pytest.mark.parametrize("count", [2**63, -(2**63), 2**31])
@pytest.mark.parametrize("place", ["head", "tail"])
def test_numbers_of_any_size(place: str, count: int) -> None:
    request = ReplayRequest(**{place: count})
    assert taken(request, 0, [True] * 10)[0] == expected(request, 0, [True] * 10)


def test_the_last_messages_are_searched_from_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOW", WINDOW)
    found, scanned = taken(ReplayRequest(tail=10), 0, [True] * 50_000)
    assert (len(found), found[-1]) == (10, 49_999)
    assert scanned <= 2 * WINDOW
    every_hundredth = [not at % 100 for at in range(50_000)]
    found, scanned = taken(ReplayRequest(tail=10), 0, every_hundredth)
    assert len(found) == 10
    assert scanned <= 8 * WINDOW
