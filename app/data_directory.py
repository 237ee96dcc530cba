"""The data directory: made if missing, held by one process at a time."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..core.errors import ConfigError

LOCK_FILE = "lock"


@contextmanager
def held(path: str) -> Iterator[Path]:
    """Raises `ConfigError` if it can't be used or another process holds it.

    The lock is on the open file, so it goes with the process however that ends.
    """
    directory = Path(path).resolve()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise ConfigError(f"data directory {directory}: {error.strerror}") from error
    try:
        _lock(descriptor, directory)
        yield directory
    finally:
        os.close(descriptor)


def _lock(descriptor: int, directory: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
        raise ConfigError(
            f"data directory {directory} is in use by another process (pid {holder})"
        ) from error
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, str(os.getpid()).encode(), 0)
