"""Backups as files: a directory like a data directory, with a manifest.

The manifest, `backup.json`, has the size and the digest of each file. It is written last, so a
directory without it is no backup.
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from ...core.errors import ConfigError
from ...core.store.disk import make_directory
from ...core.store.offline import LOG
from ..data_directory import LOCK_FILE, locked
from .exit_codes import reason_of
from .progress import Progress

MANIFEST: Final = "backup.json"
FORMAT: Final = 1
RESTORING: Final = "restoring"
"""Folder of a data directory in which a restore collects the files, until all are there."""
_PIECE_BYTES: Final = 1024 * 1024


@dataclass(frozen=True, slots=True)
class BackupManifest:
    """What a backup consists of: sizes and digests by path, and what the server says of it."""

    files: Mapping[str, Mapping[str, Any]]
    snapshot: Mapping[str, Any]

    @property
    def size_bytes(self) -> int:
        return sum(int(file["bytes"]) for file in self.files.values())


def require_empty(directory: Path, but: frozenset[str] = frozenset()) -> None:
    """Raises `ConfigError` if a directory has files."""
    try:
        found = sorted({path.name for path in directory.iterdir()} - but)
    except FileNotFoundError:
        return
    except OSError as error:
        raise ConfigError(f"{directory}: {error.strerror}") from error
    if found:
        raise ConfigError(
            f"{directory} has files, such as '{found[0]}': give a directory that is empty or "
            "does not exist"
        )


def sizes(directory: Path) -> int:
    """Returns the bytes of all files below a directory. Raises `OSError`."""
    return sum(path.stat().st_size for path in _files(directory))


def copy(
    source: Path, target: Path, snapshot: Mapping[str, Any], progress: Progress
) -> BackupManifest:
    """Copies a snapshot, synced, and writes the manifest. Raises `OSError`."""
    make_directory(target, 0o700)
    files = {}
    for path in _files(source):
        name = path.relative_to(source).as_posix()
        files[name] = _copied(path, target / name, progress)
    manifest = BackupManifest(files, snapshot)
    text = json.dumps({"format": FORMAT, **snapshot, "files": files}, indent=1)
    _write(target / MANIFEST, text.encode())
    _sync(target)
    return manifest


def read_manifest(directory: Path) -> BackupManifest:
    """Raises `ConfigError` for a directory that is no backup."""
    file = directory / MANIFEST
    try:
        found = json.loads(file.read_bytes())
        files, version = found.pop("files"), found.pop("format")
    except FileNotFoundError:
        raise ConfigError(f"{file} is missing: not a complete backup") from None
    except (OSError, ValueError, KeyError, AttributeError) as error:
        raise ConfigError(f"{file} can't be read: {reason_of(error)}") from error
    if version != FORMAT:
        raise ConfigError(f"{file} has format {version}, this Warren reads {FORMAT}: update it")
    for name in files:
        if Path(name).is_absolute() or ".." in Path(name).parts:
            raise ConfigError(f"{file} names '{name}', which is outside of the backup")
    return BackupManifest(files, found)


def restore(backup: Path, data: str, manifest: BackupManifest, progress: Progress) -> None:
    """Copies a backup into an empty data directory, which has all of it or nothing.

    Raises `ConfigError` for a directory in use or with files, and for damaged files.
    """
    require_empty(Path(data), frozenset((LOCK_FILE, RESTORING)))
    with locked(data) as directory:
        collected = directory / RESTORING
        shutil.rmtree(collected, ignore_errors=True)  # of a restore that was interrupted
        try:
            _collect(backup, collected, manifest, progress)
            # The log comes last: a directory without it is not taken for a restored one.
            for path in sorted(collected.iterdir(), key=lambda path: path.name == LOG):
                path.rename(directory / path.name)
        finally:
            shutil.rmtree(collected, ignore_errors=True)
        _sync(directory)


def _collect(backup: Path, target: Path, manifest: BackupManifest, progress: Progress) -> None:
    """Copies the files. Raises `ConfigError` for one that is damaged."""
    make_directory(target, 0o700)
    for name, expected in manifest.files.items():
        if _copied(backup / name, target / name, progress) != expected:
            raise ConfigError(f"{backup / name} is damaged: its digest is not that of {MANIFEST}")


def _files(directory: Path) -> Iterator[Path]:
    return (path for path in sorted(directory.rglob("*")) if path.is_file())


def _copied(source: Path, target: Path, progress: Progress) -> dict[str, Any]:
    """Copies a file; returns its size and digest."""
    make_directory(target.parent, 0o700)
    digest, size = hashlib.sha256(), 0
    with source.open("rb") as original, _opened(target) as file:
        while piece := original.read(_PIECE_BYTES):
            digest.update(piece)
            file.write(piece)
            size += len(piece)
            progress(len(piece))
        file.flush()
        os.fsync(file.fileno())
    return {"bytes": size, "sha256": digest.hexdigest()}


def _write(target: Path, raw: bytes) -> None:
    with _opened(target) as file:
        file.write(raw)
        file.flush()
        os.fsync(file.fileno())


def _opened(target: Path) -> Any:
    """Creates a file that only its owner can read."""
    return open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb")


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
