"""What the machine gives this process: memory and disk, as numbers."""

from __future__ import annotations

import ctypes
import os
import resource
from pathlib import Path, PurePosixPath
from typing import NamedTuple

ROOT = Path("/")
_V2_FILE, _V1_FILE = "memory.max", "memory.limit_in_bytes"


class Memory(NamedTuple):
    """The memory that this process may use, and what says so."""

    size_bytes: int
    source: str


class Disk(NamedTuple):
    """A file system."""

    free_bytes: int
    size_bytes: int


def memory(root: Path = ROOT) -> Memory | None:
    """The least of the physical memory, the limits of all control groups and RLIMIT_AS.

    None if nothing of it can be found out.
    """
    found = [
        Memory(size, source)
        for size, source in (
            (_physical(), "physical memory"),
            (_control_group(root), "control group"),
            (_address_space(), "RLIMIT_AS"),
        )
        if size is not None and size > 0
    ]
    return min(found, default=None)


def rss_bytes(root: Path = ROOT) -> int | None:
    """What the process takes of the physical memory; None where the system does not say."""
    try:
        pages = int((root / "proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize()


def disk(path: Path) -> Disk | None:
    """The file system that holds `path`; None if it can't be asked."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return Disk(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)


def trim() -> None:
    """Gives free memory back to the system; takes a while, so it is for a thread."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError):
        return  # only the GNU library has it


def _physical() -> int | None:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None


def _address_space() -> int | None:
    soft, _ = resource.getrlimit(resource.RLIMIT_AS)
    return None if soft == resource.RLIM_INFINITY else soft


def _control_group(root: Path) -> int | None:
    """Version 2 (one line `0::/path`) or version 1 (`4:memory:/path`), or both side by side.

    A group is limited by those above it too. In a container the path may be that outside, and
    the limit stand at the top.
    """
    try:
        lines = (root / "proc/self/cgroup").read_text().splitlines()
    except OSError:
        return None
    limits: list[int] = []
    for line in lines:
        _, _, rest = line.partition(":")
        controllers, _, group = rest.partition(":")
        if not controllers:
            limits += _limits_above(root / "sys/fs/cgroup", group, _V2_FILE)
        elif "memory" in controllers.split(","):
            limits += _limits_above(root / "sys/fs/cgroup/memory", group, _V1_FILE)
    return min(limits, default=None)


def _limits_above(mount: Path, group: str, name: str) -> list[int]:
    inside = PurePosixPath(group.lstrip("/"))
    limits = []
    for path in (inside, *inside.parents):
        try:
            limits.append(int((mount / path / name).read_text()))
        except (OSError, ValueError):
            continue  # the word `max`, or no such group in here
    return limits
