"""The worker process: `python -m warrenmq.hub.workers.main CPU_S MEMORY_BYTES PARENT_PID`.

Reads requests from stdin and writes replies to stdout until stdin ends, as it does when the server
ends in any way. Signals that end a server are ignored: a terminal sends them to all of its
processes, and current calls are still needed while the server drains.
"""

from __future__ import annotations

import ctypes
import math
import os
import resource
import signal
import sys
import traceback
from typing import BinaryIO

from ...core.errors import WarrenError
from .functions import load
from .messages import REPLY, REQUEST, ReplyStatus

_PR_SET_PDEATHSIG = 1
_NICENESS = 10


def main() -> None:
    """Runs the process."""
    cpu_s, memory_bytes, parent = map(int, sys.argv[1:])
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output by mistake must not be taken for a reply
    _confine(memory_bytes)
    _end_with_parent(parent)
    _reply(replies, ReplyStatus.DONE, b"")
    while header := requests.read(REQUEST.size):
        name_length, length = REQUEST.unpack(header)
        name, payload = requests.read(name_length).decode(), requests.read(length)
        if len(payload) < length:
            break  # the server has ended
        _allow_processor_time(cpu_s)
        _reply(replies, *_run(name, payload))


def _run(name: str, payload: bytes) -> tuple[ReplyStatus, bytes]:
    try:
        return ReplyStatus.DONE, load(name)(payload)
    except WarrenError as error:
        return ReplyStatus.REFUSED, str(error).encode(errors="replace")
    except MemoryError:
        return ReplyStatus.OUT_OF_MEMORY, b""
    except Exception:
        traceback.print_exc()
        return ReplyStatus.FAILED, b""


def _reply(replies: BinaryIO, status: ReplyStatus, result: bytes) -> None:
    replies.write(REPLY.pack(status, len(result)))
    replies.write(result)
    replies.flush()


def _confine(memory_bytes: int) -> None:
    """Sets signals, priority and limits of the process."""
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.nice(_NICENESS)  # the server's event loop has precedence
    _limit(resource.RLIMIT_CORE, 0)
    if sys.platform != "darwin":  # it refuses this limit
        _limit(resource.RLIMIT_AS, memory_bytes)


def _end_with_parent(parent: int) -> None:
    """Makes Linux kill this process when its server ends, even during a call.

    On other systems the call goes on until it is done or its time is over.
    """
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit()


def _allow_processor_time(cpu_s: int) -> None:
    """Allows so many seconds from now; the kernel ends the process (SIGXCPU) after them."""
    times = os.times()
    _limit(resource.RLIMIT_CPU, math.ceil(times.user + times.system) + cpu_s)


def _limit(number: int, most: int) -> None:
    """Sets a limit, or the lower one that the server was started with."""
    hard = resource.getrlimit(number)[1]
    resource.setrlimit(number, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


if __name__ == "__main__":
    main()
