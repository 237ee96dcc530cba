"""A disk in memory that can lose power, run full and fail.

Unsynced writes are recorded per sector, every version of it; what was done to the
directory and not synced, step by step. `power_cut` gives a disk as it may be found afterwards.
"""

from __future__ import annotations

import errno
import os
import random
from collections.abc import Callable, Sequence
from enum import Enum

SECTOR = 512
CHANGES = frozenset(("create", "write", "sync", "allocate", "truncate", "rename", "remove", "dir"))


class Keep(Enum):
    """What a power cut leaves of unsynced writes."""

    NONE = "none"
    ALL = "all"
    RANDOM = "random"
    REORDERED = "reordered"
    """The later writes without the earlier ones."""


def fault(code: int) -> OSError:
    return OSError(code, os.strerror(code))


class Inode:
    """A file's content: as it is, as it was synced, and the sectors between."""

    def __init__(self, data: bytes = b"") -> None:
        self.data = bytearray(data)
        self.synced = bytes(data)
        self.sizes: list[int] = []
        self.sectors: list[tuple[int, bytes]] = []
        """Writes of sectors since the last sync, in order."""

    def copy(self) -> Inode:
        other = Inode()
        other.data, other.synced = bytearray(self.data), self.synced
        other.sizes, other.sectors = list(self.sizes), list(self.sectors)
        return other

    def write(self, at: int, raw: bytes) -> None:
        end = at + len(raw)
        if end > len(self.data):
            self.resize(end)
        self.data[at:end] = raw
        self._touch(at, end)

    def resize(self, size: int) -> None:
        before = len(self.data)
        if size < before:
            del self.data[size:]
            self._touch(size, before)
        else:
            self.data += bytes(size - before)
        self.sizes.append(size)

    def _touch(self, start: int, end: int) -> None:
        for sector in range(start // SECTOR, -(-end // SECTOR)):
            raw = bytes(self.data[sector * SECTOR : (sector + 1) * SECTOR])
            self.sectors.append((sector, raw.ljust(SECTOR, b"\0")))

    def sync(self) -> None:
        self.synced = bytes(self.data)
        self.sizes.clear()
        self.sectors.clear()

    def after_cut(self, keep: Keep, chance: random.Random) -> bytes:
        if keep is Keep.NONE or not (self.sizes or self.sectors):
            return self.synced
        if keep is Keep.ALL:
            return bytes(self.data)
        if keep is Keep.RANDOM:
            left = [write for write in self.sectors if chance.random() < 0.5]
            size = chance.choice([len(self.synced), *self.sizes])
        else:
            left = self.sectors[chance.randint(0, len(self.sectors)) :]
            size = len(self.data)
        return self._with(left, size)

    def _with(self, left: list[tuple[int, bytes]], size: int) -> bytes:
        found = bytearray(self.synced[:size].ljust(size, b"\0"))
        for sector, raw in left:
            at = sector * SECTOR
            if at < size:
                found[at : at + SECTOR] = raw[: size - at]
        return bytes(found)


class FaultyFile:
    """An open file of a `FaultyDisk`."""

    def __init__(self, disk: FaultyDisk, name: str, inode: Inode) -> None:
        self._disk = disk
        self._name = name
        self._inode = inode

    def write(self, at: int, pieces: Sequence[bytes | bytearray | memoryview]) -> None:
        raw = b"".join(pieces)
        inode = self._inode
        self._disk.operation("write", self._name)
        room = self._disk.room(inode, at + len(raw))
        if room is not None:
            inode.write(at, raw[: max(0, room - at)])
            raise fault(errno.ENOSPC)
        inode.write(at, raw)

    def read(self, at: int, size: int) -> bytes:
        self._disk.operation("read", self._name)
        if any(
            name == self._name and at < (sector + 1) * SECTOR and sector * SECTOR < at + size
            for name, sector in self._disk.bad_sectors
        ):
            raise fault(errno.EIO)
        return bytes(self._inode.data[at : at + size])

    def sync(self) -> None:
        self._disk.operation("sync", self._name)
        self._inode.sync()

    def allocate(self, size: int) -> None:
        self._disk.operation("allocate", self._name)
        if size > len(self._inode.data):
            if self._disk.room(self._inode, size) is not None:
                raise fault(errno.ENOSPC)
            self._inode.resize(size)

    def truncate(self, size: int) -> None:
        self._disk.operation("truncate", self._name)
        if size != len(self._inode.data):
            self._inode.resize(size)

    def size(self) -> int:
        return len(self._inode.data)

    def close(self) -> None:
        """Does nothing: no handle is open."""


class FaultyDisk:
    """Implements `Disk`.

    `before` is called with the kind and the file's name before each operation and may raise
    `OSError`, or take a look at what a crash would leave now. Kinds: those of `CHANGES`, "open"
    and "read". `capacity` is how many bytes fit on it. `bad_sectors`, names of files and numbers,
    can't be read.
    """

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.capacity = 2**40
        self.before: Callable[[str, str], None] = lambda kind, name: None
        self.changes = 0
        self.bad_sectors: set[tuple[str, int]] = set()
        self._names = {name: Inode(data) for name, data in (files or {}).items()}
        self._synced = dict(self._names)
        self._steps: list[tuple[str, str, Inode | None]] = []

    # -- what tests ask of it

    def power_cut(self, keep: Keep, chance: random.Random) -> FaultyDisk:
        """A disk as it may be found after the power went now; this one stays as it is."""
        names = dict(self._synced)
        for old, new, inode in self._kept_steps(keep, chance):
            if old:
                names.pop(old, None)
            if inode is not None:
                names[new] = inode
        cut: dict[int, bytes] = {}
        for inode in names.values():
            if id(inode) not in cut:
                cut[id(inode)] = inode.after_cut(keep, chance)
        return FaultyDisk({name: cut[id(inode)] for name, inode in names.items()})

    def _kept_steps(self, keep: Keep, chance: random.Random) -> list[tuple[str, str, Inode | None]]:
        if keep is Keep.NONE:
            return []
        if keep is Keep.ALL:
            return self._steps
        if keep is Keep.RANDOM:
            return [step for step in self._steps if chance.random() < 0.5]
        return self._steps[chance.randint(0, len(self._steps)) :]

    def killed(self) -> FaultyDisk:
        """The same disk for another process: what was not synced is there, and may go yet."""
        copies: dict[int, Inode] = {}

        def copied(inode: Inode) -> Inode:
            return copies.setdefault(id(inode), inode.copy())

        other = FaultyDisk()
        other._names = {name: copied(inode) for name, inode in self._names.items()}
        other._synced = {name: copied(inode) for name, inode in self._synced.items()}
        other._steps = [(a, b, None if c is None else copied(c)) for a, b, c in self._steps]
        return other

    def files(self) -> dict[str, bytes]:
        return {name: bytes(inode.data) for name, inode in sorted(self._names.items())}

    def used_bytes(self) -> int:
        return sum(len(inode.data) for inode in self._names.values())

    def room(self, inode: Inode, size: int) -> int | None:
        """None if the file may become so long, else how long it may become."""
        more = size - len(inode.data)
        free = self.capacity - self.used_bytes() if more > 0 else 0
        return None if more <= max(0, free) else len(inode.data) + max(0, free)

    def operation(self, kind: str, name: str) -> None:
        self.before(kind, name)
        self.changes += kind in CHANGES

    # -- the port

    def create(self, name: str) -> FaultyFile:
        self.operation("create", name)
        if name in self._names:
            raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), name)
        if self.used_bytes() >= self.capacity:
            raise fault(errno.ENOSPC)
        inode = self._names[name] = Inode()
        self._steps.append(("", name, inode))
        return FaultyFile(self, name, inode)

    def open(self, name: str) -> FaultyFile:
        self.operation("open", name)
        inode = self._names.get(name)
        if inode is None:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        return FaultyFile(self, name, inode)

    def names(self) -> list[str]:
        return sorted(self._names)

    def rename(self, old: str, new: str) -> None:
        self.operation("rename", new)
        inode = self._names[new] = self._names.pop(old)
        self._steps.append((old, new, inode))

    def remove(self, name: str) -> None:
        self.operation("remove", name)
        if name not in self._names:
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), name)
        del self._names[name]
        self._steps.append((name, "", None))

    def sync_directory(self) -> None:
        self.operation("dir", "")
        self._synced = dict(self._names)
        self._steps.clear()

    def free_bytes(self) -> int:
        return max(0, self.capacity - self.used_bytes())
