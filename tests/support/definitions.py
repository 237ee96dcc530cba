"""Users, rights and the like for a server that is about to start."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .server import WarrenServer, warren_command

IMPORT_TIMEOUT_S = 60.0


@contextmanager
def server_with(data: Path, file: dict[str, Any], *, dev: bool = True) -> Iterator[WarrenServer]:
    """A server with these definitions (RabbitMQ's form), imported before its start."""
    with WarrenServer(data=data, dev=dev) as server:  # the first start makes the store
        server.stop()
        subprocess.run(
            [*warren_command(), "definitions", "import", "--data", str(data), "-"],
            input=json.dumps(file).encode(),
            check=True,
            timeout=IMPORT_TIMEOUT_S,
        )
        server.start()
        yield server
