"""F7: the disk is full. Nothing is confirmed in vain, consumers go on, and space heals it."""

from __future__ import annotations

import contextlib
import resource
import struct
import subprocess
from functools import partial
from pathlib import Path

import httpx
import pytest

from tests.support.process import wait_until
from tests.support.server import WarrenServer, warren_command

from .clients import connected
from .faults import SmallDisk
from .support import Sender, Taker, amqp, depth, drain, numbers

pytestmark = pytest.mark.promise

MIB = 1024 * 1024
SIZE = 4_000
PATIENCE_S = 2.0
NO_ALARM = ["--disk-free-limit", "0", "--segment-bytes", str(MIB)]


def fill(sender: Sender, limit: int) -> None:
    """Publishes until something is refused or not read any more, at most so many messages."""
    sender.client.socket.settimeout(PATIENCE_S)
    with contextlib.suppress(TimeoutError):
        while not sender.fates.nacked:
            assert sender.sent < limit, f"{sender.sent} messages of {SIZE} bytes found room"
            sender.send(50)
            sender.wait()


def attempt(server: WarrenServer, first: int, count: int) -> list[int]:
    """Publishes; gives the numbers that were confirmed."""
    with Sender(server, "q", size=SIZE, first=first) as sender:
        sender.client.socket.settimeout(PATIENCE_S)
        with contextlib.suppress(TimeoutError):  # it is not read while the disk is full
            sender.publish(count)
        return sender.fates.confirmed


def accepts_again(server: WarrenServer, first: int) -> list[int]:
    """Publishes one by one until one is confirmed; gives its number."""
    confirmed: list[int] = []

    def one_more() -> bool:
        confirmed.extend(attempt(server, first, 1))
        return bool(confirmed)

    wait_until(one_more, 30.0, "a confirm")
    return confirmed


def has_room_for(server: WarrenServer, count: int) -> bool:
    drain(server, "q")
    return len(attempt(server, 100_000, count)) == count


def test_a_full_file_system_refuses_and_heals(tmp_path: Path) -> None:
    data = tmp_path / "disk"
    data.mkdir()
    with (
        SmallDisk(data, 16 * MIB) as disk,
        WarrenServer(dev=True, data=data / "data", args=NO_ALARM, command=disk.command) as server,
        Sender(server, "q", size=SIZE) as sender,
    ):
        fill(sender, 16 * MIB // SIZE)
        confirmed = sender.fates.confirmed
        assert len(confirmed) > MIB // SIZE

        taker = Taker(amqp(server), "q", prefetch=100)
        taken = numbers(taker.take(100))
        assert taken == confirmed[: len(taken)]
        taker.ack()
        taker.leave()

        disk.resize(64 * MIB)
        confirmed += accepts_again(server, 100_000)
        server.kill()
        server.start()
        assert set(confirmed) - set(taken) <= set(numbers(drain(server, "q")))


def test_a_transaction_that_fills_the_disk_is_repeated_and_published_once(tmp_path: Path) -> None:
    data = tmp_path / "disk"
    data.mkdir()
    lengths = struct.pack("<HII", 1, 3, SIZE)
    row = lengths + b"q" + b"\x10\x00\x02" + bytes(SIZE)
    count = 9 * MIB // SIZE  # Staged they fit; published too they do not.
    with (
        SmallDisk(data, 16 * MIB) as disk,
        WarrenServer(dev=True, data=data / "data", args=NO_ALARM, command=disk.command) as server,
        httpx.Client(
            base_url=f"{server.http_url}/transactions/fills/", params={"exchange": ""},
            auth=("guest", "guest"), timeout=60,
        ) as client,
    ):  # fmt: skip
        with connected(amqp(server)) as broker:
            broker.declare_queue("q", durable=True)
        rows = b"WSR1" + struct.pack("<I", count) + row * count
        media_type = {"Content-Type": "application/vnd.warren.rows"}
        assert client.put("1/0/1/0", content=rows, headers=media_type).status_code == 201
        attempts = {"attempts": [[0, 1, 1]]}
        assert client.post("1", json=attempts).status_code == 507
        disk.resize(64 * MIB)
        wait_until(lambda: client.post("1", json=attempts).is_success, 30.0, "the commit")
        repeated = client.post("1", json=attempts).json()
        assert (repeated["published"], repeated["replayed"]) == (count, True)
        server.kill()
        server.start()
        assert depth(server, "q") == count


def test_a_start_on_a_full_disk_drains_and_heals(tmp_path: Path) -> None:
    data = tmp_path / "disk"
    data.mkdir()
    with (
        SmallDisk(data, 16 * MIB) as disk,
        WarrenServer(dev=True, data=data / "data", args=NO_ALARM, command=disk.command) as server,
    ):
        with Sender(server, "q", size=SIZE) as sender:
            fill(sender, 16 * MIB // SIZE)
            confirmed = set(sender.fates.confirmed)
        for _ in range(2):
            server.kill()
            server.start()
        assert confirmed <= set(numbers(drain(server, "q")))
        assert depth(server, "q") == 0
        # As much as fits only where the drained files were.
        count = 8 * MIB // SIZE
        wait_until(partial(has_room_for, server, count), 30.0, f"{count} confirms")
        assert server.stop() == 0


def test_a_file_size_limit_refuses_and_heals(tmp_path: Path) -> None:
    with WarrenServer(dev=True, data=tmp_path / "data", args=NO_ALARM) as server:
        with Sender(server, "q", size=SIZE) as sender:
            sender.publish(10)
            limits = resource.prlimit(server.pid, resource.RLIMIT_FSIZE)
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, (300_000, limits[1]))
            fill(sender, MIB // SIZE * 10)
            resource.prlimit(server.pid, resource.RLIMIT_FSIZE, limits)
            confirmed = sender.fates.confirmed + accepts_again(server, 100_000)
        server.kill()
        server.start()
        assert set(confirmed) <= set(numbers(drain(server, "q")))


def test_a_first_start_without_space_says_so_in_one_line(tmp_path: Path) -> None:
    data = tmp_path / "data"
    limited = ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", *warren_command()]
    command = [*limited, "serve", "--dev", "--data", str(data)]
    found = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert found.returncode == 1
    (line,) = found.stderr.splitlines()
    assert str(data / "lock") in line
    assert "make room" in line
