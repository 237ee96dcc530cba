"""The log of a stopped server: its definitions, read and changed, and a look at every byte."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..errors import ConfigError
from .checkpoint import SUFFIX as STATE_SUFFIX
from .checkpoint import decode
from .disk import Disk, RealDisk
from .log import DurableStore
from .record import FILE_HEADER_BYTES, Gap, read_file_header, scan
from .recovery import SUFFIX as LOG_SUFFIX
from .recovery import Recovery

LOG = "log"
"""The store's folder in a data directory."""


class OfflineLog:
    """Definitions of a server that does not run; reading them changes nothing."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.definitions: Mapping[bytes, bytes] = Recovery(disk, read_only=True).run().definitions

    def change(self, changes: Mapping[bytes, bytes | None]) -> None:
        """All of them or none; they are kept when this returns. Raises `OSError`."""
        failures: list[OSError] = []
        store = DurableStore(self._disk, on_failure=failures.append)
        with store.together():
            for key, value in changes.items():
                store.define(key, value)
        store.request()
        store.turned()
        refused = bool(store.barrier())
        store.stop()
        if failures:
            raise failures[0]
        if refused:
            raise OSError("the disk is full")
        self.definitions = dict(store.definitions)

    def close(self) -> None:
        """Nothing is held open between calls."""


def open_offline(directory: Path) -> OfflineLog:
    """`directory` is the data directory of a stopped server.

    Raises `ConfigError` if there is none in it, or one that is damaged or of a newer Warren.
    """
    if not (directory / LOG).is_dir():
        raise ConfigError(f"{directory}: no data of a server; give the directory that it ran with")
    return OfflineLog(RealDisk(directory / LOG))


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found in one file: how much of it is sound, and what is not."""

    name: str
    records: int
    size: int
    faults: tuple[str, ...]


def verify(disk: Disk) -> Iterator[Finding]:
    """Checks every byte that is protected by a checksum; reads only. Raises `OSError`."""
    logs = [name for name in disk.names() if name.endswith(LOG_SUFFIX)]
    for name in disk.names():
        if name.endswith(LOG_SUFFIX):
            yield _verify_segment(name, _read(disk, name), is_last=name == logs[-1])
        elif name.endswith(STATE_SUFFIX):
            yield _verify_checkpoint(name, _read(disk, name))


def _read(disk: Disk, name: str) -> bytes:
    file = disk.open(name)
    try:
        return file.read(0, file.size())
    finally:
        file.close()


def _verify_segment(name: str, data: bytes, *, is_last: bool) -> Finding:
    try:
        header = read_file_header(name, data)
    except ConfigError as error:
        return Finding(name, 0, len(data), (str(error),))
    faults = []
    records, end = 0, FILE_HEADER_BYTES
    for found in scan(header.number, memoryview(data)):
        if isinstance(found, Gap):
            faults.append(f"bytes {found.start} to {found.end - 1} are damaged")
        else:
            records += 1
            end = found.end
    rest = len(data[end:].rstrip(b"\0"))
    if rest and not is_last:
        faults.append(f"bytes {end} to {end + rest - 1} are damaged")
    elif rest:
        faults.append(f"the last record, at offset {end}, is damaged or was never finished")
    return Finding(name, records, len(data), tuple(faults))


def _verify_checkpoint(name: str, data: bytes) -> Finding:
    try:
        read_file_header(name, data)
        state = decode(data)
    except (ConfigError, ValueError) as error:
        return Finding(name, 0, len(data), (str(error),))
    return Finding(name, len(state.definitions), len(data), ())
