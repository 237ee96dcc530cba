"""Bodies of messages in JSON, as RabbitMQ's API tells them."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping


def payload(body: bytes) -> Mapping[str, str]:
    """Text if it is any, else base64."""
    try:
        return {"payload": body.decode(), "payload_encoding": "string"}
    except UnicodeDecodeError:
        return {"payload": b64encode(body).decode(), "payload_encoding": "base64"}
