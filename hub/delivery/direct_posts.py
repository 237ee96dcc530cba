"""Sends single requests to a callback without its queue: tests, and messages that are sent again.

They change nothing about the subscription: neither its failures nor its breaker, and they are not
repeated. Their attempts are in the log.
"""

from __future__ import annotations

import asyncio
import secrets
from dataclasses import replace

from ...core.clock import Clock
from ...core.message.model import Message, Properties
from ..attempts.attempt import RESPONSE_CHARACTERS, Attempt, AttemptOutcome
from ..attempts.kept_request import KeptRequest, bounded_request
from ..attempts.log import AttemptLog
from ..errors import BadRequest
from ..lazy import Lazy
from ..sender.port import Answer, Sender, SendError
from ..settings import HubSettings
from ..subscriptions.active import ActiveSubscription
from ..subscriptions.subscription import SubscriptionStatus
from .envelope import Envelope
from .request import DeliveryRequest, RequestTemplate

TEST_HEADER = "X-Hub-Test"
SHOWN_BYTES = 64 * 1024
"""The limit of the body of a test's request in its answer."""


class DirectPosts:
    """Sends single requests to callbacks. `send_test` and `send_again` return the attempt with its
    request."""

    def __init__(
        self, sender: Lazy[Sender], attempts: AttemptLog, settings: HubSettings, clock: Clock
    ) -> None:
        self._sender = sender
        self._attempts = attempts
        self._settings = settings
        self._clock = clock

    async def send_test(
        self, active: ActiveSubscription, body: bytes, content_type: str
    ) -> Attempt:
        """Sends a body as a delivery with the header `X-Hub-Test`. Raises `BadRequest` for a
        subscription without a callback, or whose callback has not agreed."""
        _require_callback(active)
        subscription = active.subscription
        envelope = Envelope(f"test_{secrets.token_hex(16)}", "", subscription.topic)
        if subscription.source.kind == "x":
            envelope = replace(envelope, exchange=subscription.source.name)
        message = Message(
            envelope.exchange, envelope.routing_key, Properties(content_type=content_type), body
        )
        now_s = self._clock.wall_s()
        steady_s = self._clock.steady_ms() / 1000
        request = self._template(active).make_request(envelope, message, now_s, steady_s)
        request.headers[TEST_HEADER] = "true"
        return await self._send(active, request, envelope.message_id, 1)

    async def send_again(
        self, active: ActiveSubscription, kept: KeptRequest, webhook_id: str, number: int
    ) -> Attempt:
        """Sends a kept request that is whole, signed anew, under its old id. Raises as
        `send_test`."""
        _require_callback(active)
        request = self._template(active).sign_again(
            DeliveryRequest(kept.url, dict(kept.headers), kept.body),
            webhook_id,
            self._clock.wall_s(),
        )
        return await self._send(active, request, webhook_id, number)

    def _template(self, active: ActiveSubscription) -> RequestTemplate:
        return RequestTemplate(active.subscription, self._settings.signature_method)

    async def _send(
        self, active: ActiveSubscription, request: DeliveryRequest, webhook_id: str, number: int
    ) -> Attempt:
        began_ms = self._clock.now_ms()
        answer = await self._answer(request)
        attempt = Attempt(
            active.subscription.id,
            webhook_id,
            number,
            self._clock.wall_s(),
            self._clock.now_ms() - began_ms,
            None,
            AttemptOutcome.FAILED,
            str(answer)[:RESPONSE_CHARACTERS],
            active.subscription.callback,
            request=bounded_request(request.url, request.headers, request.body, SHOWN_BYTES),
        )
        if isinstance(answer, Answer):
            attempt.status, attempt.response = answer.status, answer.head
            attempt.body = answer.body.decode(errors="replace")
            if 200 <= answer.status < 300:
                attempt.outcome = AttemptOutcome.DELIVERED
        stored = replace(attempt, request=self._request_to_store(request))
        self._attempts.record(stored, lambda _: None, None)
        return attempt

    def _request_to_store(self, request: DeliveryRequest) -> KeptRequest:
        """Returns the request as it is stored, always: somebody has asked for it."""
        limit = self._settings.attempt_request_bytes
        return bounded_request(request.url, request.headers, request.body, limit)

    async def _answer(self, request: DeliveryRequest) -> Answer | SendError:
        sender = await self._sender.get()
        answered: asyncio.Future[Answer | Exception] = asyncio.get_running_loop().create_future()
        sender.post(
            request.url, request.headers, request.body,
            lambda answer: None if answered.done() else answered.set_result(answer),
        )  # fmt: skip
        answer = await answered
        if isinstance(answer, Answer | SendError):
            return answer
        raise answer


def _require_callback(active: ActiveSubscription) -> None:
    found = active.subscription
    if found.sink is not None:
        reason = "has no callback: its messages go to an exchange or queue of this hub"
    elif found.status is SubscriptionStatus.UNVERIFIED:
        reason = "was never verified: subscribe its callback first"
    elif active.state.is_over:
        reason = "is over: subscribe its callback again"
    else:
        return
    raise BadRequest(reason, field="subscription", value=found.id)
