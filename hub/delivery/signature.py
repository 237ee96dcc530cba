"""Signs deliveries: `X-Hub-Signature` (WebSub 7.1) and `webhook-signature` (Standard Webhooks
1.0.0), which covers the time too."""

from __future__ import annotations

import base64
import binascii
import hmac
from collections.abc import Iterable

from ..errors import BadRequest

METHODS = ("sha1", "sha256", "sha384", "sha512")
KEY_PREFIX = "whsec_"
_COPIED_BYTES = 64 * 1024  # above it, hashing in two steps takes less time than a copy
MIN_KEY_BYTES, MAX_KEY_BYTES = 24, 64  # Standard Webhooks, symmetric keys


def sign(method: str, secret: str, body: bytes) -> str:
    """Returns `method=hex(HMAC(secret, body))`; raises `ValueError` for an unknown method."""
    if method not in METHODS:
        raise ValueError(f"signature method '{method}' is none of {', '.join(METHODS)}")
    return f"{method}={hmac.digest(secret.encode(), body, method).hex()}"


def webhook_signature(keys: Iterable[bytes], message_id: str, timestamp: str, body: bytes) -> str:
    """Returns a `v1` signature for each key, in their order. Id and timestamp contain no "."."""
    head = f"{message_id}.{timestamp}.".encode()
    return " ".join([_v1(key, head, body) for key in keys])


def webhook_key(secret: str) -> bytes:
    """Returns the decoded bytes of a `whsec_` secret; any other secret is its own key."""
    decoded = _decode(secret) if secret.startswith(KEY_PREFIX) else None
    return secret.encode() if decoded is None else decoded


def check_secret(secret: str) -> str:
    """Returns the secret; raises `BadRequest` if it begins with `whsec_` and is no valid key."""
    if not secret.startswith(KEY_PREFIX):
        return secret
    decoded = _decode(secret)
    if decoded is None:
        raise BadRequest(f"is not base64 after '{KEY_PREFIX}'", field="hub.secret")
    if not MIN_KEY_BYTES <= len(decoded) <= MAX_KEY_BYTES:
        reason = f"has a key of {len(decoded)} bytes after '{KEY_PREFIX}'"
        limit = f"{MIN_KEY_BYTES} to {MAX_KEY_BYTES} bytes"
        raise BadRequest(reason, field="hub.secret", limit=limit)
    return secret


def _decode(secret: str) -> bytes | None:
    try:
        return base64.b64decode(secret[len(KEY_PREFIX) :], validate=True)
    except (binascii.Error, ValueError):
        return None


def _v1(key: bytes, head: bytes, body: bytes) -> str:
    if len(body) <= _COPIED_BYTES:
        digest = hmac.digest(key, head + body, "sha256")
    else:
        signing = hmac.new(key, head, "sha256")
        signing.update(body)
        digest = signing.digest()
    return "v1," + binascii.b2a_base64(digest, newline=False).decode()
