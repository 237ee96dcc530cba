"""What `warren doctor` looks at on this machine: what a server with these settings would meet."""

from __future__ import annotations

import os
import resource
import shutil
import socket
from collections.abc import Container, Iterator
from pathlib import Path
from typing import Final

from ..configuration.settings import NONE, Settings
from .exit_codes import reason_of
from .findings import Finding, ok, problem, warning

FEW_FILES: Final = 10_000
CONNECT_TIMEOUT_S: Final = 5.0
LITTLE_DISK_BYTES: Final = 2 * 1024**3
_GIB: Final = 1024**3


def look_at_machine(settings: Settings, served: Container[int]) -> Iterator[Finding]:
    """Yields findings about file limit, data directory and ports; `served` are the ports of a
    Warren that runs on this machine."""
    yield _files()
    yield from _data(Path(settings.data))
    for name in ("amqp", "http") if settings.engine_address() is None else ("http",):
        port = getattr(settings, f"{name}_port")
        if port in served:
            yield ok(f"port {port} ({name})", "is that of the server that runs here")
        elif port not in (NONE, 0):
            yield _port(name, settings.host, int(port))


def look_at_callback(host: str, port: int) -> Finding:
    """Says whether a callback's address takes connections from this machine."""
    subject = f"callback {host}:{port}"
    try:
        socket.create_connection((host, port), CONNECT_TIMEOUT_S).close()
    except OSError as error:
        return problem(
            subject, f"no connection from this machine: {reason_of(error)}",
            "check name, firewall and that it listens; an application without a public address can "
            "use 'warren tunnel'",
        )  # fmt: skip
    return ok(subject, "takes connections from this machine")


def _files() -> Finding:
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < FEW_FILES:
        return warning(
            "file limit", f"a process may open {hard:,} files, and each connection needs one",
            "raise it: 'ulimit -Hn 1048576', or LimitNOFILE= in the unit",
        )  # fmt: skip
    shown = "any number of" if hard == resource.RLIM_INFINITY else f"{hard:,}"
    return ok("file limit", f"a process may open {shown} files")


def _data(directory: Path) -> Iterator[Finding]:
    """Looks at the directory, or at the first that exists above it."""
    subject = f"data {directory}"
    existing = next(path for path in (directory.absolute(), *directory.absolute().parents)
                    if path.exists())  # fmt: skip
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        yield problem(
            subject, f"{existing} can't be written by this user",
            "give it to the user of the server, or choose another one with --data",
        )  # fmt: skip
        return
    free_bytes = shutil.disk_usage(existing).free
    shown = f"{free_bytes / _GIB:.1f} GiB are free"
    if free_bytes < LITTLE_DISK_BYTES:
        advice = "make room: below the disk free limit (1 GiB) publishers have to wait"
        yield warning(subject, shown, advice)
    else:
        yield ok(subject, shown)


def _port(name: str, host: str, port: int) -> Finding:
    """Says whether a server could listen."""
    subject = f"port {port} ({name})"
    address = "127.0.0.1" if host == "localhost" else host
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((address, port))
        except OSError as error:
            return warning(
                subject, f"can't be listened on at {address}: {error.strerror}",
                "this is as it should be if Warren runs and --url is another one's; if not, stop "
                f"what uses it, or choose another one with --{name}-port",
            )  # fmt: skip
    return ok(subject, f"is free at {address}")
