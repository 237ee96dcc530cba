"""Header fields that a proxy does not pass on (RFC 9110 7.6.1). Names are in lower case."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

_HOP_BY_HOP: Final = frozenset(
    (
        b"connection", b"keep-alive", b"proxy-authenticate", b"proxy-authentication-info",
        b"proxy-authorization", b"proxy-connection", b"proxy-status", b"te", b"trailer",
        b"transfer-encoding", b"upgrade",
    )
)  # fmt: skip


def connection_fields(fields: Iterable[tuple[bytes, bytes]]) -> frozenset[bytes]:
    """Returns the names of fields for one connection, those that `Connection` names included."""
    named = {
        token.strip().lower()
        for name, value in fields
        if name == b"connection"
        for token in value.split(b",")
    }
    return _HOP_BY_HOP | named
