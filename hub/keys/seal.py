"""Encryption of stored secrets, with a key that is not in the database.

A copy of the database must not be enough to sign in a hub's name. AES-256-GCM authenticates the id
of the row with each text, so texts can't be moved to other rows.
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
    """Encrypts and decrypts texts; the key is read, or made, at the first use."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file
        self._key: bytes | None = None

    def seal(self, text: str, row_id: str) -> str:
        """Returns the text encrypted for this row."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(_NONCE_BYTES)
        sealed = AESGCM(self._load()).encrypt(nonce, text.encode(), row_id.encode())
        return PREFIX + base64.b64encode(nonce + sealed).decode()

    def open(self, text: str, row_id: str) -> str:
        """Returns the decrypted text. Raises `ConfigError` for another key or a damaged text."""
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
            # Derived, because the key of tokens comes from the same file.
            self._key = hmac.digest(load_key(self._key_file), b"warren: sealed rows", "sha256")
        return self._key


def is_sealed(text: str) -> bool:
    """Returns whether the text is encrypted."""
    return text.startswith(PREFIX)
