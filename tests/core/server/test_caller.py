"""Identifying clients by socket, proxy header and certificate."""

from __future__ import annotations

import pytest

from warrenmq.core.server.caller import Caller, caller_of, is_loopback
from warrenmq.core.server.certificate_name import common_name
from warrenmq.core.wire.proxy import Relayed

from .support import FakeTransport

HERE = ("127.0.0.1", 5672)
FAR = Relayed(("192.0.2.7", 4_000), ("198.51.100.1", 5672))
NEAR = Relayed(("127.0.0.1", 4_000), HERE)


@pytest.mark.parametrize(
    ("address", "loopback"),
    [
        ("127.0.0.1", True), ("127.8.8.8", True), ("::1", True), ("::ffff:127.0.0.1", True),
        ("::ffff:192.0.2.1", False), ("192.0.2.1", False), ("2001:db8::1", False), ("", False),
        ("fe80::1%eth0", False), ("localhost", False),
    ],
)  # fmt: skip
def test_loopback(address: str, loopback: bool) -> None:
    assert is_loopback(address) is loopback


@pytest.mark.parametrize(
    ("socket_address", "relayed", "expected"),
    [
        ("127.0.0.1", None, Caller("127.0.0.1:50000 -> 127.0.0.1:5672", "127.0.0.1", True)),
        ("192.0.2.1", None,
         Caller("192.0.2.1:50000 -> 127.0.0.1:5672", "192.0.2.1", False, private=False)),
        ("127.0.0.1", FAR, Caller("192.0.2.7:4000 -> 198.51.100.1:5672", "192.0.2.7", False)),
        ("127.0.0.1", NEAR, Caller("127.0.0.1:4000 -> 127.0.0.1:5672", "127.0.0.1", True)),
        # The own machine of a proxy elsewhere is not this one.
        ("192.0.2.1", NEAR,
         Caller("127.0.0.1:4000 -> 127.0.0.1:5672", "behind 192.0.2.1", False)),
        # Of whom the proxy knows nothing: whose address may be any. Their wrong passwords must
        # lock out no program of this machine.
        ("127.0.0.1", Relayed(),
         Caller("127.0.0.1:50000 -> 127.0.0.1:5672", "behind 127.0.0.1", False)),
        ("2001:db8::1:2:3:4", Relayed(),
         Caller("2001:db8::1:2:3:4:50000 -> 127.0.0.1:5672", "behind 2001:db8::", False)),
    ],
)  # fmt: skip
def test_caller_of(socket_address: str, relayed: Relayed | None, expected: Caller) -> None:
    assert caller_of(FakeTransport(socket_address), relayed, common_name) == expected
