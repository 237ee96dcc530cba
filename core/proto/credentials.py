"""Reads user names and passwords from SASL responses (RFC 4616, AMQPLAIN)."""

from __future__ import annotations

from ..errors import ConnectionFault
from ..wire.tables import decode_table


def read_credentials(mechanism: str, response: str | bytes) -> tuple[str, str]:
    """Returns user name and password from a PLAIN or AMQPLAIN response.

    Raises:
        ConnectionFault: 503 for another mechanism, 502 for a response that is not of its form.
    """
    raw = response.encode() if isinstance(response, str) else bytes(response)
    if mechanism == "PLAIN":
        parts = raw.split(b"\0")
        if len(parts) != 3 or parts[0]:  # nobody logs in on behalf of another (RFC 4616 2)
            raise ConnectionFault(502, "PLAIN response is not of the form NUL user NUL password")
        try:
            return parts[1].decode(), parts[2].decode()
        except UnicodeDecodeError:
            raise ConnectionFault(502, "PLAIN response is not UTF-8") from None
    if mechanism == "AMQPLAIN":
        table, _ = decode_table(len(raw).to_bytes(4, "big") + raw, 0, len(raw) + 4)
        name, password = table.get("LOGIN"), table.get("PASSWORD")
        if not isinstance(name, str) or not isinstance(password, str):
            raise ConnectionFault(502, "AMQPLAIN response has no LOGIN and PASSWORD")
        return name, password
    raise ConnectionFault(503, f"unknown authentication mechanism '{mechanism}'")
