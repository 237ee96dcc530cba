"""The head of a response goes out with its body."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from warrenmq.app.http.joined_writes import MAX_JOINED_BYTES, JoinedWrites

HEAD = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n"
ENDLESS = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
LARGE = bytes(MAX_JOINED_BYTES + 1)


class Transport:
    def __init__(self) -> None:
        self.calls: list[bytes] = []

    def write(self, data: bytes) -> None:
        self.calls.append(data)

    def close(self) -> None:
        self.calls.append(b"closed")


@pytest.mark.parametrize(
    ("given", "written"),
    [
        ([HEAD, b"ok", b"more"], [HEAD + b"ok", b"more"]),
        ([HEAD, b""], [HEAD]),
        ([HEAD, LARGE], [HEAD, LARGE]),
        ([ENDLESS, b"2\r\nok\r\n"], [ENDLESS, b"2\r\nok\r\n"]),
        ([HEAD], [HEAD]),
    ],
)
def test_a_head_with_a_length_is_written_with_its_body(
    given: list[bytes], written: list[bytes]
) -> None:
    transport = Transport()
    joined = JoinedWrites(cast(asyncio.Transport, transport))
    for data in given:
        joined.write(data)
    joined.close()
    assert transport.calls == [*written, b"closed"]
