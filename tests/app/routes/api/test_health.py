"""Health checks: what fails them, and what they say then."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from httpx import AsyncClient

from tests.app.conftest import World
from warrenmq.app.node import Listening, Node

from .support import get, put, refused, tagged

CHECKS = "/health/checks"
HOLDING = (
    "virtual-hosts", "node-is-quorum-critical", "node-is-mirror-sync-critical", "is-in-service",
    "ready-to-serve-clients", "below-node-connection-limit", "reached-target-cluster-size",
    "metadata-store/initialized", "metadata-store/initialized/with-data",
    "quorum-queues-without-elected-leaders/all-vhosts",
    "quorum-queues-without-elected-leaders/all-vhosts/pattern/.*",
    "quorum-queues-without-elected-leaders/vhost/%2F",
    "quorum-queues-without-elected-leaders/vhost/%2F/pattern/q",
)  # fmt: skip


async def failed(http: AsyncClient, path: str) -> Any:
    response = await http.get("/api" + path)
    assert response.status_code == 503, response.text
    found = response.json()
    assert found["status"] == "failed"
    return found


@pytest.mark.parametrize("name", HOLDING)
async def test_checks_that_hold(world: World, name: str) -> None:
    async with world.client(auth=tagged(world, "management")) as http:
        assert (await get(http, f"{CHECKS}/{name}"))["status"] == "ok"


@pytest.mark.parametrize("resource", ["memory", "disk"])
async def test_alarms(world: World, http: AsyncClient, resource: str) -> None:
    for path in ("alarms", "local-alarms"):
        assert await get(http, f"{CHECKS}/{path}") == {"status": "ok"}
    assert await get(http, "/healthchecks/node") == {"status": "ok"}
    assert await get(http, "/healthchecks/node/") == {"status": "ok"}
    assert refused(await http.get("/api/healthchecks/node/other"), 404)
    setattr(world.broker.alarms, resource, True)
    for path in ("alarms", "local-alarms"):
        found = await failed(http, f"{CHECKS}/{path}")
        assert found["alarms"] == [{"node": world.context.node.name, "resource": resource}]
    assert resource in (await get(http, "/healthchecks/node"))["reason"]


async def test_patterns(world: World, http: AsyncClient) -> None:
    """A permission denies and a policy does not apply where a pattern needs too many steps."""
    path, name = f"{CHECKS}/patterns", "a" * 200
    pattern, limit = "(a+)+(?=b)", {"max-length": 5}
    await put(http, "/policies/%2F/p", pattern=pattern, definition=limit)
    await put(http, "/operator-policies/%2F/o", pattern="^(?!amq)", definition=limit)
    await put(http, "/permissions/%2F/tony", configure="", write=pattern, read="")
    assert await get(http, path) == {"status": "ok"}
    await world.queue(name)
    found = await get(http, f"/queues/%2F/{name}")
    assert (found["policy"], found["operator_policy"]) == (None, "o")
    publish = await http.post(f"/endpoint/q/{name}", content=b"x", auth=("tony", "secret"))
    assert publish.status_code == 403
    reason = (await failed(http, path))["reason"]
    assert f"policy 'p' in vhost '/': the pattern '{pattern}' needs more than 2500 steps" in reason
    assert "write permission of user 'tony' in vhost '/'" in reason
    await put(http, "/permissions/%2F/tony", configure="", write="", read="")
    await http.delete("/api/policies/%2F/p")
    assert await get(http, path) == {"status": "ok"}


async def test_listeners(world: World) -> None:
    listeners = [Listening("amqp", "::", 5672), Listening("https", "::", 443)]
    world.context = replace(world.context, node=Node(listeners=listeners))
    async with world.client() as http:
        assert (await get(http, f"{CHECKS}/port-listener/5672"))["port"] == 5672
        found = await failed(http, f"{CHECKS}/port-listener/5671")
        assert (found["missing"], found["ports"]) == (5671, [443, 5672])
        for port in ("x", "65536"):
            assert refused(await http.get(f"/api{CHECKS}/port-listener/{port}"), 400)
        for name in ("amqp091", "amqp", "https"):
            assert (await get(http, f"{CHECKS}/protocol-listener/{name}"))["status"] == "ok"
        found = await failed(http, f"{CHECKS}/protocol-listener/mqtt")
        assert (found["missing"], found["protocols"]) == ("mqtt", ["amqp", "https"])


async def test_certificates(world: World, tmp_path: Path) -> None:
    file = tmp_path / "certificate.pem"
    file.write_bytes(_certificate(timedelta(days=10)))
    world.context = replace(world.context, node=Node(certificates=[file]))
    path = f"{CHECKS}/certificate-expiration"
    async with world.client() as http:
        for within in ("9/days", "1/weeks", "0/months"):
            assert await get(http, f"{path}/{within}") == {"status": "ok"}
        for within in ("11/days", "2/weeks", "1/months", "1/years"):
            (found,) = (await failed(http, f"{path}/{within}"))["expired"]
            assert (found["certfile"], found["name"]) == (str(file), "CN=warren")
        for within in ("1/decades", "-1/days", "x/days", "10001/days"):
            assert refused(await http.get(f"/api{path}/{within}"), 400)


def _certificate(valid: timedelta) -> bytes:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "warren")])
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), 1)
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + valid)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM)


async def test_aliveness(http: AsyncClient) -> None:
    assert await get(http, "/aliveness-test/%2F") == {"status": "ok"}
    assert refused(await http.get("/api/aliveness-test/none"), 404)
