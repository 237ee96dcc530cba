"""The data directory: created if missing, locked by one process that writes, or by readers."""

from __future__ import annotations

import fcntl
import logging
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..core.errors import ConfigError, StoreFailure
from ..core.store.disk import FULL, make_directory

LOCK_FILE = "lock"
MODE = 0o700
"""Only the owner: it contains messages, keys and password hashes."""
_OTHERS = 0o007

log = logging.getLogger(__name__)


@contextmanager
def locked(path: str) -> Iterator[Path]:
    """Creates and locks the data directory.

    Raises `ConfigError` if it can't be used or another process has locked it, `StoreFailure` if
    the disk is full. The lock belongs to the open file, so it ends with the process, also after a
    crash.
    """
    directory = Path(path).resolve()
    try:
        make_directory(directory, MODE)
        _restrict_permissions(directory)
        descriptor = os.open(directory / LOCK_FILE, os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        if error.errno in FULL:
            raise _full(directory, error) from error
        raise ConfigError(f"data directory {directory}: {_unusable(error)}") from error
    try:
        _lock(descriptor, directory)
        _note_holder(descriptor, directory / LOCK_FILE)
        yield directory
    finally:
        os.close(descriptor)


@contextmanager
def locked_for_reading(path: str) -> Iterator[None]:
    """Locks an existing data directory against servers and commands that write; changes nothing,
    and other readers can lock it too.

    Without a lock file no server has ever used the directory, and there is nothing to lock. Raises
    `ConfigError` if another process has locked it, `OSError` if the lock file can't be read.
    """
    directory = Path(path).resolve()
    try:
        descriptor = os.open(directory / LOCK_FILE, os.O_RDONLY)
    except FileNotFoundError:
        yield
        return
    try:
        if not _takes(descriptor, fcntl.LOCK_SH):
            raise _in_use(descriptor, directory)
        yield
    finally:
        os.close(descriptor)


def _unusable(error: OSError) -> str:
    if isinstance(error, FileExistsError | NotADirectoryError):
        return "it is a file, or below one: choose another one with --data"
    return f"{error.strerror}: choose one that this user can write with --data"


def _restrict_permissions(directory: Path) -> None:
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
    if _takes(descriptor, fcntl.LOCK_EX):
        return
    if _takes(descriptor, fcntl.LOCK_SH):  # The lock file has no process id of a reader.
        raise ConfigError(
            f"data directory {directory} is being read by `warren verify`: wait until that ends, "
            "or choose another directory with --data"
        )
    raise _in_use(descriptor, directory)


def _takes(descriptor: int, kind: int) -> bool:
    """Returns whether no other process holds a lock that excludes this one."""
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _in_use(descriptor: int, directory: Path) -> ConfigError:
    holder = os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
    return ConfigError(
        f"data directory {directory} is in use by another process (pid {holder}): stop that "
        "first, or choose another directory with --data"
    )


def _note_holder(descriptor: int, file: Path) -> None:
    try:
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
    except OSError as error:
        if error.errno in FULL:
            raise _full(file, error) from error
        raise ConfigError(
            f"{file}: can't be written: {error.strerror}; choose another data directory (--data)"
        ) from error


def _full(path: Path, error: OSError) -> StoreFailure:
    return StoreFailure(
        f"{path}: can't be written: {error.strerror}; make room on its file system or choose "
        "another data directory (--data)"
    )
