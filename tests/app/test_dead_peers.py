"""A client that vanishes: its packets are lost, and it closes nothing."""

from __future__ import annotations

import shutil
import subprocess
import sys

import pytest

OWN_NETWORK = ["unshare", "--map-root-user", "--net"]
PROGRAM = """
import asyncio, socket, subprocess
from types import SimpleNamespace
import uvloop
from warrenmq.app.http import dead_peers
from warrenmq.app.live.connection import LiveConnection

dead_peers.ACKNOWLEDGED_S = 1

async def main():
    lost = asyncio.Event()
    reader = SimpleNamespace(form=SimpleNamespace(hello=b""), lost=lost.set)
    connection = LiveConnection(reader)
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: connection, "127.0.0.1", 0)
    with socket.create_connection(server.sockets[0].getsockname()):
        while not hasattr(connection, "_transport"):
            await asyncio.sleep(0)
        subprocess.run(["ip", "link", "set", "lo", "down"], check=True)
        connection.write(b"sign of life")
        await lost.wait()
    print("lost")

subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
uvloop.run(main())
"""


def test_its_connection_ends() -> None:
    if (
        shutil.which("ip") is None
        or subprocess.run([*OWN_NETWORK, "true"], capture_output=True).returncode
    ):
        pytest.skip("no network of one's own: unshare, or ip, is missing or not permitted")
    done = subprocess.run(
        [*OWN_NETWORK, sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.returncode) == ("lost\n", 0), done.stderr
