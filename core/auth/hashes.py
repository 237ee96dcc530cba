"""Password hashes: argon2id, or those that RabbitMQ made and exported.

In Warren a hash is one text. Argon2 has its PHC form. A hash of RabbitMQ is base64 of four octets
of salt and the digest of salt and password; before it stands the name of its algorithm, as in
`$rabbit_password_hashing_sha256$kI3G...`. An empty hash means no password: nobody can log in.

Checking a password costs an argon2 computation whatever it is compared with, so that the time
does not reveal which users exist.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import secrets
from typing import TYPE_CHECKING, Final

from .argon2_form import check_argon2
from .errors import AuthError

if TYPE_CHECKING:
    from argon2 import PasswordHasher

ARGON2_MEMORY_KIB: Final = 19 * 1024
ARGON2_TIME_COST: Final = 2
ARGON2_PARALLELISM: Final = 1

ARGON2: Final = "argon2"
"""`hashing_algorithm` of a hash in PHC form."""
SHA256: Final = "rabbit_password_hashing_sha256"
SHA512: Final = "rabbit_password_hashing_sha512"
MD5: Final = "rabbit_password_hashing_md5"
_DIGESTS: Final = {SHA256: "sha256", SHA512: "sha512", MD5: "md5"}
_SALT_BYTES: Final = 4
_ARGON2_PREFIX: Final = "$argon2"

NOBODY_HASH: Final = (
    "$argon2id$v=19$m=19456,t=2,p=1"
    "$vLzKCkjs+Wrwe3mfclzWpw$dB6qo+3JFJlsDWNohqOhHbqgbquIreQ3s/1iGSR96Wo"
)
"""Checked for unknown users, so that the reply takes as long as for known ones."""


def hashed(password: str) -> str:
    """Returns a new argon2id hash in PHC form; takes as long as a login.

    Raises `AuthError` for an empty password, with which nobody could log in.
    """
    if not password:
        raise AuthError(
            "an empty password can't be used to log in; for a user without a password give an "
            "empty password_hash"
        )
    return _hasher().hash(_octets(password))


def rabbitmq_hash(password: str) -> str:
    """Returns a new hash of algorithm `SHA256`, as RabbitMQ makes it. Raises `AuthError` for an
    empty password."""
    if not password:
        raise AuthError("an empty password can't be used to log in")
    salt = secrets.token_bytes(_SALT_BYTES)
    return base64.b64encode(salt + hashlib.sha256(salt + _octets(password)).digest()).decode()


def imported(password_hash: str, algorithm: str | None = None) -> str:
    """Converts an exported hash to Warren's form, by its `hashing_algorithm`.

    Without one it is argon2 if it looks like it, else RabbitMQ's SHA-256. An empty hash means
    that no password is right. Raises `AuthError` for another algorithm or a damaged hash.
    """
    if not password_hash:
        return ""
    if algorithm is None:
        algorithm = ARGON2 if password_hash.startswith(_ARGON2_PREFIX) else SHA256
    if algorithm != ARGON2 and algorithm not in _DIGESTS:
        known = ", ".join((ARGON2, *_DIGESTS))
        raise AuthError(f"hashing algorithm '{algorithm}' can't be checked; known are {known}")
    stored = password_hash if algorithm == ARGON2 else f"${algorithm}${password_hash}"
    check(stored)
    return stored


def exported(stored: str) -> tuple[str, str]:
    """Converts a hash to the form of exported definitions; returns it and its
    `hashing_algorithm`."""
    algorithm, password_hash = _of_rabbitmq(stored)
    if algorithm:
        return password_hash, algorithm
    return (stored, ARGON2) if stored else ("", SHA256)


def is_foreign(stored: str) -> bool:
    """Whether it is a hash of RabbitMQ, which is too cheap to guess to be stored for long."""
    return bool(_of_rabbitmq(stored)[0])


def check(stored: str) -> None:
    """Raises `AuthError` for a text that is not a hash, or for one that costs too much to check."""
    algorithm, password_hash = _of_rabbitmq(stored)
    if algorithm:
        _digest_of(algorithm, password_hash)
    elif stored:
        check_argon2(stored)


def matches(stored: str | None, password: str) -> bool:
    """Whether the password matches; with None and the empty hash none does.

    Costs one argon2 computation, except for a right password with a hash of RabbitMQ, which the
    caller hashes again.
    """
    algorithm, password_hash = _of_rabbitmq(stored or "")
    if algorithm and _is_digested(algorithm, password_hash, password):
        return bool(password)
    if algorithm or not stored:
        _verify(NOBODY_HASH, password)
        return False
    return _verify(stored, password) and bool(password)


def _of_rabbitmq(stored: str) -> tuple[str, str]:
    """Returns algorithm and hash; empty for any other form."""
    parts = stored.split("$", 2)
    if len(parts) == 3 and not parts[0] and parts[1] in _DIGESTS:
        return parts[1], parts[2]
    return "", ""


def _digest_of(algorithm: str, password_hash: str) -> tuple[bytes, bytes]:
    """Returns salt and digest. Raises `AuthError` unless both are valid base64."""
    size = _SALT_BYTES + hashlib.new(_DIGESTS[algorithm], usedforsecurity=False).digest_size
    try:
        raw = base64.b64decode(password_hash, validate=True)
    except (binascii.Error, ValueError) as error:
        raise AuthError(f"a password hash of {algorithm} is base64, this is not") from error
    if len(raw) != size:
        raise AuthError(f"a password hash of {algorithm} has {size} octets, this has {len(raw)}")
    return raw[:_SALT_BYTES], raw[_SALT_BYTES:]


def _is_digested(algorithm: str, password_hash: str, password: str) -> bool:
    salt, digest = _digest_of(algorithm, password_hash)
    found = hashlib.new(_DIGESTS[algorithm], salt + _octets(password), usedforsecurity=False)
    return hmac.compare_digest(found.digest(), digest)


def _verify(argon2_hash: str, password: str) -> bool:
    from argon2.exceptions import VerifyMismatchError

    try:
        return _hasher().verify(argon2_hash, _octets(password))
    except VerifyMismatchError:
        return False


def _hasher() -> PasswordHasher:
    from argon2 import PasswordHasher  # on first need: no start waits for it

    return PasswordHasher(
        time_cost=ARGON2_TIME_COST,
        memory_cost=ARGON2_MEMORY_KIB,
        parallelism=ARGON2_PARALLELISM,
    )


def _octets(password: str) -> bytes:
    return password.encode(errors="surrogatepass")
