"""amqp.md section 2, transports: AMQPS with SNI and client certificates, EXTERNAL, WebSocket on the
HTTP port, PROXY headers of listed proxies. Every row of the handshake holds on each of them."""

from __future__ import annotations

import json
import os
import signal
import ssl
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pika
import pika.exceptions
import pytest

from tests.support.certificates import Authority, common_names, subject
from tests.support.ports import free_port
from tests.support.process import wait_until
from tests.support.proxy import v1
from tests.support.server import WarrenServer
from tests.support.websocket import BINARY, client_frame

from . import frames, raw
from .raw import Disconnected
from .transports import ProxiedClient, TlsClient, WebSocketClient

REFUSED_LOGIN = (
    "ACCESS_REFUSED - Login was refused using authentication mechanism {}. "
    "For details see the broker logfile."
)
FROM_AFAR = v1("TCP4 192.0.2.7 198.51.100.1 50000 5672")


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def amqps_port() -> int:
    return free_port()


@pytest.fixture(scope="module")
def warren(authority: Authority, amqps_port: int) -> Iterator[WarrenServer]:
    """AMQPS beside AMQP and HTTP, another certificate for one.example.org."""
    cert, key = authority.issue("localhost", "127.0.0.1")
    other = ":".join(authority.issue("one.example.org"))
    options = {
        "amqps-port": str(amqps_port), "tls-cert": cert, "tls-key": key,
        "tls-ca": authority.file, "tls-hosts": f"one.example.org={other}",
    }  # fmt: skip
    with WarrenServer(args=[f"--{name}={value}" for name, value in options.items()]) as server:
        yield server
        assert "Traceback" not in server.output()


@pytest.fixture(scope="module")
def proxied() -> Iterator[WarrenServer]:
    """Everybody on this machine is a proxy."""
    with WarrenServer(args=["--proxy-protocol-from=127.0.0.0/8, ::1"]) as server:
        yield server
        assert "Traceback" not in server.output()


Make = Callable[..., raw.Client]


@pytest.fixture(scope="module")
def makers(
    warren: WarrenServer, proxied: WarrenServer, authority: Authority, amqps_port: int
) -> dict[str, Make]:
    """Make connections on which no AMQP was said yet."""
    return {
        "tls": lambda: TlsClient(amqps_port, context=authority.client_context()),
        "websocket": lambda: WebSocketClient(warren.http_port),
        "proxy": lambda: ProxiedClient(proxied.amqp_port),
    }


@pytest.fixture(params=["tls", "websocket", "proxy"])
def reach(request: pytest.FixtureRequest, makers: dict[str, Make]) -> Iterator[Make]:
    """Makes connections over one transport; they are dropped after the test."""
    with ExitStack() as opened:
        yield lambda: opened.enter_context(makers[request.param]())


@pytest.fixture
def secured(authority: Authority, amqps_port: int) -> Iterator[Make]:
    """Connections with TLS; `user` is the name in the client's certificate."""
    with ExitStack() as opened:
        yield lambda user=None, host="localhost": opened.enter_context(
            TlsClient(amqps_port, context=authority.client_context(user), host=host)
        )


def enter(client: raw.Client) -> raw.Channel:
    client.start()
    client.log_in()
    client.tune()
    client.open()
    return client.channel()


def turned_away(port: int, context: ssl.SSLContext) -> None:
    """With TLS 1.3 a client learns at its first read what the server thinks of its certificate."""

    def start() -> None:
        with TlsClient(port, context=context) as client:
            client.start()

    with pytest.raises((ssl.SSLError, Disconnected)):
        start()


# Every transport


def test_messages_are_published_and_delivered(reach: Make, name: str) -> None:
    channel, body = enter(reach()), bytes(range(256)) * 2_000
    channel.declare(name, exclusive=True)
    channel.consume(name)
    for size in (0, 1, len(body)):
        channel.publish(body[:size], routing_key=name)
    assert channel.bodies(3) == [b"", body[:1], body]


def test_close(reach: Make, name: str) -> None:
    client = reach()
    enter(client).declare(name, exclusive=True)
    client.close()
    client.ended()


def test_input_after_connection_close_is_discarded(reach: Make, name: str) -> None:
    """amqplib does so; what comes behind connection.close is taken, and nobody's."""
    client = reach()
    enter(client).declare(name)
    client.send_method("Connection.Close")
    late = frames.frame(frames.METHOD, 1, bytes(100_000)) * 10
    if isinstance(client, WebSocketClient):
        late = client_frame(BINARY, late)
    for _ in range(20):
        client.socket.sendall(late)
    client.expect("Connection.CloseOk")
    client.ended()


