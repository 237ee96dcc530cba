"""`X-Hub-Signature`: proof to the callback that a delivery comes from its hub (WebSub 7.1)."""

from __future__ import annotations

import hmac

METHODS = ("sha1", "sha256", "sha384", "sha512")


def sign(method: str, secret: str, body: bytes) -> str:
    """`method=hex(HMAC(secret, body))`; raises ValueError for a method WebSub does not have."""
    if method not in METHODS:
        raise ValueError(f"signature method '{method}' is none of {', '.join(METHODS)}")
    return f"{method}={hmac.digest(secret.encode(), body, method).hex()}"
