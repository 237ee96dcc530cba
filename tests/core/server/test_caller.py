"""Who is there: by the socket, by a proxy's word, by a certificate."""

from __future__ import annotations

from typing import Any

import pytest

from warrenmq.core.server.caller import Caller, caller_of, is_loopback
from warrenmq.core.server.certificate_name import common_name
from warrenmq.core.wire.proxy import Relayed

from .support import FakeTransport

HERE = ("127.0.0.1", 5672)
FAR = Relayed(("192.0.2.7", 4_000), ("198.51.100.1", 5672))
NEAR = Relayed(("127.0.0.1", 4_000), HERE)


class Secured(FakeTransport):
    """As after a TLS handshake."""

    def __init__(self, certificate: dict[str, Any] | None) -> None:
        super().__init__()
        self._certificate = certificate

    def getpeercert(self) -> dict[str, Any] | None:
        return self._certificate

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self if name == "ssl_object" else super().get_extra_info(name, default)


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
def test_who_is_there(socket_address: str, relayed: Relayed | None, expected: Caller) -> None:
    assert caller_of(FakeTransport(socket_address), relayed, common_name) == expected


def test_the_name_in_a_certificate() -> None:
    transport = Secured({"subject": ((("commonName", "anders"),),)})
    assert caller_of(transport, None, common_name).certified == "anders"


@pytest.mark.parametrize("certificate", [None, {}])
def test_no_certificate_or_none_that_was_verified(certificate: dict[str, Any] | None) -> None:
    assert caller_of(Secured(certificate), None, common_name).certified is None
