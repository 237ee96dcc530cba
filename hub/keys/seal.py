"""Secrets as they are stored: encrypted, with a key that is not in the database.

A copy of the database, or of a row in a report, must not let anybody sign in a hub's name.
AES-256-GCM binds each text to the id of its row, so that sealed texts can't be exchanged.
"""

from __future__ import annotations

import base64
import hmac
import os
from pathlib import Path

from ...core.errors import ConfigError
from .key_file import load_key

PREFIX = "sealed1."
_NONCE_BYTES = 12


class Sealer:
    """The key is read, or made, at the first use."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file
        self._key: bytes | None = None

    def seal(self, text: str, row_id: str) -> str:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(_NONCE_BYTES)
        sealed = AESGCM(self._load()).encrypt(nonce, text.encode(), row_id.encode())
        return PREFIX + base64.b64encode(nonce + sealed).decode()

    def open(self, text: str, row_id: str) -> str:
        """Raises `ConfigError` where the key is another, or the text is damaged."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            raw = base64.b64decode(text.removeprefix(PREFIX))
            nonce, sealed = raw[:_NONCE_BYTES], raw[_NONCE_BYTES:]
            return AESGCM(self._load()).decrypt(nonce, sealed, row_id.encode()).decode()
        except (InvalidTag, ValueError) as error:
            reason = f"the hub's secrets can't be opened: {self._key_file} is not their key"
            raise ConfigError(reason) from error

    def _load(self) -> bytes:
        if self._key is None:
            # Derived, for the same file makes the key of tokens.
            self._key = hmac.digest(load_key(self._key_file), b"warren: sealed rows", "sha256")
        return self._key


def is_sealed(text: str) -> bool:
    return text.startswith(PREFIX)
