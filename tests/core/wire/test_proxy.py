"""Headers of the PROXY protocol."""

from __future__ import annotations

import socket

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.proxy import LOCAL, V2_START, v1, v2
from warrenmq.core.wire.proxy import (
    V1_MAX_BYTES,
    V2_MAX_BYTES,
    ProxyHeaderError,
    Relayed,
    missing_bytes,
    read_header,
)

FOUR = Relayed(("192.0.2.7", 50_000), ("198.51.100.1", 5672))
SIX = Relayed(("2001:db8::7", 50_000), ("2001:db8::1", 5672))
TCP4 = socket.inet_aton("192.0.2.7") + socket.inet_aton("198.51.100.1") + b"\xc3\x50\x16\x28"
UNKNOWN = Relayed()


def read(sent: bytes, step: int = 1_000) -> tuple[Relayed | None, bytes]:
    """Returns the addresses in a header and the bytes after it, read in small pieces."""
    head, rest = b"", sent
    while more := missing_bytes(head):
        take = min(more, step)
        assert rest, "it wants more than belongs to the header"
        head, rest = head + rest[:take], rest[take:]
    return read_header(head), rest


GOOD = {
    "v1 tcp4": (v1("TCP4 192.0.2.7 198.51.100.1 50000 5672"), FOUR),
    "v1 tcp6": (v1("TCP6 2001:db8::7 2001:db8::1 50000 5672"), SIX),
    "v1 unknown": (v1("UNKNOWN"), UNKNOWN),
    "v1 unknown and more": (v1("UNKNOWN ffff::1 ffff::2 65535 65535"), UNKNOWN),
    "v2 tcp4": (v2(FOUR), FOUR),
    "v2 tcp6": (v2(SIX), SIX),
    "v2 with fields": (v2(FOUR, b"\x03\x00\x04crc!" + b"\x05\x00\x02id"), FOUR),
    "v2 local": (LOCAL, None),
    "v2 local with addresses": (V2_START + b"\x20\x11\x00\x0c" + TCP4, None),
    "v2 unspecified": (V2_START + b"\x21\x00\x00\x00", UNKNOWN),
    "v2 unspecified with fields": (V2_START + b"\x21\x00\x00\x05\x04\x00\x02no", UNKNOWN),
    "v2 unix": (V2_START + b"\x21\x31\x00\xd8" + bytes(216), UNKNOWN),
}


@pytest.mark.parametrize("step", [1, 5, 1_000])
@pytest.mark.parametrize(("header", "expected"), GOOD.values(), ids=GOOD.keys())
def test_valid_headers(header: bytes, expected: Relayed | None, step: int) -> None:
    assert read(header + b"AMQP", step) == (expected, b"AMQP")


def test_longest_v1() -> None:
    longest = v1("UNKNOWN " + "f" * (V1_MAX_BYTES - 16))
    assert len(longest) == V1_MAX_BYTES
    assert read(longest) == (UNKNOWN, b"")
    with pytest.raises(ProxyHeaderError, match="at most 107 bytes"):
        read(v1("UNKNOWN " + "f" * (V1_MAX_BYTES - 15)))


def test_longest_v2() -> None:
    room = V2_MAX_BYTES - 16 - 12
    assert read(v2(FOUR, bytes(room))) == (FOUR, b"")
    with pytest.raises(ProxyHeaderError, match="at most 4096"):
        missing_bytes(v2(FOUR, bytes(room + 1))[:16])


BAD = {
    "amqp": b"AMQP\0\0\x09\x01",
    "tls": b"\x16\x03\x01",
    "http": b"GET / HTTP/1.1\r\n",
    "half": b"PROXI",
    "lower case": b"proxy TCP4",
    "quit": b"\r\n\r\n\0\r\nQUIX",
    "v1 other family": v1("UDP4 192.0.2.7 198.51.100.1 50000 5672"),
    "v1 other family's addresses": v1("TCP4 2001:db8::7 2001:db8::1 50000 5672"),
    "v1 name": v1("TCP4 localhost localhost 50000 5672"),
    "v1 zone": v1("TCP6 fe80::1%eth0 ::1 50000 5672"),
    "v1 octal": v1("TCP4 0177.0.0.1 127.0.0.1 50000 5672"),
    "v1 too few": v1("TCP4 192.0.2.7 198.51.100.1 50000"),
    "v1 too many": v1("TCP4 192.0.2.7 198.51.100.1 50000 5672 1"),
    "v1 two spaces": v1("TCP4  192.0.2.7 198.51.100.1 50000 5672"),
    "v1 port too high": v1("TCP4 192.0.2.7 198.51.100.1 65536 5672"),
    "v1 port with zero": v1("TCP4 192.0.2.7 198.51.100.1 050000 5672"),
    "v1 port with sign": v1("TCP4 192.0.2.7 198.51.100.1 +1 5672"),
    "v1 nothing": v1(""),
    "v1 not ascii": b"PROXY TCP4 \xff \xff 1 1\r\n",
    "v2 version 1": V2_START + b"\x11\x11\x00\x0c" + TCP4,
    "v2 unknown command": V2_START + b"\x22\x11\x00\x0c" + TCP4,
    "v2 datagrams": V2_START + b"\x21\x12\x00\x0c" + TCP4,
    "v2 unknown family": V2_START + b"\x21\x41\x00\x0c" + TCP4,
    "v2 too few": V2_START + b"\x21\x11\x00\x0b" + TCP4[:-1],
    "v2 six with the addresses of four": V2_START + b"\x21\x21\x00\x0c" + TCP4,
}


@pytest.mark.parametrize("header", BAD.values(), ids=BAD.keys())
def test_invalid_header_is_refused(header: bytes) -> None:
    with pytest.raises(ProxyHeaderError):
        read(header)


@given(st.binary(max_size=150), st.sampled_from([b"", b"PROXY ", b"PROXY TCP4 ", V2_START]))
def test_noise_is_refused_or_read(noise: bytes, start: bytes) -> None:
    head, rest = b"", start + noise
    try:
        while more := missing_bytes(head):
            head, rest = head + rest[:more].ljust(more, b"\0"), rest[more:]
        read_header(head)
    except ProxyHeaderError:
        pass
    assert len(head) <= V2_MAX_BYTES
