"""Health checks below `/health/checks`, with responses in RabbitMQ's form: 200 or 503."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from starlette.responses import JSONResponse, Response

from ....core.errors import not_found
from ...certificate_expiry import DAYS, WITHIN_MAX, expiring
from ...documents import server
from ...exceeded_patterns import exceeded_patterns
from ...problems import Problem
from ...unserved import WHERE, unserved_data
from .call import NO_STORE, Call, answer
from .required_tags import MANAGEMENT, MONITORING, RequiredTag
from .route import Handler, Methods, Operation, Routes

_OK: Final = {"status": "ok"}
_PROTOCOLS: Final = {
    **dict.fromkeys(("amqp091", "amqp0.9.1", "amqp-0-9-1", "amqp09", "amqp"), "amqp"),
    **dict.fromkeys(("amqps", "amqp/ssl", "amqp091/ssl"), "amqp/ssl"),
}
"""Names of protocols besides those that listeners have."""


def _failed(reason: str, **more: Any) -> Response:
    found = {"status": "failed", "reason": reason, **more}
    return JSONResponse(found, 503, headers=NO_STORE)


async def _storage(call: Call) -> Response:
    """Answers 503 while some stored data can't be read or served. All other data is served, so
    this is for monitoring and no reason to take the server out of service."""
    found = unserved_data(call.broker)
    return _failed(f"{'; '.join(found)}; {WHERE}") if found else answer(_OK)


async def _alarms(call: Call) -> Response:
    """Answers 503 while an alarm makes publishers wait."""
    found = alarms_in_effect(call)
    if not found:
        return answer(_OK)
    return _failed("There are alarms in effect on this node", alarms=found)


def alarms_in_effect(call: Call) -> list[dict[str, str]]:
    alarms, node = call.broker.alarms, call.context.node.name
    return [
        {"node": node, "resource": resource}
        for resource, is_on in (("memory", alarms.memory), ("disk", alarms.disk))
        if is_on
    ]


async def _patterns(call: Call) -> Response:
    """Answers 503 while there are policies or permissions whose patterns have exceeded a limit for
    a name, and so do not match it."""
    found = exceeded_patterns(call.broker)
    return _failed("; ".join(found)) if found else answer(_OK)


async def _certificates(call: Call) -> Response:
    """Answers 503 if a certificate of a listener expires within so many days, weeks, months (30
    days) or years."""
    within, unit = call.names
    if unit not in DAYS:
        raise Problem(400, f"the unit of time is '{unit[:80]}', it can be {', '.join(DAYS)}")
    if not (within.isascii() and within.isdigit() and int(within[:9]) <= WITHIN_MAX):
        raise Problem(400, f"the time is '{within[:80]}' {unit}, it has to be 0 to {WITHIN_MAX}")
    until = timedelta(days=int(within) * DAYS[unit])
    files = call.context.node.certificates
    found = await asyncio.to_thread(lambda: list(expiring(files, until, datetime.now(UTC))))
    if not found:
        return answer(_OK)
    expired = [
        {
            "node": call.context.node.name,
            "certfile": str(one.file),
            "name": one.subject,
            "certfile_expires_on": [one.not_after.isoformat()],
        }
        for one in found
    ]
    return _failed("Certificates expiring", expired=expired)


async def _port(call: Call) -> Response:
    """Answers 503 unless this server listens on the port."""
    (port,) = call.names
    if not (port.isascii() and port.isdigit() and int(port[:6]) <= 65_535):
        raise Problem(400, f"the port is '{port[:80]}', it has to be a number up to 65535")
    ports = sorted({one.port for one in call.context.node.listeners})
    if int(port) in ports:
        return answer({**_OK, "port": int(port)})
    return _failed("No active listener", missing=int(port), ports=ports)


async def _protocol(call: Call) -> Response:
    """Answers 503 unless this server listens for the protocol: amqp091, amqps, http or https."""
    (name,) = call.names
    wanted = _PROTOCOLS.get(name, name)
    protocols = sorted({one.protocol for one in call.context.node.listeners})
    if wanted in protocols:
        return answer({**_OK, "protocol": wanted})
    return _failed("No active listener", missing=name, protocols=protocols)


async def _connection_limit(call: Call) -> Response:
    """Says how many connections there are: this server has no limit for all of them."""
    return answer({**_OK, "current": len(call.broker.connections), "limit": "infinity"})


async def _node(call: Call) -> Response:
    """Checks alarms, and answers 200 in either case; deprecated in favour of `/health/checks`."""
    node = call.context.node.name
    if call.names and call.names[0] not in ("", node):
        raise not_found(f"no node '{call.names[0]}', there is '{node}'")
    found = alarms_in_effect(call)
    if not found:
        return answer(_OK)
    resources = ", ".join(one["resource"] for one in found)
    return answer({"status": "failed", "reason": f"resource alarm(s) in effect: {resources}"})


async def _aliveness(call: Call) -> Response:
    """Answers when what was stored before is on disk; 507 if the disk is full."""
    call.own_vhost(*call.names)
    await call.stored()
    return answer(_OK)


def _holds(text: str, **found: Any) -> Handler:
    """Returns a check that always holds on a server of one node."""

    async def check(call: Call) -> Response:
        return answer({**_OK, **found})

    check.__doc__ = text
    return check


def _check(handler: Handler, tag: RequiredTag = MANAGEMENT) -> Methods:
    answers = {200: server.HealthCheck, 503: server.HealthCheck}
    return {"GET": Operation(handler, tag, answers)}


_SINGLE = "single node cluster"
_SERVING = _holds("Answers 200: what is not ready to serve does not answer.")
_LEADERS = _holds("Answers 200: every queue has its leader here.")
_METADATA = _holds("Answers 200: definitions are restored before requests are served.")
_CRITICAL = _holds("Answers 200: with one node, no other can be missing.", reason=_SINGLE)

ROUTES: Routes = {
    "/health/checks/storage": _check(_storage, MONITORING),
    "/health/checks/patterns": _check(_patterns, MONITORING),
    "/health/checks/alarms": _check(_alarms),
    "/health/checks/local-alarms": _check(_alarms),
    "/health/checks/certificate-expiration/{within}/{unit}": _check(_certificates),
    "/health/checks/port-listener/{port}": _check(_port),
    "/health/checks/protocol-listener/{protocol}": _check(_protocol),
    "/health/checks/virtual-hosts": _check(
        _holds("Answers 200: virtual hosts are started before requests are served.")
    ),
    "/health/checks/node-is-quorum-critical": _check(_CRITICAL),
    "/health/checks/node-is-mirror-sync-critical": _check(_CRITICAL),
    "/health/checks/is-in-service": _check(_SERVING),
    "/health/checks/ready-to-serve-clients": _check(_SERVING),
    "/health/checks/below-node-connection-limit": _check(_connection_limit),
    "/health/checks/reached-target-cluster-size": _check(
        _holds("Answers 200: the cluster has one node.", target_cluster_size=1, cluster_size=1)
    ),
    "/health/checks/metadata-store/initialized": _check(_METADATA),
    "/health/checks/metadata-store/initialized/with-data": _check(_METADATA),
    "/health/checks/quorum-queues-without-elected-leaders/all-vhosts": _check(_LEADERS),
    "/health/checks/quorum-queues-without-elected-leaders/all-vhosts/pattern/{pattern}": _check(
        _LEADERS
    ),
    "/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}": _check(_LEADERS),
    "/health/checks/quorum-queues-without-elected-leaders/vhost/{vhost}/pattern/{pattern}": _check(
        _LEADERS
    ),
    "/healthchecks/node": _check(_node),
    "/healthchecks/node/{node}": _check(_node),
    "/aliveness-test/{vhost}": _check(_aliveness),
}
