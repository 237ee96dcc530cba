"""The messages on the pipes of a worker process.

To the process: a request, which is the name of a function and its payload. From it: one reply for
each request, after a first one that says that it has started.
"""

from __future__ import annotations

import struct
from enum import IntEnum

REQUEST = struct.Struct("!HI")
"""Length of the function's name and of the payload, which follow."""
REPLY = struct.Struct("!BI")
"""`Status` and length of the result, which follows."""


class Status(IntEnum):
    DONE = 0
    REFUSED = 1
    """The function raised a `WarrenError`; the result is its text."""
    OUT_OF_MEMORY = 2
    FAILED = 3
    """The function raised something else; the traceback is on stderr."""
