"""`POST /endpoint`: the hot route.

Requests to one resource mostly repeat each other's path, query and headers, so everything those
decide - who may publish what where, with which properties - is worked out once and kept as a
`Plan`. A repeat costs two dictionary hits before the engine is asked. Nothing else stands in
the way: no routing table, no middleware.
"""

from __future__ import annotations

import secrets
from collections.abc import Container
from dataclasses import dataclass, replace

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from ...core.alarms import Alarms
from ...core.auth import User
from ...core.errors import precondition_failed
from ...core.model import Properties
from ...hub.engine.port import Engine, Outcome
from ..access import has_topic, require_topic, require_vhost
from ..authentication import Authenticator
from ..body import read_body
from ..paths import Target
from ..problems import Problem, busy, low_on_disk, low_on_memory, problem_of
from ..properties import PLAIN_HEADERS, PROPERTY_PREFIX, RABBITHUB_HEADERS, read

MAX_PLANS = 4096
MAX_KEY_BYTES = 2048
"""Longer paths, queries and headers are not kept: 4,096 of them must not fill the memory."""
MAX_WAITING = 10_000
"""Publishes that wait for their confirm, each with its body in memory."""

Key = tuple[User, bytes, bytes, tuple[tuple[bytes, bytes], ...]]


@dataclass(frozen=True, slots=True)
class Plan:
    """A publish without its body. Void as soon as `user.version` is not `version`."""

    user: User
    version: int
    vhost: str
    exchange: str
    queue: str | None
    routing_key: str
    properties: Properties
    mandatory: bool
    has_topic: bool
    """Else it depends on the type that the exchange has when it is published to."""


class Publisher:
    def __init__(
        self,
        engine: Engine,
        authenticator: Authenticator,
        vhosts: Container[str],
        alarms: Alarms,
        *,
        max_body_bytes: int,
        correlation_id_header: str = "",
        message_id_header: str = "",
    ) -> None:
        self._engine = engine
        self._authenticator = authenticator
        self._vhosts = vhosts
        self._alarms = alarms
        self._waiting = 0
        self._max_body_bytes = max_body_bytes
        self._correlation_id_header = correlation_id_header.lower().encode()
        self._message_id_header = message_id_header.lower().encode()
        self._mapped = frozenset({*PLAIN_HEADERS, RABBITHUB_HEADERS, self._correlation_id_header})
        self._plans: dict[Key, Plan] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send, target: Target) -> None:
        try:
            plan = await self._permitted(scope, target)
            self._admit()
            body = await read_body(receive, self._max_body_bytes)
            if plan.version != plan.user.version or not plan.has_topic:
                # It may have taken minutes, and the right, or the user, may be gone.
                plan = await self._permitted(scope, target)
            headers = await self._publish(plan, body)
        except ClientDisconnect:
            return
        except Exception as error:
            await problem_of(error).response()(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 202, "headers": headers})
        await send({"type": "http.response.body", "body": b""})

    async def _permitted(self, scope: Scope, target: Target) -> Plan:
        plan = await self._plan(scope, target)
        if not plan.has_topic:
            await require_topic(
                self._engine, plan.user, "write", plan.vhost, plan.exchange, plan.routing_key
            )
        return plan

    async def _plan(self, scope: Scope, target: Target) -> Plan:
        authorization = None
        mapped: list[tuple[bytes, bytes]] = []
        for field in scope["headers"]:
            name = field[0]
            if name == b"authorization":
                authorization = field[1]
            elif name in self._mapped or name.startswith(PROPERTY_PREFIX):
                mapped.append(field)
        user = authorization and self._authenticator.remembered(authorization, scope)
        if not user:
            user = await self._authenticator.user(authorization, scope)
        key = (user, scope["raw_path"], scope["query_string"], tuple(mapped))
        plan = self._plans.get(key)
        if plan is None or plan.version != user.version:
            plan = self._make(user, target, scope["query_string"], mapped)
            self._keep(key, plan)
        return plan

    def _make(
        self, user: User, target: Target, query_string: bytes, headers: list[tuple[bytes, bytes]]
    ) -> Plan:
        require_vhost(user, target.vhost, self._vhosts)
        user.require(target.vhost, "write", target.kind, target.name)
        wish = read(query_string, headers, self._correlation_id_header.decode())
        _check_user_id(wish.properties.user_id, user)
        is_queue = target.letter == "q"
        return Plan(
            user=user,
            version=user.version,
            vhost=target.vhost,
            exchange="" if is_queue else target.name,
            queue=target.name if is_queue else None,
            routing_key=wish.routing_key,
            properties=wish.properties,
            mandatory=wish.mandatory and not is_queue,
            has_topic=is_queue
            or has_topic(user, "write", target.vhost, target.name, wish.routing_key),
        )

    def _keep(self, key: Key, plan: Plan) -> None:
        _, raw_path, query_string, mapped = key
        if len(raw_path) + len(query_string) + sum(map(_size, mapped)) > MAX_KEY_BYTES:
            return
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans[key] = plan

    async def _publish(self, plan: Plan, body: bytes) -> list[tuple[bytes, bytes]]:
        """The headers of the 202, which is sent only after the engine's confirm."""
        self._admit()  # again: the body may have taken its time
        properties = plan.properties
        if self._message_id_header and properties.message_id is None:
            properties = replace(properties, message_id=secrets.token_hex(16))
        self._waiting += 1
        try:
            outcome = await self._engine.publish(
                plan.vhost, plan.exchange, plan.routing_key, properties, body, queue=plan.queue
            )
        finally:
            self._waiting -= 1
        if outcome is Outcome.NOT_KEPT:
            raise low_on_disk()
        if outcome is Outcome.REJECTED:
            raise busy("a queue that the message was routed to is full")
        if outcome is Outcome.UNROUTED and plan.mandatory:
            raise Problem(404, "no queue wants the message", title="No route")
        return self._answer_headers(properties)

    def _admit(self) -> None:
        """Raises `Problem` 503 or 507 while publishers have to wait."""
        if self._alarms.any:
            raise low_on_disk() if self._alarms.disk else low_on_memory()
        if self._waiting >= MAX_WAITING:
            raise busy(f"{self._waiting} publishes wait for their confirm, {MAX_WAITING} may")

    def _answer_headers(self, properties: Properties) -> list[tuple[bytes, bytes]]:
        headers = [(b"content-length", b"0")]
        if self._message_id_header and properties.message_id:
            headers.append((self._message_id_header, properties.message_id.encode()))
        if self._correlation_id_header and properties.correlation_id:
            headers.append((self._correlation_id_header, properties.correlation_id.encode()))
        return headers


def _size(field: tuple[bytes, bytes]) -> int:
    return len(field[0]) + len(field[1])


def _check_user_id(user_id: str | None, user: User) -> None:
    if user_id is not None and user_id != user.name and "impersonator" not in user.tags:
        raise precondition_failed(
            f"user_id property set to '{user_id}' but authenticated user was '{user.name}'"
        )
