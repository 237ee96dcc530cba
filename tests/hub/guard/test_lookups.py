"""Names whose server is silent."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from warrenmq.hub.errors import CallbackRefused
from warrenmq.hub.guard.guard import Guard
from warrenmq.hub.settings import HubSettings


async def test_a_silent_name_server_takes_one_thread_for_each_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    silence = asyncio.Event()

    async def getaddrinfo(host: str, *_args: object, **_named: object) -> list[Any]:
        asked.append(host)
        if host == "silent.example":
            await silence.wait()
            raise OSError("no server could be reached")
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("8.8.8.8", 0))]

    monkeypatch.setattr(asyncio.get_running_loop(), "getaddrinfo", getaddrinfo)
    hasty = Guard(HubSettings(resolve_timeout_s=0.01))
    for _ in range(2):
        asking = (hasty.resolve("silent.example", port) for port in (80, 80, 443))
        refused = await asyncio.gather(*asking, return_exceptions=True)
        assert [str(one) for one in refused] == ["hub.callback: does not resolve in time"] * 3
    assert await hasty.resolve("example.org", 80)
    assert asked == ["silent.example", "example.org"]
    silence.set()
    with pytest.raises(CallbackRefused, match="no server could be reached"):
        await hasty.resolve("silent.example", 80)
    await hasty.resolve("example.org", 80)
    assert asked[2:] == ["example.org"]  # an answer is for those who asked for it
