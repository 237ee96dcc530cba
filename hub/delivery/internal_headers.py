"""Seals and reads the internal headers of messages, and makes the ids of deliveries.

Publishers can write any header, and publish to any queue. So internal headers are sealed together
with the body: without a valid seal, a message was made by a publisher, whatever its headers say.
The id of a message is a keyed hash of its sequence number, which stays the same over retries and
restarts and does not disclose how many messages others publish.
"""

from __future__ import annotations

import asyncio
import hmac
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import msgspec

from ...core.message.model import Message, Properties, Table
from ..keys.key_file import load_key
from .envelope import COPIES, INTERNAL, SEAL, Envelope, from_internal_headers, from_publisher

LARGE_BYTES = 512 * 1024
"""Hashing so many takes half a millisecond: larger bodies are hashed in a thread."""
_SEALED = INTERNAL | frozenset(COPIES.values())
_ID_BYTES = 16
_SEAL_BYTES = 24


class InternalHeaders:
    """The key is read, or created, at the first use."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file
        self._keys: tuple[bytes, bytes] | None = None
        self._ids: blake2b | None = None
        """The state behind the key, from which ids are hashed."""

    def message_id(self, sequence: int) -> str:
        if self._ids is None:
            self._ids = blake2b(key=self._load()[0], digest_size=_ID_BYTES)
        # A copy saves hashing the key: 0.5 us of 1.1.
        hashed = self._ids.copy()
        hashed.update(sequence.to_bytes(8, "big"))
        return f"msg_{hashed.hexdigest()}"

    def read(self, message: Message, sequence: int) -> Envelope:
        """Returns the envelope of a message; `sequence` is its number in the engine."""
        headers = message.properties.headers
        make = (
            from_internal_headers
            if headers and self._are_sealed(headers, message.body)
            else from_publisher
        )
        return make(message, self.message_id(sequence))

    async def read_in_thread(self, message: Message, sequence: int) -> Envelope:
        """Returns the envelope of a message as `read`, in a thread if a large body has to be
        hashed."""
        if len(message.body) < LARGE_BYTES or SEAL not in (message.properties.headers or {}):
            return self.read(message, sequence)
        return await asyncio.to_thread(self.read, message, sequence)

    async def sealed(self, properties: Properties, body: bytes) -> Properties:
        """Returns the properties with the seal of their internal headers."""
        headers: Table = {**(properties.headers or {})}
        if len(body) < LARGE_BYTES:
            headers[SEAL] = self._seal(headers, body)
        else:
            headers[SEAL] = await asyncio.to_thread(self._seal, headers, body)
        return replace(properties, headers=headers)

    def _are_sealed(self, headers: Table, body: bytes) -> bool:
        seal = headers.get(SEAL)
        if not isinstance(seal, str) or not seal.isascii():
            return False
        return hmac.compare_digest(seal, self._seal(headers, body))

    def _seal(self, headers: Table, body: bytes) -> str:
        internal_headers = sorted(
            (name, repr(value)) for name, value in headers.items() if name in _SEALED
        )
        seal = blake2b(
            msgspec.json.encode(internal_headers), key=self._load()[1], digest_size=_SEAL_BYTES
        )
        seal.update(body)
        return seal.hexdigest()

    def _load(self) -> tuple[bytes, bytes]:
        if self._keys is None:
            # Derived: the key of the file is also used for others.
            key = load_key(self._key_file)
            ids, seals = (
                hmac.digest(key, purpose, "sha256")
                for purpose in (b"warren: message ids", b"warren: notes")
            )
            self._keys = ids, seals
        return self._keys
