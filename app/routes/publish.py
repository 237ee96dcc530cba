"""`POST /endpoint`: the hot route.

Requests to one resource mostly repeat each other's path, query and headers, so everything those
decide - who may publish what where, with which properties - is worked out once and kept as a
`Plan`. A repeat costs two dictionary hits before the engine is asked. Nothing else stands in
the way: no routing table, no middleware.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Container, Iterable
from dataclasses import dataclass, replace

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from ...core.auth import User
from ...core.auth.authorization import to_publish
from ...core.errors import precondition_failed
from ...core.message.model import Properties
from ...core.resources.alarms import Alarms
from ...hub.engine.port import Engine, Outcome
from ..access import has_topic, require_topic, require_vhost
from ..authentication import Authenticator
from ..body import read_body
from ..cloud_event import ID as EVENT_ID
from ..cross_site import SIGNS, refuse_other_sites
from ..error_pages import answer_problem
from ..forms import FORM
from ..paths import Target
from ..problems import Problem, busy, low_on_disk, low_on_memory, problem_of
from ..properties import HOPS_HEADER, PLAIN_HEADERS, PREFIXES, RABBITHUB_HEADERS, read
from ..success_bodies import encoded, wants_json
from .batch import publish_batch, read_batch

ACCEPT = b"accept"
CURL_TYPE = (b"content-type", FORM.encode())
_NO_BODY = ((b"content-length", b"0"),)
MAX_HOPS = 20
MAX_PLANS = 4096
MAX_KEY_BYTES = 2048
"""Longer paths, queries and headers are not kept: 4,096 of them must not fill the memory."""
SECRET_OWNER = "from other hubs"
"""Whose unfinished bodies those to secret URLs are that stand for no user."""
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
    is_batch: bool
    has_key: bool
    """Whether the routing key was given: the messages of a batch may bring their own."""
    wants_json: bool
    """Whether the 202 has a body."""


@dataclass(frozen=True, slots=True)
class Permit:
    """What allows a publish in the name of a user who is not who sends it, and what it says."""

    user: User
    target: Target
    query_string: bytes
    headers: list[tuple[bytes, bytes]]
    routing_key: str | None = None
    """The only one that may be used; None leaves it to `hub.topic`."""


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
        max_hops: int = MAX_HOPS,
        public_url: str = "",
    ) -> None:
        self._engine = engine
        self._authenticator = authenticator
        self._vhosts = vhosts
        self._alarms = alarms
        self._waiting = 0
        self._max_body_bytes = max_body_bytes
        self._correlation_id_header = correlation_id_header.lower().encode()
        self._message_id_header = message_id_header.lower().encode()
        self._max_hops = max_hops
        self._public_url = public_url
        self._mapped = frozenset(
            {
                *PLAIN_HEADERS,
                RABBITHUB_HEADERS,
                HOPS_HEADER,
                *SIGNS,
                ACCEPT,
                self._correlation_id_header,
            }
        )
        self._plans: dict[Key, Plan] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send, target: Target) -> None:
        try:
            plan = await self._permitted(scope, target)
            self._admit()
            body = await self._read_body(receive, plan.user)
            if plan.version != plan.user.version or not plan.has_topic:
                # It may have taken minutes, and the right, or the user, may be gone.
                plan = await self._permitted(scope, target)
            headers, answer = await self._publish(plan, body)
        except ClientDisconnect:
            return
        except Exception as error:
            await answer_problem(problem_of(error), scope)(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 202, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    def mapped(self, headers: Iterable[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        """Those that say something about the message."""
        return [
            field for field in headers if field[0] in self._mapped or field[0].startswith(PREFIXES)
        ]

    async def publish_as(
        self, permit: Callable[[bytes | None], Awaitable[Permit | None]], receive: Receive
    ) -> tuple[list[tuple[bytes, bytes]], bytes]:
        """Publishes what is posted to a secret URL; gives headers and body of the 202.

        `permit` is asked before the body comes, with None, and again when it is there, for it may
        have taken minutes; it raises what is to be answered instead, and gives None for what was
        published before.
        """
        first = await permit(None)
        if first is not None:
            await self._permitted_as(first)
        self._admit()
        body = await self._read_body(receive, None if first is None else first.user)
        found = await permit(body)
        if found is None:
            return [*_NO_BODY], b""
        return await self._publish(await self._permitted_as(found), body)

    async def _read_body(self, receive: Receive, user: User | None) -> bytes:
        owner = SECRET_OWNER if user is None else user.name
        return await read_body(receive, self._max_body_bytes, self._alarms.unfinished, owner)

    async def _permitted_as(self, permit: Permit) -> Plan:
        """Not kept: with ids of messages among its headers it may be needed once."""
        plan = self._make(permit.user, permit.target, permit.query_string, permit.headers)
        key = permit.routing_key
        if key is not None:
            plan = replace(plan, routing_key=key, has_key=True, has_topic=plan.queue is not None)
        if not plan.has_topic:
            await self._require_topic(plan)
        return plan

    async def _permitted(self, scope: Scope, target: Target) -> Plan:
        plan = await self._plan(scope, target)
        if not plan.has_topic:
            await self._require_topic(plan)
        return plan

    async def _require_topic(self, plan: Plan) -> None:
        await require_topic(
            self._engine, plan.user, "write", plan.vhost, plan.exchange, plan.routing_key
        )

    async def _plan(self, scope: Scope, target: Target) -> Plan:
        authorization = None
        mapped: list[tuple[bytes, bytes]] = []
        for field in scope["headers"]:
            name = field[0]
            if name == b"authorization":
                authorization = field[1]
            elif name in self._mapped or name.startswith(PREFIXES):
                mapped.append(field)
        user = authorization and self._authenticator.cached(authorization, scope)
        if not user:
            user = await self._authenticator.user(authorization, scope)
        key = (user, scope["raw_path"], scope["query_string"], tuple(mapped))
        plan = self._plans.get(key)
        if plan is None or plan.version != user.version:
            refuse_other_sites(scope, self._public_url)
            plan = self._make(user, target, scope["query_string"], _typed(mapped))
            self._keep(key, plan)
        return plan

    def _make(
        self, user: User, target: Target, query_string: bytes, headers: list[tuple[bytes, bytes]]
    ) -> Plan:
        require_vhost(user, target.vhost, self._vhosts)
        to_publish(user, target.vhost, target.kind, target.name)
        wish = read(query_string, headers, self._correlation_id_header.decode(), self._max_hops)
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
            or (wish.is_batch and not wish.has_topic)  # each message's own is looked at then
            or has_topic(user, "write", target.vhost, target.name, wish.routing_key),
            is_batch=wish.is_batch,
            has_key=wish.has_topic,
            wants_json=any(
                name == ACCEPT and wants_json(value.decode("latin-1")) for name, value in headers
            ),
        )

    def _keep(self, key: Key, plan: Plan) -> None:
        _, raw_path, query_string, mapped = key
        if any(name in SIGNS or name == EVENT_ID for name, _ in mapped):
            return  # of browsers, which are asked each time: the key has no host; of one event
        if len(raw_path) + len(query_string) + sum(map(_size, mapped)) > MAX_KEY_BYTES:
            return
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans[key] = plan

    async def _publish(self, plan: Plan, body: bytes) -> tuple[list[tuple[bytes, bytes]], bytes]:
        """Headers and body of the 202, which is sent only after the engine's confirm."""
        if plan.is_batch:
            return await self._publish_batch(plan, body)
        return await self._publish_one(plan, body)

    async def _publish_one(
        self, plan: Plan, body: bytes
    ) -> tuple[list[tuple[bytes, bytes]], bytes]:
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
        more = self._answer_headers(properties)
        if not plan.wants_json:
            return [*_NO_BODY, *more], b""
        headers, answer = _told(1, int(outcome is Outcome.UNROUTED))
        return [*headers, *more], answer

    async def _publish_batch(
        self, plan: Plan, body: bytes
    ) -> tuple[list[tuple[bytes, bytes]], bytes]:
        self._admit()
        key = plan.routing_key if plan.has_key else None
        portions = read_batch(plan.properties, key, body)
        own = {portion.routing_key for portion in portions} if key is None else set()
        for topic in own if plan.queue is None else ():
            await require_topic(self._engine, plan.user, "write", plan.vhost, plan.exchange, topic)
        count = sum(len(portion.bodies) for portion in portions)
        self._waiting += 1
        try:
            outcome = await publish_batch(
                self._engine, plan.vhost, plan.exchange, plan.queue, portions
            )
        finally:
            self._waiting -= 1
        if outcome.unrouted and plan.mandatory:
            detail = f"no queue wants {outcome.unrouted} of the {count} messages"
            raise Problem(404, detail, title="No route")
        return _told(count, outcome.unrouted)

    def _admit(self) -> None:
        """Raises `Problem` 503 or 507 while publishers have to wait."""
        if self._alarms.any:
            raise low_on_disk() if self._alarms.disk else low_on_memory()
        if self._waiting >= MAX_WAITING:
            raise busy(f"{self._waiting} publishes wait for their confirm, {MAX_WAITING} may")

    def _answer_headers(self, properties: Properties) -> list[tuple[bytes, bytes]]:
        headers: list[tuple[bytes, bytes]] = []
        if self._message_id_header and properties.message_id:
            headers.append((self._message_id_header, properties.message_id.encode()))
        if self._correlation_id_header and properties.correlation_id:
            headers.append((self._correlation_id_header, properties.correlation_id.encode()))
        return headers


def _told(count: int, unrouted: int) -> tuple[list[tuple[bytes, bytes]], bytes]:
    """Headers and body of a 202 that tells how many messages it stands for."""
    answer = encoded({"published": count, "unrouted": unrouted})
    length = str(len(answer)).encode()
    return [(b"content-type", b"application/json"), (b"content-length", length)], answer


def _typed(headers: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
    """Without the type that curl gives to every body; a form says so with `amqp.content_type`."""
    return [field for field in headers if field != CURL_TYPE]


def _size(field: tuple[bytes, bytes]) -> int:
    return len(field[0]) + len(field[1])


def _check_user_id(user_id: str | None, user: User) -> None:
    if user_id is not None and user_id != user.name and "impersonator" not in user.tags:
        raise precondition_failed(
            f"user_id property set to '{user_id}' but authenticated user was '{user.name}'"
        )
