"""Keeps a second run out of a job's directory."""

from __future__ import annotations

import fcntl
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from .errors import OutputError

LOCK: Final = "_lock"
_HOLDER_MAX_BYTES: Final = 300


@contextmanager
def exclusive(directory: Path) -> Iterator[None]:
    """Raises `OutputError` on entry while another process is within, on another machine too if the
    file system's locks reach it, or if there can be no lock. A process that is killed holds none.
    """
    try:
        descriptor = os.open(directory / LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise OutputError(f"{directory / LOCK} can't be written: {error.strerror}") from error
    try:
        _take(descriptor, directory)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, directory: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"process {os.getpid()} on {socket.gethostname()}".encode(), 0)
    except BlockingIOError:
        holder = os.read(descriptor, _HOLDER_MAX_BYTES).decode(errors="replace")
        raise OutputError(
            f"--out {directory} is in use by another run ({holder}): wait until it ends, or name "
            "another directory"
        ) from None
    except OSError as error:
        raise OutputError(f"--out {directory} can't be locked: {error.strerror}") from error
