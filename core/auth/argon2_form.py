"""Checks imported argon2 hashes: their form, and the cost of verifying them.

The importer chooses the parameters, and each login attempt pays for them; a hash that the library
can't parse would fail at every login instead of here.
"""

from __future__ import annotations

import base64
import re
from typing import Final

from .errors import AuthError

MAX_MEMORY_KIB: Final = 256 * 1024
MAX_TIME_COST: Final = 16
MAX_LANES: Final = 16
"""Each lane is a thread while a password is checked."""
_MIN_SALT_BYTES, _MIN_DIGEST_BYTES = 8, 4
_MIN_KIB_PER_LANE: Final = 8
"""Of RFC 9106 3.1."""
_NUMBER: Final = "([1-9][0-9]{0,9})"
_BASE64: Final = "([A-Za-z0-9+/]{1,344})"
_FORM: Final = re.compile(
    rf"\$argon2(?:id|i|d)(?:\$v=(?:16|19))?\$m={_NUMBER},t={_NUMBER},p={_NUMBER}"
    rf"\${_BASE64}\${_BASE64}"
)


def check_argon2(password_hash: str) -> None:
    """Raises `AuthError` for a text that is not in PHC form, or that costs too much to check."""
    found = _FORM.fullmatch(password_hash)
    if found is None or not _is_sound(*found.groups()):
        raise AuthError("the password hash is not an argon2 hash in PHC form")
    memory_kib, time_cost, lanes = map(int, found.groups()[:3])
    if memory_kib > MAX_MEMORY_KIB or time_cost > MAX_TIME_COST or lanes > MAX_LANES:
        raise AuthError(
            f"the password hash asks for {memory_kib} KiB, {time_cost} passes and {lanes} lanes, "
            f"at most {MAX_MEMORY_KIB}, {MAX_TIME_COST} and {MAX_LANES} are allowed"
        )


def _is_sound(memory_kib: str, _: str, lanes: str, salt: str, digest: str) -> bool:
    return (
        int(memory_kib) >= _MIN_KIB_PER_LANE * int(lanes)
        and _size(salt) >= _MIN_SALT_BYTES
        and _size(digest) >= _MIN_DIGEST_BYTES
    )


def _size(text: str) -> int:
    """Returns the decoded size of base64 without padding; 0 if it is not valid."""
    if len(text) % 4 == 1:
        return 0
    octets = base64.b64decode(text + "=" * (-len(text) % 4))
    return len(octets) if base64.b64encode(octets).decode().rstrip("=") == text else 0
