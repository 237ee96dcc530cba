"""`POST /endpoint`: the hot route, without routing table and middleware.

A request is planned (`publish_plan.py`), its body is read, and the engine publishes it; the 202 is
sent after the engine's confirm.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Container
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from ...core.auth import User
from ...core.counted import counted
from ...core.message.model import Properties
from ...core.resources.alarms import Alarms
from ...hub.engine.port import Engine, PublishOutcome
from ..access.authentication import Authenticator
from ..problems import Problem, busy, low_on_disk, problem_of, refused_by_queue
from ..requests.body import read_body
from ..requests.paths import Target
from ..responses.error_pages import answer_problem
from ..responses.success_bodies import encoded
from .batch import publish_batch, read_batch
from .publish_plan import MAX_HOPS, Fields, Permit, Plans, PublishPlan

if TYPE_CHECKING:
    from ...hub.spans import Spans

_NO_BODY: Final = ((b"content-length", b"0"),)
SECRET_OWNER: Final = "from other hubs"
"""Whom unfinished bodies count for that are sent to secret URLs without a user."""
MAX_WAITING = 10_000
"""Publishes that wait for their confirm, each with its body in memory."""


class HttpPublisher:
    """Publishes what is posted to endpoints and secret URLs."""

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
        spans: Spans | None = None,
    ) -> None:
        self._spans = spans
        self._engine = engine
        self._alarms = alarms
        self._waiting = 0
        self._max_body_bytes = max_body_bytes
        self._correlation_id_header = correlation_id_header.lower().encode()
        self._message_id_header = message_id_header.lower().encode()
        self.plans = Plans(
            authenticator,
            vhosts,
            correlation_id_header=self._correlation_id_header,
            max_hops=max_hops,
            public_url=public_url,
        )

    async def __call__(self, scope: Scope, receive: Receive, send: Send, target: Target) -> None:
        try:
            plan = await self.plans.of_request(scope, target)
            self._admit()
            body = await self._read_body(receive, plan.user)
            if plan.version != plan.user.version:
                # The body may have taken minutes, and the right, or the user, may be gone.
                plan = await self.plans.of_request(scope, target)
            headers, answer = await self._publish(plan, body)
        except ClientDisconnect:
            return
        except Exception as error:
            await answer_problem(problem_of(error), scope)(scope, receive, send)
            return
        await send({"type": "http.response.start", "status": 202, "headers": headers})
        await send({"type": "http.response.body", "body": answer})

    async def publish_as(
        self, permit: Callable[[bytes | None], Awaitable[Permit | None]], receive: Receive
    ) -> tuple[Fields, bytes]:
        """Publishes a request to a secret URL; returns headers and body of the 202.

        `permit` is called with None before the body is read, and with the body afterwards, which
        may be minutes later. It raises an error to be answered instead, and returns None for what
        was published before.
        """
        first = await permit(None)
        if first is not None:
            self.plans.of_permit(first)
        self._admit()
        body = await self._read_body(receive, None if first is None else first.user)
        found = await permit(body)
        if found is None:
            return [*_NO_BODY], b""
        return await self._publish(self.plans.of_permit(found), body)

    async def _read_body(self, receive: Receive, user: User | None) -> bytes:
        owner = SECRET_OWNER if user is None else user.name
        return await read_body(receive, self._max_body_bytes, self._alarms.unfinished, owner)

    async def _publish(self, plan: PublishPlan, body: bytes) -> tuple[Fields, bytes]:
        """Returns headers and body of the 202, when the engine has confirmed."""
        self._admit()  # again: reading the body may have taken long
        self._waiting += 1
        try:
            if self._spans is not None:
                return await self._publish_in_span(self._spans, plan, body)
            if plan.is_batch:
                return await self._publish_batch(plan, body)
            return await self._publish_one(plan, body)
        finally:
            self._waiting -= 1

    async def _publish_in_span(
        self, spans: Spans, plan: PublishPlan, body: bytes
    ) -> tuple[Fields, bytes]:
        destination = plan.exchange if plan.queue is None else plan.queue
        with spans.publishing(
            plan.vhost, destination, plan.routing_key, plan.properties
        ) as properties:
            traced = replace(plan, properties=properties)
            if plan.is_batch:
                return await self._publish_batch(traced, body)
            return await self._publish_one(traced, body)

    async def _publish_one(self, plan: PublishPlan, body: bytes) -> tuple[Fields, bytes]:
        properties = plan.properties
        if self._message_id_header and properties.message_id is None:
            properties = replace(properties, message_id=secrets.token_hex(16))
        outcome = await self._engine.publish(
            plan.user, plan.vhost, plan.exchange, plan.routing_key, properties, body,
            queue=plan.queue,
        )  # fmt: skip
        if outcome is PublishOutcome.NOT_DURABLE:
            raise low_on_disk()
        if outcome is PublishOutcome.REJECTED:
            raise refused_by_queue()
        if outcome is PublishOutcome.UNROUTED and plan.mandatory:
            raise Problem(404, "no queue wants the message", title="No route")
        more = self._answer_headers(properties)
        if not plan.wants_json:
            return [*_NO_BODY, *more], b""
        headers, answer = _counts(1, int(outcome is PublishOutcome.UNROUTED))
        return [*headers, *more], answer

    async def _publish_batch(self, plan: PublishPlan, body: bytes) -> tuple[Fields, bytes]:
        key = plan.routing_key if plan.has_key else None
        parts = read_batch(plan.properties, key, body)
        count = sum(len(part.bodies) for part in parts)
        outcome = await publish_batch(
            self._engine, plan.user, plan.vhost, plan.exchange, plan.queue, parts
        )
        if outcome.unrouted and plan.mandatory:
            detail = f"no queue wants {outcome.unrouted:,} of the {counted(count, 'message')}"
            raise Problem(404, detail, title="No route")
        return _counts(count, outcome.unrouted)

    def _admit(self) -> None:
        """Raises `Shortage`, or `Problem` 503, while publishers have to wait."""
        self._alarms.require_none()
        if self._waiting >= MAX_WAITING:
            raise busy(f"too many unconfirmed publishes (limit {MAX_WAITING})")

    def _answer_headers(self, properties: Properties) -> Fields:
        headers: Fields = []
        if self._message_id_header and properties.message_id:
            headers.append((self._message_id_header, properties.message_id.encode()))
        if self._correlation_id_header and properties.correlation_id:
            headers.append((self._correlation_id_header, properties.correlation_id.encode()))
        return headers


def _counts(count: int, unrouted: int) -> tuple[Fields, bytes]:
    """Returns headers and body of a 202 that says how many messages were published."""
    answer = encoded({"published": count, "unrouted": unrouted})
    length = str(len(answer)).encode()
    return [(b"content-type", b"application/json"), (b"content-length", length)], answer
