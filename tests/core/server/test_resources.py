"""Monitoring memory and disk, with given measurements."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.amqp import make_broker, names, publish
from tests.support.manual_store import ManualStore
from warrenmq.core.clock import ManualClock
from warrenmq.core.resources.amount import GIB, MIB, Amount, read_amount
from warrenmq.core.server import resources as resources_module
from warrenmq.core.server.listener import Listener
from warrenmq.core.server.machine import DiskSpace, Memory
from warrenmq.core.server.resources import TRIM_PERIODS, Resources

from .support import meet_open, until


class Machine:
    """What is measured."""

    def __init__(self) -> None:
        self.memory: Memory | None = Memory(1000 * MIB, "control group")
        self.disk: DiskSpace | None = DiskSpace(500 * GIB, 1000 * GIB)
        self.rss: int | None = 100 * MIB
        self.rss_after_trim: int | None = None
        self.trims = 0

    def trim(self) -> None:
        self.trims += 1
        if self.rss_after_trim is not None:
            self.rss = self.rss_after_trim


@pytest.fixture
def machine() -> Machine:
    return Machine()


def watch(
    listener: Listener, machine: Machine, memory: str = "0.6", disk_free: str = ""
) -> Resources:
    amount: Amount | None = read_amount(disk_free) if disk_free else None
    resources = Resources(listener, Path(), memory=read_amount(memory), disk_free=amount)
    resources.available = lambda: machine.memory
    resources.rss = lambda: machine.rss
    resources.disk = lambda _: machine.disk
    resources.trim = machine.trim
    resources.set_limits()
    return resources


@pytest.mark.parametrize(
    ("setting", "limit", "rss", "line"),
    [
        ("0.6", 600 * MIB, 850 * MIB,
         "memory limit: 600.0 MiB (0.6 of 1000.0 MiB, control group)"),
        ("1.5", 1500 * MIB, 1500 * MIB,
         "memory limit: 1.5 GiB (1.5 of 1000.0 MiB, control group)"),
        ("64MiB", 64 * MIB, 850 * MIB,
         "memory limit: 64.0 MiB (set, of 1000.0 MiB, control group)"),
        ("0", 0, 0, "memory limit: none (memory_limit is 0)"),
    ],
)  # fmt: skip
async def test_memory_limits(
    listener: Listener, machine: Machine, setting: str, limit: int, rss: int, line: str
) -> None:
    resources = watch(listener, machine, memory=setting)
    bounds = listener.broker.alarms.bounds
    assert (bounds.memory, bounds.rss) == (limit, rss)
    assert resources.lines[0] == line


async def test_unknown_memory_size(
    listener: Listener, machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.memory = None
    resources = watch(listener, machine, memory="0.5")
    assert listener.broker.alarms.bounds.memory == 512 * MIB
    assert resources.lines[0] == "memory limit: 512.0 MiB (0.5 of 1.0 GiB, assumed)"
    (warning,) = caplog.messages
    assert "1.0 GiB is assumed" in warning


@pytest.mark.parametrize(
    ("setting", "size", "limit"),
    [
        ("", 1000 * GIB, GIB), ("", 10 * GIB, GIB // 2), ("0.25", 4 * GIB, GIB),
        ("3GiB", GIB, 3 * GIB), ("0", GIB, 0),
    ],
)  # fmt: skip
async def test_disk_limits(
    listener: Listener, machine: Machine, setting: str, size: int, limit: int
) -> None:
    machine.disk = DiskSpace(size, size)
    resources = watch(listener, machine, disk_free=setting)
    assert listener.broker.alarms.bounds.disk_free == limit
    words = "none" if not limit else f"{limit / (GIB if limit >= GIB else MIB):.1f} "
    assert resources.lines[1].startswith(f"disk free limit: {words}")


async def test_unknown_disk_size(
    listener: Listener, machine: Machine, caplog: pytest.LogCaptureFixture
) -> None:
    machine.disk = None
    await watch(listener, machine).measure()
    assert not listener.broker.alarms.any
    assert "free space" in caplog.text


async def test_buffers_of_clients_are_counted(listener: Listener, machine: Machine) -> None:
    resources = watch(listener, machine, memory="100KiB")
    await resources.measure()
    used = listener.broker.alarms.used_bytes
    peer, transport = meet_open(listener)
    peer.data_received(publish(1, bytes(50_000), routing_key="q")[:-1])
    await resources.measure()
    assert used + 50_000 < listener.broker.alarms.used_bytes < used + 65_000
    assert not listener.broker.alarms.any
    transport.waiting_bytes = 50_000
    await resources.measure()
    assert listener.broker.alarms.reason == "low on memory"
    transport.waiting_bytes = 0
    peer.connection_lost(None)
    await resources.measure()
    assert not listener.broker.alarms.any


async def test_a_full_store_raises_the_disk_alarm(clock: ManualClock, machine: Machine) -> None:
    store = ManualStore()
    listener = Listener(make_broker(store=store, clock=clock))
    resources = watch(listener, machine)
    store.barrier()
    store.refuse()
    await resources.measure()
    assert listener.broker.alarms.reason == "low on disk"
    store.commit()
    await resources.measure()
    assert not listener.broker.alarms.any


async def test_free_memory_is_returned_before_an_rss_alarm(
    listener: Listener, machine: Machine
) -> None:
    resources = watch(listener, machine)
    listener.broker.memory.resident_bytes = 200 * MIB
    machine.rss, machine.rss_after_trim = 900 * MIB, 800 * MIB
    await resources.measure()
    assert machine.trims == 1
    assert not listener.broker.alarms.any
    machine.rss = machine.rss_after_trim = 900 * MIB
    await resources.measure()
    assert machine.trims == 1
    assert listener.broker.alarms.reason == "low on memory"
    for _ in range(TRIM_PERIODS):
        await resources.measure()
    assert machine.trims == 2
    machine.rss = 700 * MIB
    await resources.measure()
    assert not listener.broker.alarms.any


async def test_measuring_continues_after_errors(
    listener: Listener,
    machine: Machine,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(resources_module, "PERIOD_S", 0.001)
    resources = watch(listener, machine)
    await resources.start()
    assert not listener.broker.alarms.any

    def fail() -> int:
        raise ZeroDivisionError

    resources.rss = fail
    await until(lambda: "internal error" in caplog.text)
    resources.rss = lambda: 0
    machine.disk = DiskSpace(0, GIB)
    await until(lambda: listener.broker.alarms.disk)
    await resources.stop()


async def test_blocked_and_unblocked_are_sent_at_once(listener: Listener, machine: Machine) -> None:
    resources = watch(listener, machine)
    listener.broker.users.passwords.check("guest", "guest", loopback=True)
    peer, transport = meet_open(listener)
    peer.connection.pending.notifies_client = True
    machine.disk = DiskSpace(0, GIB)
    await resources.measure()
    peer.data_received(publish(1, b"one", routing_key="q"))
    machine.disk = DiskSpace(100 * GIB, 100 * GIB)
    await resources.measure()
    assert names(transport.replies()) == ["Connection.Blocked", "Connection.Unblocked"]
