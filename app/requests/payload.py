"""Message bodies in JSON, in the form of RabbitMQ's API."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping


def payload(body: bytes) -> Mapping[str, str]:
    """Returns the body as text if it is UTF-8, else in base64."""
    try:
        return {"payload": body.decode(), "payload_encoding": "string"}
    except UnicodeDecodeError:
        return {"payload": b64encode(body).decode(), "payload_encoding": "base64"}
