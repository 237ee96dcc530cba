"""Shortcut tokens: proof that this hub lets the bearer bind one of its own resources.

A token is `wrn1.` and URL-safe base64 of a record of use, resource and time, encrypted with
AES-256-GCM (RabbitHub's `generate_token`): who passes it on learns nothing of this hub, and can't
change it. RabbitHub did not compare the callback with the token's resource, so that any URL could
be subscribed unverified; here `Shortcuts.sink` does.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from ...core.clock import Clock
from ..errors import TokenRefused
from ..requests import Resource
from .key_file import load_key

Use = Literal["subscribe", "unsubscribe"]
USES: tuple[Use, ...] = ("subscribe", "unsubscribe")

_PREFIX = "wrn1."
_NONCE_BYTES = 12
_TAG_BYTES = 16


@dataclass(frozen=True, slots=True)
class Grant:
    """What a valid token allows."""

    use: Use
    resource: Resource


class Tokens:
    """Makes and reads tokens with a key that is kept in a file, so they outlive a restart."""

    def __init__(self, key_file: Path, lifetime_s: int, clock: Clock) -> None:
        self._key_file = key_file
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._key: bytes | None = None

    def issue(self, use: Use, resource: Resource) -> str:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        record = [use, resource.vhost, resource.kind, resource.name, int(self._clock.wall_s())]
        nonce = os.urandom(_NONCE_BYTES)
        sealed = AESGCM(self._load()).encrypt(nonce, json.dumps(record).encode(), None)
        # Without padding: `=` would have to be percent-encoded in a form.
        return _PREFIX + base64.urlsafe_b64encode(nonce + sealed).decode().rstrip("=")

    def read(self, token: str) -> Grant | None:
        """None for a string that this hub did not make; raises `TokenRefused` when too old."""
        record = self._record(token)
        if record is None:
            return None
        use, vhost, kind, name, issued_at = json.loads(record)
        age_s = self._clock.wall_s() - issued_at
        if not -self._lifetime_s <= age_s <= self._lifetime_s:
            limit = f"{self._lifetime_s} s"
            raise TokenRefused("the token has expired", field="hub.verify_token", limit=limit)
        return Grant(cast(Use, use), Resource(vhost, kind, name))

    def _record(self, token: str) -> bytes | None:
        if not token.startswith(_PREFIX):
            return None
        try:
            text = token[len(_PREFIX) :]
            padded = text + "=" * (-len(text) % 4)
            raw = base64.b64decode(padded, altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        return self._open(raw) if len(raw) >= _NONCE_BYTES + _TAG_BYTES else None

    def _open(self, raw: bytes) -> bytes | None:
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            return AESGCM(self._load()).decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], None)
        except InvalidTag:
            return None

    def _load(self) -> bytes:
        if self._key is None:
            # Derived, for the file's own key seals rows too.
            self._key = hmac.digest(load_key(self._key_file), b"warren: tokens", "sha256")
        return self._key
