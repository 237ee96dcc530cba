"""Shortcut tokens (RabbitHub's `generate_token`): they allow binding one of this hub's resources.

A token is `wrn1.` and URL-safe base64 of a record of use, resource and time, encrypted with
AES-256-GCM, so that others can neither read nor change it. RabbitHub did not compare the callback
with the token's resource, so any URL could be subscribed unverified; `Shortcuts.sink` does.
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
    """The permission in a valid token."""

    use: Use
    resource: Resource


class ShortcutTokens:
    """Issues and reads tokens; their key is in a file, so they are valid after a restart."""

    def __init__(self, key_file: Path, lifetime_s: int, clock: Clock) -> None:
        self._key_file = key_file
        self._lifetime_s = lifetime_s
        self._clock = clock
        self._key: bytes | None = None

    def issue(self, use: Use, resource: Resource) -> str:
        """Returns a new token."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        record = [use, resource.vhost, resource.kind, resource.name, int(self._clock.wall_s())]
        nonce = os.urandom(_NONCE_BYTES)
        sealed = AESGCM(self._load()).encrypt(nonce, json.dumps(record).encode(), None)
        # Without padding, because `=` has to be percent-encoded in a form.
        return _PREFIX + base64.urlsafe_b64encode(nonce + sealed).decode().rstrip("=")

    def read(self, token: str) -> Grant | None:
        """Returns the grant of a token, None if it is no token of this hub. Raises `TokenRefused`
        if it has expired."""
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
            # Derived, because the key of stored secrets comes from the same file.
            self._key = hmac.digest(load_key(self._key_file), b"warren: tokens", "sha256")
        return self._key
