"""How many hubs a message has passed (`X-Hub-Hops`); the rest stands in routes/test_publish.py."""

from __future__ import annotations

import pytest

from warrenmq.app.problems import Problem
from warrenmq.app.requests.properties import MAX_HOPS_VALUE, read


def hops(*values: bytes, max_hops: int = 20) -> object:
    headers = [(b"x-hub-hops", value) for value in values]
    return (read(b"", headers, "", max_hops).properties.headers or {}).get("x-hub-hops")


def test_each_hub_adds_one() -> None:
    assert hops() is None
    assert (hops(b"0"), hops(b"7"), hops(b"19")) == (1, 8, 20)
    assert hops(b"3", b"0") == hops(b"0", b"3") == 4


def test_the_limit_ends_a_loop() -> None:
    for value, limit in ((b"20", 20), (b"1", 1), (b"2147483646", 20)):
        with pytest.raises(Problem) as caught:
            hops(value, max_hops=limit)
        assert (caught.value.status, caught.value.title) == (508, "Loop Detected")
        assert f"passed {value.decode()} hubs and max_hops is {limit}" in caught.value.detail
        assert caught.value.members == {
            "field": "X-Hub-Hops", "value": value.decode(), "limit": str(limit),
        }  # fmt: skip


@pytest.mark.parametrize("value", [b"", b"-1", b"1.5", b"x", b"\xff", b"2147483647", b"9" * 30])
def test_invalid_hops_are_refused(value: bytes) -> None:
    with pytest.raises(Problem) as caught:
        hops(value)
    assert caught.value.status == 400
    assert "x-hub-hops" in caught.value.detail.lower()


def test_the_largest_is_an_amqp_integer() -> None:
    assert hops(str(MAX_HOPS_VALUE).encode(), max_hops=2**31) == 2**31 - 1


def test_a_message_header_of_the_name_does_not_count_instead() -> None:
    headers = [(b"x-amqp-header-x-hub-hops", b"0"), (b"x-hub-hops", b"5")]
    assert (read(b"", headers).properties.headers or {})["x-hub-hops"] == 6
    given = read(b"", headers[:1]).properties.headers
    assert given == {"x-hub-hops": "0"}  # a string, which is no number of hops to anybody
