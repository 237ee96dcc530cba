from __future__ import annotations

from warrenmq.hub.feeds.hosts import HostRoundRobin


def taken(hosts: HostRoundRobin) -> list[str]:
    names = []
    while (turn := hosts.take()) is not None:
        names.append(turn[1])
    return names


def test_a_host_with_many_feeds_delays_only_its_own() -> None:
    hosts = HostRoundRobin(total=3, per_host=2)
    for number in range(4):
        hosts.add("big", f"big{number}")
    hosts.add("small", "small")
    assert taken(hosts) == ["big0", "small", "big1"]
    hosts.done("small")
    assert taken(hosts) == []
    hosts.done("big")
    assert taken(hosts) == ["big2"]


def test_no_more_polls_run_at_once_than_allowed() -> None:
    hosts = HostRoundRobin(total=2, per_host=2)
    for number in range(5):
        hosts.add(f"host{number}", f"feed{number}")
    assert len(taken(hosts)) == 2
    hosts.done("host0")
    assert taken(hosts) == ["feed2"]
