"""Whether content comes from the hub that was told the secret (WebSub 8)."""

from __future__ import annotations

import hmac

from ..delivery.signature import METHODS, sign


def refusal(header: str | None, secret: str | None, body: bytes) -> str | None:
    """Why the content is not processed, or None. Without a secret nothing is asked.

    The method is the one that the header names: there is no negotiation.
    """
    if secret is None:
        return None
    if not header:
        return "X-Hub-Signature is missing, and this subscription has a secret"
    method, _, attributes = header.partition("=")
    if method.lower() not in METHODS:
        return f"X-Hub-Signature has the method '{method[:20]}', none of {', '.join(METHODS)}"
    expected = sign(method.lower(), secret, body).partition("=")[2]
    # As bytes: a string that is not ASCII can't be compared in constant time.
    if not hmac.compare_digest(
        expected.encode(), attributes.strip().lower().encode(errors="replace")
    ):
        return "X-Hub-Signature is not that of this content"
    return None