def test_other_header_is_answered_with_the_right_one(reach: Make) -> None:
    client = reach()
    client.send(b"AMQP\x00\x01\x00\x00")
    assert client.read_bytes(8) == frames.PROTOCOL_HEADER
    client.ended()


def test_silence_ends_the_connection(makers: dict[str, Make]) -> None:
    with ExitStack() as opened:
        clients = [opened.enter_context(make()) for make in makers.values()]
        for client in clients:
            client.start()
            client.log_in()
            client.tune(heartbeat=1)
            client.open()
        for client in clients:
            client.hung_up()


def test_a_slow_reader_does_not_block_its_publisher(reach: Make, name: str) -> None:
    slow, body = reach(), b"x" * 60_000
    channel = enter(slow)
    channel.declare(name)
    channel.consume(name, no_ack=True)
    publisher = enter(reach())
    publisher.call("Confirm.Select")
    for _ in range(100):
        publisher.publish(body, routing_key=name)
    while publisher.expect("Basic.Ack").delivery_tag < 100:
        pass
    assert all(found == body for found in channel.bodies(100))
    publisher.call("Queue.Delete", queue=name)


def test_incomplete_handshakes_time_out(
    makers: dict[str, Make], proxied: WarrenServer, amqps_port: int
) -> None:
    with ExitStack() as opened:
        in_amqp = [opened.enter_context(make()) for make in makers.values()]
        in_tls = opened.enter_context(raw.Client(amqps_port))
        in_header = opened.enter_context(raw.Client(proxied.amqp_port))
        for client in in_amqp:
            client.start()
        in_tls.send(b"\x16\x03\x01")
        in_header.send(FROM_AFAR[:10])
        for client in (*in_amqp, in_tls, in_header):
            client.socket.settimeout(20)
            client.hung_up()


# AMQPS


def test_sni(secured: Make) -> None:
    for host in ("localhost", "one.example.org"):
        tls = secured(host=host).socket
        assert isinstance(tls, ssl.SSLSocket)
        certificate = tls.getpeercert()
        assert certificate is not None
        assert host in common_names(dict(certificate))


def test_plain_amqp_on_the_port_of_tls(amqps_port: int) -> None:
    with raw.Client(amqps_port) as client:
        client.send(frames.PROTOCOL_HEADER)
        client.hung_up()


def test_certificate_of_another_authority_is_refused(
    amqps_port: int, authority: Authority, tmp_path: Path
) -> None:
    context = authority.client_context()
    context.load_cert_chain(*Authority(tmp_path).issue("a@example.org", name="guest"))
    turned_away(amqps_port, context)


# EXTERNAL


def test_external_is_offered_with_a_certificate(secured: Make, reach: Make) -> None:
    assert secured("guest").start().mechanisms.split() == ["PLAIN", "AMQPLAIN", "EXTERNAL"]
    assert secured().start().mechanisms.split() == ["PLAIN", "AMQPLAIN"]
    assert reach().start().mechanisms.split() == ["PLAIN", "AMQPLAIN"]


@pytest.mark.parametrize("response", [b"", b"somebody else"])
def test_external(secured: Make, response: bytes) -> None:
    client = secured("guest")
    client.start()
    client.log_in(mechanism="EXTERNAL", response=response)
    client.tune()
    client.open()


def test_external_for_an_unknown_user(secured: Make) -> None:
    client = secured("nobody")
    client.start()
    client.log_in(mechanism="EXTERNAL", response=b"")
    client.closed(403, REFUSED_LOGIN.format("EXTERNAL"), culprit="Connection.StartOk")


def test_external_without_a_certificate(secured: Make) -> None:
    client = secured()
    client.start()
    client.log_in(mechanism="EXTERNAL", response=b"")
    client.closed(503, culprit="Connection.StartOk")


def test_password_beside_a_certificate(secured: Make) -> None:
    enter(secured("nobody"))


def test_pika_with_external(authority: Authority, amqps_port: int) -> None:
    options = pika.SSLOptions(authority.client_context("guest"), "localhost")
    connection = pika.BlockingConnection(
        pika.ConnectionParameters(
            "localhost", amqps_port, ssl_options=options,
            credentials=pika.credentials.ExternalCredentials(),
        )
    )  # fmt: skip
    connection.channel().basic_publish("amq.topic", "a", b"x")
    connection.close()


def test_login_by_distinguished_name_with_required_certificates(authority: Authority) -> None:
    cert, key = authority.issue("localhost", file="distinguished")
    anders = authority.issue("anders@example.org", name="anders")
    known = authority.client_context()
    known.load_cert_chain(*anders)
    port = free_port()
    args = [
        f"--amqps-port={port}", f"--tls-cert={cert}", f"--tls-key={key}",
        f"--tls-ca={authority.file}", "--tls-verify-clients=required",
        "--tls-login-from=distinguished_name", "--amqp-port=none",
        f"--default-user={subject(anders[0])}",
    ]  # fmt: skip
    with WarrenServer(args=args) as server:
        assert f"listening on amqp://127.0.0.1:{server.amqp_port}" not in server.output()
        with TlsClient(port, context=known) as client:
            client.start()
            client.log_in(mechanism="EXTERNAL", response=b"")
            client.tune()
            client.open()
        turned_away(port, authority.client_context())


