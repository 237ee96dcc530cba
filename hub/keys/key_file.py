"""A key of random bytes in a file of its own, made at its first use."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

_KEY_BYTES = 32


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
    _sync(path.parent)  # what is sealed with it is worth nothing without it
    return key


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
