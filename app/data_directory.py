"""The data directory: created if missing, locked by one process at a time."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..core.errors import ConfigError
from ..core.store.disk import make_directory

LOCK_FILE = "lock"
MODE = 0o700
"""Only the owner: it contains messages, keys and password hashes."""
_OTHERS = 0o007

log = logging.getLogger(__name__)


@contextmanager
def locked(path: str) -> Iterator[Path]:
    """Creates and locks the data directory.

    Raises `ConfigError` if it can't be used or another process has locked it. The lock belongs to
    the open file, so it ends with the process, also after a crash.
    """
    directory = Path(path).resolve()
    try:
        make_directory(directory, MODE)
        _close_to_others(directory)
        descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise ConfigError(f"data directory {directory}: {error.strerror}") from error
    try:
        _lock(descriptor, directory)
        _note_holder(descriptor, directory / LOCK_FILE)
        yield directory
    finally:
        os.close(descriptor)


def _close_to_others(directory: Path) -> None:
    """Removes the permissions of other users from an existing directory; its group keeps its
    own."""
    mode = stat.S_IMODE(directory.stat().st_mode)
    if not mode & _OTHERS:
        return
    try:
        directory.chmod(mode & ~_OTHERS)
    except PermissionError:  # a volume that belongs to somebody else
        log.warning("data directory %s is open to all users of this machine", directory)


def _lock(descriptor: int, directory: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        holder = os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
        raise ConfigError(
            f"data directory {directory} is in use by another process (pid {holder})"
        ) from error


def _note_holder(descriptor: int, file: Path) -> None:
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    except OSError as error:
        raise ConfigError(
            f"{file}: can't be written: {error.strerror}; make room on its file system or choose "
            "another data directory (--data)"
        ) from error