def test_certificates_are_read_again_at_sighup(authority: Authority) -> None:
    cert, key = authority.issue("localhost", "before.example.org", file="renewed")
    port = free_port()

    def served() -> list[str]:
        with TlsClient(port, context=authority.client_context()) as client:
            assert isinstance(client.socket, ssl.SSLSocket)
            return common_names(dict(client.socket.getpeercert() or {}))

    args = [f"--amqps-port={port}", f"--tls-cert={cert}", f"--tls-key={key}"]
    with WarrenServer(args=args) as server:
        with TlsClient(port, context=authority.client_context()) as client:
            channel = enter(client)
            assert "before.example.org" in served()
            authority.issue("localhost", "after.example.org", file="renewed")
            os.kill(server.pid, signal.SIGHUP)
            wait_until(lambda: "after.example.org" in served(), 10, "the other certificate")
            channel.declare()
        Path(cert).write_text("torn")
        os.kill(server.pid, signal.SIGHUP)
        wait_until(lambda: "certificates not reloaded" in server.output(), 10, "the complaint")
        assert "after.example.org" in served()


# WebSocket


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/", 101), ("/ws/amqp", 101), ("/any?at=all", 101),
        ("/hub", 404), ("/api/overview", 404), ("/endpoint/x/amq.topic", 404), ("/in/secret", 404),
        ("/vhost/subscribe/q/a", 404), ("/rabbithub/endpoint/q/a", 404), ("/%00/endpoint/q/a", 404),
        ("/health/live", 404), ("/openapi.json", 404), ("/static/style.css", 404),
    ],
)  # fmt: skip
def test_websocket_paths(warren: WarrenServer, path: str, status: int) -> None:
    offer = {
        "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
    }  # fmt: skip
    with httpx.stream("GET", warren.http_url + path, headers=offer) as answer:
        assert answer.status_code == status
        if status == 404:
            assert "connect to '/' for AMQP over WebSocket" in json.loads(answer.read())["detail"]


def test_one_frame_a_message(warren: WarrenServer, name: str) -> None:
    with WebSocketClient(warren.http_port) as client:
        channel = enter(client)
        channel.declare(name, exclusive=True)
        channel.put(name, *(b"%d" % number for number in range(300)))
        channel.consume(name)
        assert channel.bodies(300) == [b"%d" % number for number in range(300)]


def test_the_websocket_closes_after_close_ok(warren: WarrenServer) -> None:
    with WebSocketClient(warren.http_port) as client:
        enter(client)
        client.close()
        client.ended()
        assert client.close_code == 1000


# HTTP, where a proxy or a page of somebody else's can be on this machine


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("X-Forwarded-For", "127.0.0.1"), ("Forwarded", "for=127.0.0.1"), ("Via", "1.1 here"),
        ("Origin", "http://evil.example"), ("Host", "evil.example"),
    ],
)  # fmt: skip
def test_guest_over_http_is_refused_at_signs_of_a_proxy(
    warren: WarrenServer, field: str, value: str
) -> None:
    def whoami(**fields: str) -> httpx.Response:
        url = f"{warren.http_url}/api/whoami"
        return httpx.get(url, auth=("guest", "guest"), headers=fields)

    assert whoami().json() == {"name": "guest", "tags": ["administrator"]}
    refused = whoami(**{field: value})
    assert refused.status_code == 401
    assert "evil" not in refused.text
    assert whoami(Origin=warren.http_url).status_code == 200


# PROXY protocol


def test_guest_is_refused_through_a_proxy(proxied: WarrenServer) -> None:
    with ProxiedClient(proxied.amqp_port, header=FROM_AFAR) as client:
        client.start()
        client.log_in()
        client.closed(403, REFUSED_LOGIN.format("PLAIN"))
    assert "192.0.2.7:50000 -> 198.51.100.1:5672" in proxied.output()


def test_a_proxy_has_to_send_its_header(proxied: WarrenServer) -> None:
    with raw.Client(proxied.amqp_port) as client:
        client.send(frames.PROTOCOL_HEADER)
        with pytest.raises(Disconnected):
            client.read_bytes(1)


def test_other_clients_may_not_send_a_proxy_header(warren: WarrenServer) -> None:
    with ProxiedClient(warren.amqp_port) as client:
        assert client.read_bytes(8) == frames.PROTOCOL_HEADER
        client.ended()
