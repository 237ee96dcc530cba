"""As many open files as the system allows: each connection is one."""

from __future__ import annotations

import resource

MOST = 1_048_576
"""More is of no use, and some systems refuse to be asked for it."""
MACOS_MOST = 10_240
"""What macOS grants when the hard limit says unlimited but is not."""


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
