"""Checks that content is signed with the lease's secret (WebSub 8)."""

from __future__ import annotations

import hmac

from ..delivery.signature import METHODS, sign


def refusal(header: str | None, secret: str | None, body: bytes) -> str | None:
    """Returns why the content is not processed, None if it is. Without a secret it always is.

    The header names the method: there is no negotiation.
    """
    if secret is None:
        return None
    if not header:
        return "X-Hub-Signature is missing, and this subscription has a secret"
    method, _, attributes = header.partition("=")
    if method.lower() not in METHODS:
        return f"X-Hub-Signature has the method '{method[:20]}', none of {', '.join(METHODS)}"
    expected = sign(method.lower(), secret, body).partition("=")[2]
    # As bytes: strings beyond ASCII can't be compared in constant time.
    if not hmac.compare_digest(
        expected.encode(), attributes.strip().lower().encode(errors="replace")
    ):
        return "X-Hub-Signature is not that of this content"
    return None
