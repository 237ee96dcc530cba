"""The lives of a server under load: how each begins and ends, and what it says meanwhile."""

from __future__ import annotations

import re
import subprocess
from collections import Counter

from tests.bench.client import Address
from tests.support.server import WarrenServer, warren_command

from .site import Site

PLAIN_LINES = ("listening", "ready", "development mode", "memory limit", "disk free limit")
SHUTDOWN_LINE = "with reason 'shutdown'"
NUMBERS = re.compile(r"[\d.,:-]*\d[\d.,:-]*")


class Lives:
    """A server and the site of its clients, who are told of each beginning and end."""

    def __init__(self, server: WarrenServer) -> None:
        self.server = server
        self.site = Site(
            Address(server.host, server.amqp_port), Address(server.host, server.http_port)
        )
        self.said: Counter[str] = Counter()
        """Lines it printed beside the usual ones, numbers aside, and how often."""
        self.output_bytes = 0
        """How much the lives before this one printed."""

    def start(self) -> None:
        """Raises `RuntimeError` with the output of a server that does not get ready."""
        self.server.start()
        self.site.begin_life()

    def stop(self) -> None:
        """Sends SIGTERM; any exit code but 0 is a fault."""
        self.site.end_life()
        if (code := self.server.stop()) != 0:
            self.fault(f"SIGTERM ended it with exit code {code}:\n{self.server.output()}")
        self.read_output()

    def kill(self) -> None:
        self.site.end_life()
        self.server.kill()
        self.read_output()

    def are_going_on(self) -> bool:
        """False, and a fault, when the server has ended by itself."""
        if not self.server.running:
            code = self.server.process.returncode
            self.fault(f"ended by itself with exit code {code}:\n{self.server.output()}")
        return self.server.running

    def verify(self) -> None:
        """Every byte of what a stopped server has left is sound, or it is a fault."""
        command = [*warren_command(), "verify", "--data", str(self.server.data)]
        found = subprocess.run(command, capture_output=True, text=True)
        if found.returncode:
            self.fault(f"verify: {found.stdout}{found.stderr}")

    def read_output(self) -> None:
        """Takes in what a life that is over has printed; a traceback is a fault."""
        output = self.server.output()
        self.output_bytes += len(output)
        if "Traceback" in output:
            self.fault(output)
        for line in output.splitlines():
            if line and not line.startswith(PLAIN_LINES) and SHUTDOWN_LINE not in line:
                self.said[NUMBERS.sub("#", line)] += 1

    def fault(self, what: str) -> None:
        self.site.checker.breaks("server", what)
