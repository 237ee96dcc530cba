"""Requestors that begin bodies and do not complete them: applications reply in spite of that."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

from warrenmq.app.requests.body import read_body
from warrenmq.app.tunnels.host import TunnelHost
from warrenmq.app.tunnels.links import claimed_by
from warrenmq.core.clock import ManualClock
from warrenmq.core.resources.partial_content import PartialContents
from warrenmq.hub.tunnels.budget import ByteBudget
from warrenmq.hub.tunnels.registration import TunnelRegistration
from warrenmq.hub.tunnels.settings import TunnelSettings
from warrenmq.hub.tunnels.tunnel import Tunnel


def receiving(*parts: bytes) -> Any:
    """Gives parts of a body, and nothing more."""
    left = list(parts)

    async def receive() -> Any:
        if not left:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": left.pop(0), "more_body": left or len(parts) == 1}

    return receive


async def test_their_bodies_leave_room_for_replies() -> None:
    unfinished, settings = PartialContents(), TunnelSettings()
    unfinished.owner_max_bytes = 1_000
    registration = TunnelRegistration("busy", "", "", 60, 0.0)
    tunnel = Tunnel(registration, settings, ByteBudget(1_000), ManualClock())
    labels = SimpleNamespace(of=lambda label: tunnel)
    tunnels = SimpleNamespace(budget=None, labels=labels, settings=settings)
    host = TunnelHost(cast(Any, tunnels), unfinished, 5)
    scope = {"client": ("192.0.2.1", 1)}
    request = asyncio.create_task(host(scope, receiving(bytes(900)), cast(Any, None), "busy"))
    while unfinished.bytes < 900:
        await asyncio.sleep(0)
    parts = receiving(bytes(900), b"rest")
    reply = await read_body(parts, 10_000, unfinished, claimed_by(tunnel))
    assert len(reply) == 904
    request.cancel()
