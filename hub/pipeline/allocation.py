"""Keeps freed memory in the process of a task, which soon needs as much again.

The arrays of a batch have hundreds of kilobytes each. glibc gives such memory back to the system
when it is freed, so for each batch the system maps and clears pages again: a quarter of the
processor's time of decoding.
"""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from typing import Final

_TRIM_THRESHOLD, _TOP_PAD, _MMAP_THRESHOLD = -1, -2, -3
_MIB: Final = 1024 * 1024
_SETTINGS: Final = {
    _MMAP_THRESHOLD: 32 * _MIB,  # The most that glibc takes; answers have 8 MiB.
    _TRIM_THRESHOLD: 128 * _MIB,
    _TOP_PAD: 16 * _MIB,
}
"""What glibc maps and unmaps by itself; how much that is free it keeps; how much more than it needs
it asks for. A task keeps up to the second of these."""


@cache
def keep_freed_memory() -> None:
    """Tells the C library to do so, once; nothing where it is not glibc."""
    if not sys.platform.startswith("linux"):
        return
    library = ctypes.CDLL(None)
    if not hasattr(library, "gnu_get_libc_version"):
        return
    for parameter, value in _SETTINGS.items():
        library.mallopt(parameter, value)
