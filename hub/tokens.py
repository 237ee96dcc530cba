"""Shortcut tokens: proof that this hub lets the bearer bind one of its own resources.

A token is `wrn1.` and URL-safe base64 of HMAC-SHA256 over a record of use, resource, time and
nonce (RabbitHub's `generate_token`). RabbitHub did not compare the callback with the token's
resource, so that any URL could be subscribed unverified; here `Hub.shortcut_sink` does.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import json
import os
import secrets
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, cast

from ..core.clock import Clock
from .errors import TokenRefused
from .requests import Resource

Use = Literal["subscribe", "unsubscribe"]
USES: tuple[Use, ...] = ("subscribe", "unsubscribe")

_PREFIX = "wrn1."
_KEY_BYTES = 32
_MAC_BYTES = 32


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
        record = [use, resource.vhost, resource.kind, resource.name, int(self._clock.wall_s())]
        payload = json.dumps([*record, secrets.token_hex(8)]).encode()
        # Without padding: `=` would have to be percent-encoded in a form.
        return _PREFIX + base64.urlsafe_b64encode(self._mac(payload) + payload).decode().rstrip("=")

    def read(self, token: str) -> Grant | None:
        """None for a string that this hub did not sign; raises `TokenRefused` when too old."""
        payload = self._payload(token)
        if payload is None:
            return None
        use, vhost, kind, name, issued_at, _nonce = json.loads(payload)
        age_s = self._clock.wall_s() - issued_at
        if not -self._lifetime_s <= age_s <= self._lifetime_s:
            limit = f"{self._lifetime_s} s"
            raise TokenRefused("the token has expired", field="hub.verify_token", limit=limit)
        return Grant(cast(Use, use), Resource(vhost, kind, name))

    def _payload(self, token: str) -> bytes | None:
        if not token.startswith(_PREFIX):
            return None
        try:
            text = token[len(_PREFIX) :]
            padded = text + "=" * (-len(text) % 4)
            raw = base64.b64decode(padded, altchars=b"-_", validate=True)
        except (binascii.Error, ValueError):
            return None
        mac, payload = raw[:_MAC_BYTES], raw[_MAC_BYTES:]
        return payload if hmac.compare_digest(mac, self._mac(payload)) else None

    def _mac(self, payload: bytes) -> bytes:
        if self._key is None:
            self._key = load_key(self._key_file)
        return hmac.digest(self._key, payload, "sha256")


def load_key(path: Path) -> bytes:
    """The key in the file, which is made with mode 600 when there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _make_key(path)


def _make_key(path: Path) -> bytes:
    # Written aside and renamed, so that a crash leaves the whole key or none.
    key = secrets.token_bytes(_KEY_BYTES)
    temporary = path.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    return key
