"""The registrations of labels, and their tokens."""

from __future__ import annotations

import hashlib
import re
import secrets
from dataclasses import dataclass
from typing import Final

from ..errors import BadRequest
from .errors import EnrolmentRefused

MIN_LEASE_S: Final = 30
MAX_LEASE_S: Final = 86_400
DEFAULT_LEASE_S: Final = 60
"""Longer than the longest wait of client libraries after an error, 32 s."""
TOKEN_BYTES: Final = 24
MIN_TOKEN_CHARACTERS: Final = 22
"""128 bits in base64."""
RESERVED: Final = frozenset(
    ("admin", "api", "hub", "localhost", "login", "mail", "ns", "root", "smtp", "tun", "www")
)
"""Names by which visitors would expect the operator."""
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_TOKEN: Final = re.compile(r"[A-Za-z0-9._~-]{1,128}")


@dataclass(frozen=True, slots=True)
class TunnelRegistration:
    """A label and who has it; `digest` is the SHA-256 of the token, in hex."""

    label: str
    digest: str
    owner: str
    """The user who enrolled it; empty for an anonymous client."""
    lease_s: int
    made_at: float
    """Wall time in seconds, as `released_at`."""
    released_at: float | None = None
    """When it was released; it is kept for a while, to tell that its application has gone."""
    blocked_until: float = 0.0
    """Until when nobody can enrol it, and its owner no new label, as an administrator wants it."""

    @property
    def is_released(self) -> bool:
        return self.released_at is not None

    @property
    def account(self) -> str:
        """The account for the memory of its requests: its owner's, or its own if it has none."""
        return self.owner or f"label {self.label}"

    def is_same_application(self, other: TunnelRegistration) -> bool:
        """Whether both are one user's, or have one token if they are anonymous."""
        return self.owner == other.owner and bool(self.owner or self.digest == other.digest)

    def has_token(self, token: str) -> bool:
        return has_token(self.digest, token)


def read_label(name: str | None) -> str:
    """Returns the label in lower case. Raises `BadRequest` for what is no DNS label, and
    `EnrolmentRefused` for a reserved one."""
    if not name:
        raise BadRequest("is required: the label of the public URL", field="name")
    label = name.lower()
    if not _LABEL.fullmatch(label) or label[2:4] == "--":
        rule = "1 to 63 of a-z, 0-9 and -; no - at the ends, nor at the places 3 and 4"
        raise BadRequest("is no DNS label", field="name", value=name, limit=rule)
    if label in RESERVED:
        raise EnrolmentRefused("is reserved; choose another one", field="name", value=label)
    return label


def read_token(token: str | None, *, is_weak_allowed: bool) -> str:
    """Returns the token, a new one if none is given. Raises `BadRequest` for one that could be
    guessed, or that has characters that a URL path would encode."""
    if not token:
        return secrets.token_urlsafe(TOKEN_BYTES)
    least = 1 if is_weak_allowed else MIN_TOKEN_CHARACTERS
    if not _TOKEN.fullmatch(token) or len(token) < least:
        rule = f"{least} to 128 of A-Z, a-z, 0-9 and -._~; leave it out to have one issued"
        raise BadRequest("can't be used", field="token", limit=rule)
    return token


def read_lease(text: str | None) -> int:
    """Returns a lease in seconds, within the limits. Raises `BadRequest` unless it is an
    integer."""
    if not text:
        return DEFAULT_LEASE_S
    if not (text.isascii() and text.isdigit() and len(text) <= 18):
        raise BadRequest("is not a number of seconds", field="lease", value=text)
    return min(max(int(text), MIN_LEASE_S), MAX_LEASE_S)


def has_token(digest: str, token: str) -> bool:
    """Returns whether the digest is that of the token; compares in constant time."""
    return secrets.compare_digest(digest, digest_of(token))


def digest_of(token: str) -> str:
    """Returns the digest of a token, unsalted: a token has 128 random bits; those of development
    mode are no secret."""
    return hashlib.sha256(token.encode(errors="surrogateescape")).hexdigest()
