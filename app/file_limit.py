"""As many open files as the system allows, and room for them: each connection is one."""

from __future__ import annotations

import fcntl
import os
import resource

MOST = 1_048_576
"""More is of no use, and some systems refuse to be asked for it."""
MACOS_MOST = 10_240
"""What macOS grants when the hard limit says unlimited but is not."""

ROOM = 65_536
"""Half a megabyte of the kernel's memory."""


def raise_file_limit() -> int:
    """Raises the soft limit of open files to the hard one; gives the limit in force."""
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
    """Lets the kernel's table of open files grow now, to what connections may need.

    It doubles when it is full, at 256, 512, 1,024 files and so on, and never shrinks. Where a
    process has several threads whoever opens a file then waits until no processor looks at the
    old table any more: 10 to 80 ms, in which the whole loop stood still. So this is to be called
    before the first thread.
    """
    descriptor = os.open(os.devnull, os.O_RDONLY)
    try:
        os.close(fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, min(ROOM, limit) - 1))
    finally:
        os.close(descriptor)
