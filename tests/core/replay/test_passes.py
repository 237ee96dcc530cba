"""Ways through what an exchange has kept, against a list."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warrenmq.core.replay import passes as module
from warrenmq.core.replay.passes import WINDOW, passes
from warrenmq.core.route.persistence import ReplayRequest


def taken(wanted: ReplayRequest, first: int, matches: list[bool]) -> tuple[list[int], int]:
    """What is handed on, and how many messages were looked at for it."""
    end = first + len(matches)
    found: list[int] = []
    looked = 0
    for one in passes(wanted, first, end, None):
        for offset in range(one.start, min(one.stop, end)):
            looked += 1
            if not matches[offset - first] or not one.left:
                continue
            if one.offsets is not None:
                one.offsets.append(offset)
            elif one.skip:
                one.skip -= 1
            else:
                one.left -= 1
                found.append(offset)
    return found, looked


def expected(wanted: ReplayRequest, first: int, matches: list[bool]) -> list[int]:
    wanted_ones = [first + at for at, match in enumerate(matches) if match]
    count = len(wanted_ones)
    if wanted.head is not None:
        return wanted_ones[: wanted.head if wanted.head >= 0 else max(0, count + wanted.head)]
    if wanted.tail is not None:
        skipped = count - wanted.tail if wanted.tail >= 0 else -wanted.tail
        return wanted_ones[max(0, skipped) :]
    since = wanted.since or 0
    since = since if first <= since <= first + len(matches) else first
    return [offset for offset in wanted_ones if offset >= since]


@pytest.fixture(scope="module", autouse=True)
def _small_windows() -> object:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "WINDOW", 3)
        yield


@given(
    st.lists(st.booleans(), max_size=20),
    st.integers(0, 5),
    st.one_of(
        st.builds(ReplayRequest, head=st.integers(-25, 25)),
        st.builds(ReplayRequest, tail=st.integers(-25, 25)),
        st.builds(ReplayRequest, since=st.integers(0, 30)),
    ),
)
def test_passes_against_a_list(matches: list[bool], first: int, wanted: ReplayRequest) -> None:
    assert taken(wanted, first, matches)[0] == expected(wanted, first, matches)


@pytest.mark.parametrize("count", [2**63, -(2**63), 2**31])
@pytest.mark.parametrize("place", ["head", "tail"])
def test_numbers_of_any_size(place: str, count: int) -> None:
    wanted = ReplayRequest(**{place: count})
    assert taken(wanted, 0, [True] * 10)[0] == expected(wanted, 0, [True] * 10)


def test_the_last_of_a_long_past_are_found_from_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "WINDOW", WINDOW)
    found, looked = taken(ReplayRequest(tail=10), 0, [True] * 50_000)
    assert (len(found), found[-1]) == (10, 49_999)
    assert looked <= 2 * WINDOW
    every_hundredth = [not at % 100 for at in range(50_000)]
    found, looked = taken(ReplayRequest(tail=10), 0, every_hundredth)
    assert len(found) == 10
    assert looked <= 8 * WINDOW
