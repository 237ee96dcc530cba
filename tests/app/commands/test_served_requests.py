"""The last requests of `warren tunnel`."""

from __future__ import annotations

from warrenmq.app.commands.served_requests import (
    MAX_BYTES,
    MAX_REQUESTS,
    SHOWN_BYTES,
    Served,
    ServedRequests,
    shown,
)


def served(body: bytes = b"") -> Served:
    return Served(b"POST /x HTTP/1.1\r\n\r\n" + body, b"", 200, 1.0)


def test_the_last_are_kept() -> None:
    requests = ServedRequests()
    numbers = [requests.add(served()) for _ in range(MAX_REQUESTS + 1)]
    assert [requests.get(number) is None for number in numbers[:2]] == [True, False]
    assert requests.lines()[-1] == f"{numbers[-1]}  POST /x  200  1 ms"
    last = requests.add(served(b"x" * MAX_BYTES))
    assert [requests.get(last) is None, len(requests.lines())] == [False, 1]


def test_what_is_shown_of_a_body() -> None:
    assert shown(b"HTTP/1.1 204 No Content\r\nA: b\r\n\r\n") == [
        "HTTP/1.1 204 No Content", "A: b", "",
    ]  # fmt: skip
    assert shown(b"a\r\n\r\n\xff\x00")[-1] == "(2 bytes that are no text)"
    *_, text, rest = shown(b"a\r\n\r\n" + b"x" + "ü".encode() * SHOWN_BYTES)
    assert text == "x" + "ü" * ((SHOWN_BYTES - 1) // 2)
    assert rest == f"({SHOWN_BYTES + 1} more bytes)"
