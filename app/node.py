"""This server as the management API shows it: the only node of its cluster."""

from __future__ import annotations

import socket
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from .logs.tail import LogTail
from .totals import QueueTotals

ERLANG: Final = "26.2.5"
"""The version of Erlang that goes with the RabbitMQ version that clients are told; nothing here
runs on it."""


@dataclass(frozen=True, slots=True)
class Listening:
    """A socket that clients connect to; `protocol` is `amqp`, `amqp/ssl`, `http` or `https`."""

    protocol: str
    address: str
    port: int


def node_name() -> str:
    return f"warren@{socket.gethostname()}"


@dataclass(frozen=True, slots=True)
class Node:
    """This server. `started_s` is wall time; `certificates` are the files that TLS listeners
    show."""

    name: str = field(default_factory=node_name)
    started_s: float = field(default_factory=time.time)
    listeners: Sequence[Listening] = ()
    directory: Path = Path()
    certificates: Sequence[Path] = ()
    totals: QueueTotals = field(default_factory=QueueTotals)
    log: LogTail = field(default_factory=LogTail)
