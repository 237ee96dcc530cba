"""Which hosts have one owner."""

from __future__ import annotations

import pytest

from warrenmq.hub.guard.domains import owner_of


@pytest.mark.parametrize(
    ("host", "owner"),
    [
        ("www.example.com", "example.com"),
        ("a.b.Example.co.uk", "example.co.uk"),
        ("example.com.", "example.com"),
        ("www.Example.com.", "example.com"),
        ("192.0.2.1.", "192.0.2.1"),
        ("someone.github.io", "someone.github.io"),
        ("a.xn--bcher-kva.example", "xn--bcher-kva.example"),
        ("co.uk", "co.uk"),
        ("localhost", "localhost"),
        ("192.0.2.1", "192.0.2.1"),
        ("2001:db8:1:2:3::4", "2001:db8:1:2::/64"),
        ("::ffff:192.0.2.1", "192.0.2.1"),
    ],
)
def test_the_owner_is_the_registered_domain_or_network(host: str, owner: str) -> None:
    assert owner_of(host) == owner
