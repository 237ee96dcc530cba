"""`/stream` over WebSocket: messages out, publishes with confirms in, and what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from tests.support.server import WarrenServer
from tests.support.streams import LiveSocket
from tests.support.websocket import BINARY, CLOSE, PING, PONG, client_frame

CLOSED = 8


@pytest.fixture
def http(warren: WarrenServer) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=warren.http_url, auth=("guest", "guest")) as client:
        yield client


@pytest.fixture
def socket(http: httpx.Client) -> Iterator[LiveSocket]:
    http.put("/endpoint/x/chat").raise_for_status()
    with LiveSocket(f"{http.base_url}/stream/x/chat") as found:
        assert found.status == 101
        yield found


def items(socket: LiveSocket, count: int) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The next messages and answers, which come in any order."""
    found = socket.take(count)
    return [one for one in found if "id" in one], [one for one in found if "id" not in one]


class TestPublishing:
    def test_a_publish_is_confirmed_by_its_ref(self, socket: LiveSocket) -> None:
        message = {"routing_key": "a", "headers": {"n": 1}, "content_type": "text/plain"}
        socket.send({"publish": {**message, "body": "grüße"}, "ref": 1})
        (found,), answers = items(socket, 2)
        assert answers == [{"confirmed": 1}]
        assert {name: found[name] for name in message} == message
        assert found["body"] == "grüße"

    def test_many_publishes_are_confirmed_in_order(self, socket: LiveSocket) -> None:
        socket.send(*({"publish": {"body": str(at)}, "ref": at} for at in range(100)))
        found, answers = items(socket, 200)
        assert [int(one["body"]) for one in found] == list(range(100))
        assert answers == [{"confirmed": at} for at in range(100)]

    def test_a_body_may_be_base64(self, socket: LiveSocket) -> None:
        socket.send({"publish": {"body_base64": "/wA="}})
        (found,), _ = items(socket, 2)
        assert found["body_base64"] == "/wA="

    def test_an_unrouted_publish_is_confirmed_as_such(self, http: httpx.Client) -> None:
        http.put("/endpoint/x/topics?amqp.exchange_type=topic").raise_for_status()
        with LiveSocket(f"{http.base_url}/stream/x/topics?key=a") as socket:
            socket.send({"publish": {"routing_key": "b"}, "ref": "r"})
            assert socket.next() == {"confirmed": "r", "routed": False}

    def test_a_message_is_published_to_a_queue(self, http: httpx.Client) -> None:
        http.put("/endpoint/q/line").raise_for_status()
        with LiveSocket(f"{http.base_url}/stream/q/line") as socket:
            socket.send({"publish": {"body": "x"}, "ref": 1})
            found, answers = items(socket, 2)
        assert (found[0]["body"], answers) == ("x", [{"confirmed": 1}])

    @pytest.mark.parametrize(
        "command",
        [
            {"publish": "x"},
            {"publish": {"boddy": "x"}},
            {"publish": {"body": "x", "body_base64": ""}},
            {"publish": {"body_base64": "?"}},
            {"publish": {"priority": True}},
            {"publish": {"routing_key": "k" * 256}},
            {"publish": {"expiration": "soon"}},
            {"publish": {}, "ack": "1"},
            {"ack": "1"},
            {"hello": 1},
        ],
    )
    def test_bad_publishes_are_refused_and_the_next_is_confirmed(
        self, socket: LiveSocket, command: dict[str, Any]
    ) -> None:
        socket.send({**command, "ref": 1}, {"publish": {}, "ref": 2})
        _, (refused, confirmed) = items(socket, 3)
        assert (refused["refused"], refused["problem"]["status"]) == (1, 400)
        assert confirmed == {"confirmed": 2}

    def test_a_publish_without_permission_is_refused(
        self, http: httpx.Client, socket: LiveSocket
    ) -> None:
        scopes = [{"read": "x/chat"}]
        made = http.post("/api/hub/tokens", json={"name": "page", "scopes": scopes}).json()
        # A page of any site may connect with a token, since no browser adds one by itself.
        bearer = {"authorization": f"Bearer {made['token']}", "Origin": "https://page.example"}
        with LiveSocket(f"{http.base_url}/stream/x/chat", **bearer) as reader:
            reader.send({"publish": {}, "ref": 1})
            assert reader.next()["problem"]["status"] == 403
            socket.send({"publish": {"body": "read"}})
            assert reader.next()["body"] == "read"

    def test_a_publish_during_an_alarm_is_refused(self) -> None:
        with (
            WarrenServer(env={"WARREN_DISK_FREE_LIMIT": "100000GiB"}) as server,
            LiveSocket(f"{server.http_url}/stream/x/amq.fanout") as socket,
        ):
            socket.send({"publish": {}, "ref": 1})
            assert socket.next()["problem"]["status"] == 507


