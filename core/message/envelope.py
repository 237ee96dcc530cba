"""The envelope of a message: its exchange and routing key as two short strings.

Publish and deliver methods carry them in this form.
"""

from __future__ import annotations


def envelope(exchange: str, routing_key: str) -> bytes:
    """Returns an exchange name and routing key as two short strings.

    Raises `ValueError` if either is longer than 255 bytes.
    """
    first, second = exchange.encode(), routing_key.encode()
    if len(first) > 255 or len(second) > 255:
        raise ValueError("an exchange name or routing key is at most 255 bytes long")
    return bytes((len(first),)) + first + bytes((len(second),)) + second


def split_envelope(raw: bytes) -> tuple[str, str]:
    """Returns the exchange name and routing key of an envelope."""
    size = raw[0]
    return raw[1 : 1 + size].decode(), raw[2 + size :].decode()
