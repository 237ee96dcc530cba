"""`warren definitions export` and `import`: the definitions of a stopped server."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ...core.errors import ConfigError
from ..data_directory import locked

if TYPE_CHECKING:
    from ...core.store.offline import OfflineLog

STANDARD = "-"
"""File name for standard input or output."""


def export_definitions(data: str, file: str) -> None:
    """Writes the definitions to a file that only its owner can read: it has password hashes.

    Raises `ConfigError` if a server uses the directory, for damaged data, or if the file can't be
    written.
    """
    from .export import exported

    with opened(data) as log:
        write(exported(log.definitions), file)


def write(raw: bytes, file: str) -> None:
    """Writes a document to a file, or to the standard output. Raises `ConfigError`."""
    if file == STANDARD:
        sys.stdout.buffer.write(raw)
        sys.stdout.buffer.flush()
        return
    try:
        write_private(file, raw)
    except OSError as error:
        raise ConfigError(f"file {file}: {error.strerror}") from error


def write_private(file: str, raw: bytes) -> None:
    """Writes a file that only its owner can read. Raises `OSError`."""
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with open(descriptor, "wb") as target:
        target.write(raw)


def import_definitions(data: str, file: str) -> tuple[int, Sequence[str]]:
    """Applies all of a file or nothing; returns how many definitions have changed, and what was
    left out.

    Raises `ConfigError` naming the place in the file, or as `export_definitions` does.
    """
    from .document import parse
    from .left_out import LeftOut
    from .merge import merged

    # The next start logs its warnings again.
    logging.getLogger("warrenmq").addHandler(logging.NullHandler())
    raw, left_out = read(file), LeftOut()
    with opened(data) as log:
        try:
            changes = merged(log.definitions, parse(raw, left_out), left_out)
        except ConfigError as error:
            raise ConfigError(f"file {file}: {error}; nothing was changed") from error
        if changes:
            _change(log, changes)
    return len(changes), left_out.sentences


def _change(log: OfflineLog, changes: dict[bytes, bytes | None]) -> None:
    try:
        log.change(changes)
    except OSError as error:
        raise ConfigError(f"the changes can't be written: {error.strerror or error}") from error


def read(file: str) -> bytes:
    """Returns a document from a file, or from the standard input. Raises `ConfigError`."""
    try:
        return sys.stdin.buffer.read() if file == STANDARD else Path(file).read_bytes()
    except OSError as error:
        raise ConfigError(f"file {file}: {error.strerror}") from error


@contextmanager
def opened(data: str) -> Iterator[OfflineLog]:
    """Opens the log of a data directory, which must exist."""
    from ...core.store.offline import open_offline

    if not Path(data).is_dir():
        raise ConfigError(f"data directory {Path(data).resolve()}: there is none")
    with locked(data) as directory:
        log = open_offline(directory)
        try:
            yield log
        finally:
            log.close()