class TestProtocol:
    def test_json_that_is_none(self, socket: LiveSocket) -> None:
        socket.socket.sendall(client_frame(1, b"{"))
        assert socket.next()["problem"]["status"] == 400

    def test_a_fragmented_message_is_one_command(self, socket: LiveSocket) -> None:
        text = b'{"publish": {"body": "x"}}'
        parts = [client_frame(1, text[:9], final=False), client_frame(PING, b"p")]
        socket.socket.sendall(b"".join([*parts, client_frame(0, text[9:])]))
        assert socket.frame() == (PONG, b"p")
        assert len(socket.take(2)) == 2

    def test_a_binary_message_is_a_command_too(self, socket: LiveSocket) -> None:
        socket.socket.sendall(client_frame(BINARY, b'{"publish": {}}'))
        assert len(socket.take(2)) == 2

    def test_publishes_just_before_a_close(self, http: httpx.Client) -> None:
        http.put("/endpoint/q/last").raise_for_status()
        with LiveSocket(f"{http.base_url}/stream/q/last?mode=publish") as socket:
            command = client_frame(1, b'{"publish": {"body": "x"}, "ref": 1}')
            socket.socket.sendall(command * 3 + client_frame(CLOSE, b"\x03\xe8"))
            assert socket.take(3) == [{"confirmed": 1}] * 3
            assert socket.frame() == (CLOSED, b"\x03\xe8")

    def test_a_close_is_answered(self, socket: LiveSocket) -> None:
        socket.socket.sendall(client_frame(CLOSE, b"\x03\xe8"))
        assert socket.frame() == (CLOSED, b"\x03\xe8")

    def test_a_command_that_is_too_big(self, socket: LiveSocket) -> None:
        # The head alone is enough: nothing is waited for.
        socket.socket.sendall(b"\x81\xff" + (1024 * 1024 + 1).to_bytes(8, "big") + b"mask")
        opcode, payload = socket.frame()
        assert (opcode, payload[:2]) == (CLOSED, b"\x03\xf1")

    def test_too_many_frames_close_the_connection(self, socket: LiveSocket) -> None:
        socket.socket.sendall(client_frame(PONG) * 20_000)
        opcode, payload = socket.frame()
        assert (opcode, payload[:2]) == (CLOSED, b"\x03\xf0")


class TestHandshake:
    @pytest.mark.parametrize(
        ("fields", "status"),
        [
            ({"Sec-WebSocket-Version": "8"}, 426),
            ({"Sec-WebSocket-Key": "short"}, 400),
            ({"Authorization": "Basic Z3Vlc3Q6d3Jvbmc="}, 401),
        ],
    )
    def test_bad_handshakes_are_refused(
        self, http: httpx.Client, socket: LiveSocket, fields: dict[str, str], status: int
    ) -> None:
        with LiveSocket(f"{http.base_url}/stream/x/chat", **fields) as refused:
            assert refused.status == status

    def test_a_missing_exchange_is_404(self, http: httpx.Client) -> None:
        with LiveSocket(f"{http.base_url}/stream/x/none") as refused:
            assert refused.status == 404

    def test_a_stored_password_of_a_page_elsewhere(self, http: httpx.Client) -> None:
        http.put("/api/users/joe", json={"password": "joe has one", "tags": ""})
        rights = {"configure": "", "write": "", "read": ".*"}
        http.put("/api/permissions/%2F/joe", json=rights).raise_for_status()
        url, joe = f"{http.base_url}/stream/x/amq.fanout", "Basic am9lOmpvZSBoYXMgb25l"
        with LiveSocket(url, authorization=joe, Origin="https://evil.example") as refused:
            assert refused.status == 403
        with LiveSocket(url, authorization=joe, Origin=str(http.base_url)) as accepted:
            assert accepted.status == 101

    def test_without_an_upgrade_it_is_json_lines(self, http: httpx.Client) -> None:
        with LiveSocket(f"{http.base_url}/stream/x/amq.fanout", Upgrade="h2c") as plain:
            assert plain.status == 200
