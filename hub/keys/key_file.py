"""A file with a key of random bytes, made at its first use."""

from __future__ import annotations

import hmac
import os
import secrets
from pathlib import Path
from threading import Lock

_KEY_BYTES = 32
_making = Lock()
"""Threads that find no key at the same time must not make several."""


def load_key(path: Path) -> bytes:
    """Returns the key in the file; makes the file, with mode 600, if there is none."""
    try:
        return path.read_bytes()
    except FileNotFoundError:
        with _making:
            if path.exists():
                return path.read_bytes()
            path.parent.mkdir(parents=True, exist_ok=True)
            return _make_key(path)


def fingerprint(path: Path) -> str:
    """Returns what tells whether two hubs have the same key, and nothing else of it; makes the file
    if there is none."""
    return hmac.digest(load_key(path), b"warren: fingerprint", "sha256").hex()


def _make_key(path: Path) -> bytes:
    # Written to another file and renamed, so that a crash leaves the whole key or none.
    key = secrets.token_bytes(_KEY_BYTES)
    temporary = path.with_suffix(".new")
    temporary.unlink(missing_ok=True)
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(key)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    _sync(path.parent)  # without the key, what is encrypted with it is lost
    return key


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
