"""The engine over TLS: certificates are verified, and what can't be trusted is named."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.conformance.webhooks import Site
from tests.support.certificates import Authority
from tests.support.http import Callback
from tests.support.hub_on_rabbitmq import PASSWORD, START_S, USER, prepare
from tests.support.rabbitmq import RabbitMQServer, missing
from tests.support.server import WarrenServer

pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(missing() is not None, reason=str(missing())),
]


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def node(authority: Authority) -> Iterator[RabbitMQServer]:
    node = RabbitMQServer("rabbitmq_management")
    certificate, key = authority.issue("localhost")
    node.tls = {"cacertfile": authority.file, "certfile": certificate, "keyfile": key}
    with node:
        prepare(node)
        yield node


def hub(node: RabbitMQServer, query: str = "", host: str = "localhost") -> WarrenServer:
    engine = f"amqps://{USER}:{PASSWORD}@{host}:{node.tls_port}/{query}"
    management = f"https://{host}:{node.management_port}"
    args = ["--engine", engine, "--engine-management", management]
    return WarrenServer(args=args, timeout_s=START_S)


def test_connections_are_encrypted(
    node: RabbitMQServer, authority: Authority, callback: Callback
) -> None:
    with hub(node, f"?cacertfile={authority.file}") as server, Site(server) as site:
        exchange = site.exchange()
        site.subscribe(exchange, callback)
        site.publish(exchange, b"1")
        callback.wait(1)
        ciphers = node.ctl("list_connections", "--silent", "client_properties", "ssl")
        found = [line for line in ciphers.splitlines() if "Warren hub" in line]
        assert found and all(line.endswith("true") for line in found), ciphers


@pytest.mark.parametrize(
    ("file", "host", "code", "text"),
    [
        (None, "localhost", 5, "self-signed certificate in.*cacertfile=FILE"),
        ("ca.pem", "127.0.0.1", 5, "IP address mismatch"),
        ("localhost.key", "localhost", 2, "has no certificate"),
        ("missing.pem", "localhost", 2, "is no file"),
    ],
)
def test_what_is_not_trusted_is_named(
    node: RabbitMQServer, authority: Authority, file: str | None, host: str, code: int, text: str
) -> None:
    query = "" if file is None else f"?cacertfile={authority.directory / file}"
    server = hub(node, query, host)
    with pytest.raises(RuntimeError, match=text) as said, server:
        pass
    assert "Traceback" not in str(said.value)
    assert server.process.returncode == code
