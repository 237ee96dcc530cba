"""What filters may be, and that a misspelt one is never no filter."""

from __future__ import annotations

from typing import Any

import pytest

from warrenmq.app.problems import Problem
from warrenmq.app.routes.api.filters import Filters


def given(value: Any) -> Filters:
    return Filters({"key": value}, ("key",))


def test_absent_filters_are_none() -> None:
    for empty in (Filters({}, ("key",)), given(None)):
        assert not empty
        assert (empty.text("key"), empty.word("key", ()), empty.names("key")) == (None,) * 3
        assert (empty.number("key", 1, 2), empty.seconds("key")) == (None, None)


def test_filters_are_read_by_their_types() -> None:
    assert given("a") and given("a").text("key") == "a"
    assert given("a").word("key", ("a", "b")) == "a"
    assert given(["a", "b", "a"]).names("key") == frozenset("ab")
    assert given("7").number("key", 1, 7) == given(7).number("key", 7, 8) == 7
    assert given("1.5").seconds("key") == given(1.5).seconds("key") == 1.5
    assert given(0).seconds("key") == 0


@pytest.mark.parametrize(
    ("method", "arguments", "value"),
    [
        ("text", (), 1), ("text", (), ["a"]), ("word", (["a"],), "b"), ("word", (["a"],), ["a"]),
        ("names", (), "a"), ("names", (), ["a", 1]), ("number", (1, 7), "8"), ("number", (1, 7), 0),
        ("number", (1, 7), True), ("number", (1, 7), 2.0), ("number", (1, 7), "²"),
        ("number", (1, 7), "9" * 5_000), ("seconds", (), "soon"), ("seconds", (), -1),
        ("seconds", (), True), ("seconds", (), "nan"), ("seconds", (), 10**400),
        ("seconds", (), {}),
    ],
)  # fmt: skip
def test_bad_values_are_refused(method: str, arguments: tuple[Any, ...], value: Any) -> None:
    with pytest.raises(Problem, match="^'key' is .*, it has to be ") as caught:
        getattr(given(value), method)("key", *arguments)
    assert caught.value.status == 400
    assert len(str(caught.value)) < 200


def test_unknown_filters_are_refused() -> None:
    with pytest.raises(Problem, match="^unknown filter 'kye'; known: key, other$"):
        Filters({"kye": 1}, ("key", "other"))
