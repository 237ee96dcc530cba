"""WebSocket messages that a client begins and does not complete: their memory is bounded."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from tests.support.websocket import CLOSE, client_frame
from warrenmq.app.http.partial_messages import TRY_AGAIN_LATER, PartialMessages
from warrenmq.app.live.commands import Commands
from warrenmq.app.live.socket import LiveSocket
from warrenmq.app.tunnels.socket import RequestSocket
from warrenmq.core.clock import ManualClock
from warrenmq.core.resources.partial_content import MEMORY_IS_SHORT, PART_BYTES, PartialContents
from warrenmq.core.wire.websocket import Ending
from warrenmq.hub.tunnels.budget import ByteBudget
from warrenmq.hub.tunnels.pending_request import new_id
from warrenmq.hub.tunnels.registration import TunnelRegistration
from warrenmq.hub.tunnels.settings import TunnelSettings
from warrenmq.hub.tunnels.tunnel import Tunnel

TEXT = 1
HALF = client_frame(TEXT, bytes(600), final=False)
WHOLE = client_frame(TEXT, bytes(600))


@pytest.fixture
def unfinished() -> PartialContents:
    found = PartialContents()
    found.owner_max_bytes = 1_000
    return found


def messages(unfinished: PartialContents) -> tuple[PartialMessages, list[Ending]]:
    ended: list[Ending] = []
    return PartialMessages(10_000, unfinished, "ada", ended.append), ended


def test_they_count_until_they_are_complete(unfinished: PartialContents) -> None:
    first, _ = messages(unfinished)
    assert first.receive_messages(WHOLE + HALF) == [bytes(600)]
    assert unfinished.bytes == 600 + PART_BYTES
    other, _ = messages(unfinished)
    assert other.receive_messages(HALF) == []
    assert other.ended is not None and other.ended.code == TRY_AGAIN_LATER
    assert first.receive_messages(client_frame(0, b"rest")) == [bytes(600) + b"rest"]
    assert unfinished.bytes == 0
    again, _ = messages(unfinished)
    again.receive_messages(HALF[:300])
    again.receive_messages(HALF[300:])
    assert (again.ended, unfinished.bytes) == (None, 600 + PART_BYTES)


def test_they_end_when_memory_is_short(unfinished: PartialContents) -> None:
    inbound, ended = messages(unfinished)
    inbound.receive_messages(HALF)
    unfinished.shrink(0)
    assert ended == [Ending(TRY_AGAIN_LATER, MEMORY_IS_SHORT, by_client=False)]
    assert unfinished.bytes == 0


def live_socket(unfinished: PartialContents) -> Any:
    context, user = SimpleNamespace(unfinished=unfinished), SimpleNamespace(name="ada")
    commands = Commands(cast(Any, context), cast(Any, user), cast(Any, None), None)
    reader = SimpleNamespace(source=None, lost=lambda: None, form=SimpleNamespace(hello=b""))
    return LiveSocket(cast(Any, reader), commands)


def request_socket(unfinished: PartialContents) -> Any:
    registration = TunnelRegistration("ada", "", "", 60, 0.0)
    tunnel = Tunnel(registration, TunnelSettings(), ByteBudget(1_000), ManualClock())
    return RequestSocket(tunnel, new_id(), "http://hub/private", unfinished)


class OpenTransport:
    """Keeps what is written."""

    def __init__(self) -> None:
        self.written = b""
        self.closing = False

    def write(self, data: bytes) -> None:
        self.written += data

    def set_write_buffer_limits(self, high: int) -> None:
        """Is never full."""

    def get_write_buffer_size(self) -> int:
        return 0

    def get_extra_info(self, name: str) -> None:
        """Has no socket."""

    def is_closing(self) -> bool:
        return self.closing

    def resume_reading(self) -> None:
        """Reads always."""

    def close(self) -> None:
        self.closing = True


@pytest.mark.parametrize("make", [live_socket, request_socket])
async def test_both_kinds_of_connections(
    unfinished: PartialContents, make: Callable[[PartialContents], Any]
) -> None:
    lost, ended = make(unfinished), make(unfinished)
    lost.connection_made(OpenTransport())
    lost.data_received(HALF)
    assert unfinished.bytes == 600 + PART_BYTES
    lost.connection_lost(None)
    assert unfinished.bytes == 0
    transport = OpenTransport()
    ended.connection_made(transport)
    ended.data_received(HALF)
    unfinished.shrink(0)
    assert transport.closing
    assert transport.written[:1] == bytes((0x80 | CLOSE,))
    assert TRY_AGAIN_LATER.to_bytes(2, "big") in transport.written
