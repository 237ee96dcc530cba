"""Memory and disk limits, read from prepared files and from the real system."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from warrenmq.core.server import machine
from warrenmq.core.server.machine import Memory, disk, memory, rss_bytes, trim

MIB = 2**20


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


@pytest.fixture(autouse=True)
def _only_what_the_test_says(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_physical", lambda: 4096 * MIB)
    monkeypatch.setattr(machine, "_address_space", lambda: None)


def test_no_control_group(tmp_path: Path) -> None:
    assert memory(tmp_path) == Memory(4096 * MIB, "physical memory")


def test_version_2_with_a_limit_above(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/system.slice/warren.service\n")
    groups = tmp_path / "sys/fs/cgroup"
    write(groups / "system.slice/warren.service/memory.max", "max\n")
    write(groups / "system.slice/memory.max", f"{512 * MIB}\n")
    assert memory(tmp_path) == Memory(512 * MIB, "control group")
    write(groups / "system.slice/warren.service/memory.max", f"{256 * MIB}\n")
    assert memory(tmp_path) == Memory(256 * MIB, "control group")


def test_version_2_in_a_container(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "0::/../../docker/0123\n")
    write(tmp_path / "sys/fs/cgroup/memory.max", f"{128 * MIB}\n")
    assert memory(tmp_path) == Memory(128 * MIB, "control group")


def test_version_1(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/cgroup", "5:cpu,cpuacct:/x\n4:memory:/docker/0123\n0::/\n")
    mount = tmp_path / "sys/fs/cgroup/memory"
    write(mount / "memory.limit_in_bytes", "9223372036854771712\n")
    assert memory(tmp_path) == Memory(4096 * MIB, "physical memory")
    write(mount / "docker/0123/memory.limit_in_bytes", f"{64 * MIB}\n")
    assert memory(tmp_path) == Memory(64 * MIB, "control group")


def test_address_space(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_address_space", lambda: 1024 * MIB)
    assert memory(tmp_path) == Memory(1024 * MIB, "RLIMIT_AS")


def test_unknown_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "_physical", lambda: None)
    assert memory(tmp_path) is None


def test_real_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    found = memory()
    assert found is not None
    assert 0 < found.size_bytes <= os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (7 * MIB, resource.RLIM_INFINITY))
    assert memory() == Memory(7 * MIB, "RLIMIT_AS")


def test_rss(tmp_path: Path) -> None:
    write(tmp_path / "proc/self/statm", "1000 250 10 1 0 100 0\n")
    assert rss_bytes(tmp_path) == 250 * resource.getpagesize()
    write(tmp_path / "proc/self/statm", "")
    assert rss_bytes(tmp_path) is None
    assert rss_bytes(tmp_path / "nothing") is None


def test_disk(tmp_path: Path) -> None:
    found = disk(tmp_path)
    assert found is not None
    assert 0 <= found.free_bytes <= found.size_bytes
    assert disk(tmp_path / "nothing") is None


def test_trim_does_not_fail() -> None:
    trim()
