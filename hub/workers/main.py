"""The worker process: `python -m warrenmq.hub.workers.main CPU_S MEMORY_BYTES PARENT_PID`.

Reads requests from stdin and writes replies to stdout until stdin ends, which it does with the
server, however that ends. It ignores the signals that end a server: a terminal sends them to all
of its processes, and what is under way is still wanted while the server drains.
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
from .messages import REPLY, REQUEST, Status

_PR_SET_PDEATHSIG = 1
_NICENESS = 10


def main() -> None:
    cpu_s, memory_bytes, parent = map(int, sys.argv[1:])
    requests, replies = sys.stdin.buffer, os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what is printed by mistake must not be taken for a reply
    _confine(memory_bytes)
    _end_with(parent)
    _reply(replies, Status.DONE, b"")
    while header := requests.read(REQUEST.size):
        name_length, length = REQUEST.unpack(header)
        name, payload = requests.read(name_length).decode(), requests.read(length)
        if len(payload) < length:
            break  # the server is gone
        _allow_processor(cpu_s)
        _reply(replies, *_run(name, payload))


def _run(name: str, payload: bytes) -> tuple[Status, bytes]:
    try:
        return Status.DONE, load(name)(payload)
    except WarrenError as error:
        return Status.REFUSED, str(error).encode(errors="replace")
    except MemoryError:
        return Status.OUT_OF_MEMORY, b""
    except Exception:
        traceback.print_exc()
        return Status.FAILED, b""


def _reply(replies: BinaryIO, status: Status, result: bytes) -> None:
    replies.write(REPLY.pack(status, len(result)))
    replies.write(result)
    replies.flush()


def _confine(memory_bytes: int) -> None:
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    os.nice(_NICENESS)  # the server's loop goes first
    _limit(resource.RLIMIT_CORE, 0)
    if sys.platform != "darwin":  # which refuses it
        _limit(resource.RLIMIT_AS, memory_bytes)


def _end_with(parent: int) -> None:
    """Has Linux end this process with its server also in the middle of its work; elsewhere it goes
    on until the work is done or its time is over."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        sys.exit()


def _allow_processor(cpu_s: int) -> None:
    """From now on; the kernel ends the process (SIGXCPU) when it has used them up."""
    times = os.times()
    _limit(resource.RLIMIT_CPU, math.ceil(times.user + times.system) + cpu_s)


def _limit(number: int, most: int) -> None:
    """Or less, where whoever has started the server allows no more."""
    hard = resource.getrlimit(number)[1]
    resource.setrlimit(number, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard))


if __name__ == "__main__":
    main()
