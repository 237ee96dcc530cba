"""Measures the memory and disk space available to this process."""

from __future__ import annotations

import ctypes
import os
import resource
from pathlib import Path, PurePosixPath
from typing import Final, NamedTuple

ROOT: Final = Path("/")
_V2_FILE, _V1_FILE = "memory.max", "memory.limit_in_bytes"


class Memory(NamedTuple):
    """The memory that this process may use, and the source of that limit."""

    size_bytes: int
    source: str


class DiskSpace(NamedTuple):
    """A file system."""

    free_bytes: int
    size_bytes: int


def memory(root: Path = ROOT) -> Memory | None:
    """Returns the least of physical memory, control group limits and RLIMIT_AS; None if unknown."""
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
    """Returns the resident set size of the process; None where the system does not say."""
    try:
        pages = int((root / "proc/self/statm").read_text().split()[1])
    except (OSError, ValueError, IndexError):
        return None
    return pages * resource.getpagesize()


def disk(path: Path) -> DiskSpace | None:
    """Returns the size of the file system of `path`; None if that fails."""
    try:
        found = os.statvfs(path)
    except OSError:
        return None
    return DiskSpace(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)


def trim() -> None:
    """Returns free memory to the system; slow, so call it in a thread."""
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
    """Returns the least limit of the control groups of version 2 (one line `0::/path`) and
    version 1 (`4:memory:/path`).

    The groups above a group limit it too. In a container the path may be the one outside, and the
    limit be at the root.
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
