"""Checks which Spark a job is to run on, before one is started: Spark itself looks for an
unreachable master for a minute and a half, and then says nothing of it."""

from __future__ import annotations

import re
import socket
from typing import Final
from urllib.parse import urlsplit

from .errors import OptionError

_LOCAL: Final = re.compile(r"local(\[([1-9]\d*|\*)(,[1-9]\d*)?\])?")
_STANDALONE: Final = "spark://"
_OTHERS: Final = re.compile(r"yarn|k8s://\S+")
_PATIENCE_S: Final = 5.0


def check_master(master: str) -> None:
    """Raises `OptionError` for what Spark does not know, and for a standalone master that can't be
    reached; of several one has to be."""
    if master.startswith(_STANDALONE):
        _require_any(master)
    elif not _LOCAL.fullmatch(master) and not _OTHERS.fullmatch(master):
        raise OptionError(
            f"--master {master}: give local[PROCESSORS,ATTEMPTS], as local[*,4], or "
            "spark://HOST:7077"
        )


def _require_any(master: str) -> None:
    failures = []
    for place in master.removeprefix(_STANDALONE).split(","):
        try:
            socket.create_connection(_address(master, place), _PATIENCE_S).close()
            return
        except OSError as error:
            failures.append(f"{place}: {error.strerror or error}")
    raise OptionError(
        f"--master {master} can't be reached: {'; '.join(failures)}; start Spark's master, or "
        "leave the option out to run on this machine"
    )


def _address(master: str, place: str) -> tuple[str, int]:
    """Returns host and port; raises `OptionError` unless the text is HOST:PORT."""
    try:
        parts = urlsplit(f"//{place}")
        if parts.hostname and parts.port and parts.netloc == place:
            return parts.hostname, parts.port
    except ValueError:
        pass  # A port that is none.
    raise OptionError(f"--master {master}: '{place}' is no HOST:PORT; give spark://HOST:7077")
