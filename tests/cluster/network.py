"""A network of this process alone, in which a node can be cut off; as root, on Linux."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

from tests.support.rabbitmq import RabbitMQServer

HOSTS = ("127.0.0.2", "127.0.0.3", "127.0.0.4")
"""An address for each node; all others have 127.0.0.1."""
INSIDE = "WARREN_TORTURE_NETWORK"
MAKE = 'ip link set lo up && ip rule add pref 100 lookup local && ip rule del pref 0 && exec "$@"'
"""Rules that drop packets come before the table of this machine's addresses."""


def is_private() -> bool:
    return INSIDE in os.environ


def become_private(module: str) -> None:
    """Begins the program anew in a network of its own, if that is possible."""
    unshare = ["unshare", "--net", "sh", "-c", MAKE, "sh"]
    if is_private() or subprocess.run([*unshare, "true"], capture_output=True).returncode:
        return
    os.environ[INSIDE] = "1"
    os.execvp("unshare", [*unshare, sys.executable, "-m", module, *sys.argv[1:]])


def cut_off(node: RabbitMQServer) -> None:
    """Drops all packets from and to a node; a node without an address of its own is halted."""
    if is_private():
        _rules("add", node.host)
    else:
        node.halt()


def reconnect(node: RabbitMQServer) -> None:
    if is_private():
        _rules("del", node.host)
    else:
        node.go_on()


def _rules(change: str, host: str) -> None:
    for side in ("from", "to"):
        _ip("rule", change, side, host, "pref", "10", "blackhole")


def _ip(*arguments: str) -> Sequence[str]:
    done = subprocess.run(["ip", *arguments], check=True, capture_output=True, text=True)
    return done.stdout.splitlines()
