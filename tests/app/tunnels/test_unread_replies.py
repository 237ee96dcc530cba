"""Requestors that do not read: their replies count as the memory of tunnels, and not for ever."""

from __future__ import annotations

import asyncio
import socket
from functools import partial
from types import SimpleNamespace
from typing import Any, cast

import pytest
from uvicorn.protocols.http.flow_control import FlowControl

from tests.support.process import wait_until
from tests.support.server import WarrenServer
from tests.support.tunnels import Application, Tunnels, response
from warrenmq.app.access.local_requests import CYCLE
from warrenmq.app.tunnels import replies
from warrenmq.hub.tunnels.reply import Reply

LONG = bytes(15 * 1024 * 1024)
"""Far more than the kernel takes for one connection."""


def ask_and_read_nothing(tunnels: Tunnels, url: str) -> socket.socket:
    """Returns the connection when the reply comes."""
    found = socket.socket()
    found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2048)
    found.connect(("127.0.0.1", tunnels.port))
    host = url.split("/")[2]
    found.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
    assert found.recv(1, socket.MSG_PEEK)
    return found


def test_unread_replies_are_bounded_for_each_owner() -> None:
    """So applications of others go on answering. Labels of development mode have no owner, and
    count by themselves."""
    with WarrenServer(env={"WARREN_TUNNEL_BODY_BYTES": "16777216"}) as server:
        tunnels = Tunnels(server.http_port)
        urls, applications = {}, []
        for label, body in (("long", LONG), ("other", b"short")):
            enrolled = tunnels.enrol(label)
            urls[label] = enrolled.link("related")
            handle = partial(answer, body)
            applications.append(Application(server.http_port, enrolled.link("first"), handle))
        unread = ask_and_read_nothing(tunnels, urls["long"])
        refused = tunnels.ask("GET", urls["long"])
        assert refused.status == 503
        assert b"memory limit of the tunnels of its owner" in refused.body
        assert tunnels.ask("GET", urls["other"]).body == b"short"
        unread.close()
        wait_until(lambda: tunnels.ask("GET", urls["long"]).status == 200, 20.0, "room for it")
        for application in applications:
            application.stop()
        tunnels.close()


def answer(content: bytes, line: str, body: bytes) -> bytes:
    return response(content)


async def test_a_requestor_that_reads_too_slowly_loses_its_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(replies, "SEND_S", 0.01)
    flow = FlowControl(cast(asyncio.Transport, None))
    flow.pause_writing()
    ended: list[str] = []

    def abort() -> None:
        ended.append("aborted")
        flow.resume_writing()

    cycle = SimpleNamespace(flow=flow, transport=SimpleNamespace(abort=abort))
    scope = {"method": "GET", "extensions": {CYCLE: {"cycle": cycle}}}
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    await replies.send_reply(scope, send, Reply(200, [], LONG))
    assert ended == ["aborted"]
    assert [len(one.get("body", b"")) for one in sent] == [0, replies.PIECE_BYTES, 0]
