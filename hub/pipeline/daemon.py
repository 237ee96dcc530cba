"""Spark's Python daemon, whose processes end without a word when Spark needs no more of a task.

Spark closes the connection to such a process where a query ends, or has enough rows, and when the
session ends. PySpark takes that for a failure of the task, and prints a traceback for each process,
though nothing has failed.
"""

from __future__ import annotations

import socket
from typing import Final

from pyspark import daemon

_END: Final = 1
_serve = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """Serves one task. Returns a number other than 0, with which the process ends, if Spark has
    closed the connection."""
    try:
        return _serve(sock, authenticated)
    except ConnectionError:
        return _END


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
