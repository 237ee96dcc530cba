"""Raises the limit of open files, of which each connection uses one."""

from __future__ import annotations

import fcntl
import os
import resource

MOST = 1_048_576
"""Some systems refuse to set a higher limit."""
MACOS_MOST = 10_240
"""The limit that macOS grants if the hard limit claims to be unlimited."""

ROOM = 65_536
"""Size of the descriptor table to allocate in advance; it takes 512 KiB of kernel memory."""


def raise_file_limit() -> int:
    """Raises the soft limit of open files to the hard one; returns the limit in force."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = MOST if hard == resource.RLIM_INFINITY else min(hard, MOST)
    for wanted in (most, MACOS_MOST):
        if soft != resource.RLIM_INFINITY and soft < wanted and _set(wanted, hard):
            return wanted
    return soft


def _set(soft: int, hard: int) -> bool:
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    except (ValueError, OSError):
        return False
    return True


def make_room(limit: int) -> None:
    """Grows the kernel's table of file descriptors to the size that connections may need.

    The table doubles when it is full, at 256, 512, 1,024 files and so on, and never shrinks. In a
    process with several threads, growing it waits until no processor uses the old table any more,
    which stopped the event loop for 10 to 80 ms. So this is called before the first thread starts.
    """
    descriptor = os.open(os.devnull, os.O_RDONLY)
    try:
        os.close(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, min(ROOM, limit) - 1))
    finally:
        os.close(descriptor)
