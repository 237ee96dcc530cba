"""The messages on the pipes of a worker process.

The server sends requests, each with the name of a function and a payload. The process sends a reply
when it has started, and one for each request.
"""

from __future__ import annotations

import struct
from enum import IntEnum

REQUEST = struct.Struct("!HI")
"""The lengths of the function's name and of the payload, which follow."""
REPLY = struct.Struct("!BI")
"""The `ReplyStatus`, and the length of the result, which follows."""


class ReplyStatus(IntEnum):
    DONE = 0
    REFUSED = 1
    """The function raised a `WarrenError`; the result is its text."""
    OUT_OF_MEMORY = 2
    FAILED = 3
    """The function raised something else; the traceback is on stderr."""
