"""Which headers of a message are the hub's own notes, and the ids that deliveries carry.

Publishers can write every header, and send a message to any queue. So what the hub notes is sealed
together with the body: a message whose seal is missing, or is that of another body, is one that a
publisher made, whatever its headers say. The id of a message is a keyed hash of its number, which
stays the same over retries and restarts and tells nobody how much others publish.
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
from .envelope import COPIES, NOTED, SEAL, Envelope, believed, fresh

LARGE_BYTES = 512 * 1024
"""Hashing so many takes half a millisecond: what is longer is hashed aside from the loop."""
_SEALED = NOTED | frozenset(COPIES.values())
_ID_BYTES = 16
_SEAL_BYTES = 24


class InternalHeaders:
    """The key is read, or made, at the first use."""

    def __init__(self, key_file: Path) -> None:
        self._key_file = key_file
        self._keys: tuple[bytes, bytes] | None = None

    def message_id(self, sequence: int) -> str:
        key = (self._keys or self._load())[0]
        number = sequence.to_bytes(8, "big")
        return f"msg_{blake2b(number, key=key, digest_size=_ID_BYTES).hexdigest()}"

    def read(self, message: Message, sequence: int) -> Envelope:
        """What a message is to its subscriber; `sequence` is its number in the engine."""
        headers = message.properties.headers
        make = believed if headers and self._are_ours(headers, message.body) else fresh
        return make(message, self.message_id(sequence))

    async def read_aside(self, message: Message, sequence: int) -> Envelope:
        """As `read`, in a thread where a large body has to be hashed."""
        if len(message.body) < LARGE_BYTES or SEAL not in (message.properties.headers or {}):
            return self.read(message, sequence)
        return await asyncio.to_thread(self.read, message, sequence)

    async def sealed(self, properties: Properties, body: bytes) -> Properties:
        """With the seal of its notes."""
        headers: Table = {**(properties.headers or {})}
        if len(body) < LARGE_BYTES:
            headers[SEAL] = self._seal(headers, body)
        else:
            headers[SEAL] = await asyncio.to_thread(self._seal, headers, body)
        return replace(properties, headers=headers)

    def _are_ours(self, headers: Table, body: bytes) -> bool:
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
            # Derived, for the file's own key makes others.
            key = load_key(self._key_file)
            ids, seals = (
                hmac.digest(key, purpose, "sha256")
                for purpose in (b"warren: message ids", b"warren: notes")
            )
            self._keys = ids, seals
        return self._keys
