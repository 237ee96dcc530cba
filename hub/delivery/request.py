"""Makes the POST request that delivers a message (docs/rabbithub.md)."""

from __future__ import annotations

from urllib.parse import quote

from ...core.message.model import Message
from ..requests import Resource
from ..subscriptions.intent import append_query
from ..subscriptions.subscription import Subscription
from . import cloudevents
from .envelope import Envelope
from .headers import (
    add_content,
    add_properties,
    add_redelivered,
    content_type,
    header_value,
)
from .signature import sign, webhook_key, webhook_signature

_SIGNED = ("webhook-timestamp", "webhook-signature", "X-Hub-Signature")
MAX_KEYS = 100  # routing keys whose URL is cached
_URL_CHARACTERS = "!#$%&'()*+,-./:;=?@[]_~"  # what may stand between "<" and ">" of a Link


class DeliveryRequest:
    __slots__ = ("body", "headers", "url")

    def __init__(self, url: str, headers: dict[str, str], body: bytes) -> None:
        self.url = url
        self.headers = headers
        self.body = body


class RequestTemplate:
    """The parts of requests that are the same for all messages of a subscription.

    A renewal of the subscription needs another template.
    """

    __slots__ = ("_constant", "_keys", "_method", "_previous", "_source", "_urls", "subscription")

    def __init__(self, subscription: Subscription, signature_method: str) -> None:
        keys = subscription.keys
        self.subscription = subscription
        self._method = subscription.options.signature_method or signature_method
        self._keys = [] if keys.secret is None else [webhook_key(keys.secret)]
        self._previous = None if keys.previous is None else webhook_key(keys.previous)
        self._source = subscription.topic_url or _endpoint(subscription)
        self._constant = self._constant_headers()
        self._urls: dict[str, tuple[str, str]] = {}

    def make_request(
        self, envelope: Envelope, message: Message, now_s: float, arrived_at: float
    ) -> DeliveryRequest:
        """Returns the request for one attempt, at `now_s` of wall time. `arrived_at` is the steady
        time of the first arrival in the queue. Both are in seconds."""
        url, shown_key = self._target(envelope.routing_key)
        timestamp = str(int(now_s))
        headers = self._constant.copy()
        headers["X-AMQP-Routing-Key"] = shown_key
        headers["webhook-id"] = envelope.message_id
        headers["webhook-timestamp"] = timestamp
        if envelope.exchange:
            headers["X-AMQP-Exchange"] = header_value(envelope.exchange)
        if envelope.hops:
            headers["X-Hub-Hops"] = str(envelope.hops)
        add_redelivered(headers, envelope, message)
        add_properties(headers, message)
        body = self._add_content(headers, envelope, message, arrived_at)
        self._add_signatures(headers, envelope.message_id, timestamp, body, now_s)
        return DeliveryRequest(url, headers, body)

    def sign_again(
        self, request: DeliveryRequest, message_id: str, now_s: float
    ) -> DeliveryRequest:
        """Returns an earlier request with the credentials and signatures of now."""
        old = {*_SIGNED, "Authorization"}
        headers = {name: value for name, value in request.headers.items() if name not in old}
        timestamp = str(int(now_s))
        headers["webhook-timestamp"] = timestamp
        if "Authorization" in self._constant:
            headers["Authorization"] = self._constant["Authorization"]
        self._add_signatures(headers, message_id, timestamp, request.body, now_s)
        return DeliveryRequest(request.url, headers, request.body)

    def _target(self, routing_key: str) -> tuple[str, str]:
        """Returns the URL to post to, and the routing key as a header value."""
        found = self._urls.get(routing_key)
        if found is None:
            callback = self.subscription.callback
            if not self.subscription.is_websub:  # whose callbacks stay as given (WebSub 5.1, 7)
                callback = append_query(callback, ("hub.topic", routing_key))
            if len(self._urls) >= MAX_KEYS:
                self._urls.clear()
            found = self._urls[routing_key] = (callback, header_value(routing_key))
        return found

    def _constant_headers(self) -> dict[str, str]:
        subscription = self.subscription
        headers = {"X-Hub-Hops": "0"}  # the next hub counts on from it, so loops end
        if subscription.source.kind == "q":
            headers["X-AMQP-Queue"] = header_value(subscription.source.name)
        if subscription.base_url:
            hub, topic = _link(_below(subscription.base_url, "/hub")), _link(self._source)
            headers["Link"] = f'{hub}; rel="hub", {topic}; rel="self"'
        if subscription.keys.basic_auth is not None:
            headers["Authorization"] = f"Basic {subscription.keys.basic_auth}"
        return headers

    def _add_content(
        self, headers: dict[str, str], envelope: Envelope, message: Message, arrived_at: float
    ) -> bytes:
        form, stored = self.subscription.options.format, content_type(message)
        own = cloudevents.own_attributes(message)
        if cloudevents.is_structured(stored) or (form == "plain" and own is None):
            add_content(headers, message)
            return message.body
        attributes = own or cloudevents.attributes(self._source, envelope, message, arrived_at)
        if form != "cloudevents-structured":
            add_content(headers, message)
            headers.update(cloudevents.binary_headers(attributes))
            return message.body
        headers["Content-Type"] = cloudevents.STRUCTURED_TYPE
        return cloudevents.structured_body(attributes, stored, message.body)

    def _add_signatures(
        self, headers: dict[str, str], message_id: str, timestamp: str, body: bytes, now_s: float
    ) -> None:
        keys = self.subscription.keys
        if keys.secret is not None:
            headers["X-Hub-Signature"] = sign(self._method, keys.secret, body)
        signing = self._keys
        if self._previous is not None and now_s < keys.previous_until:
            signing = [*signing, self._previous]
        if signing:
            signature = webhook_signature(signing, message_id, timestamp, body)
            headers["webhook-signature"] = signature


def _endpoint(subscription: Subscription) -> str:
    """Returns the URL of the source, below the address that the subscriber used."""
    return _below(subscription.base_url, endpoint_path(subscription.source))


def endpoint_path(source: Resource) -> str:
    vhost = "" if source.vhost == "/" else "/" + quote(source.vhost, safe="")
    return f"{vhost}/endpoint/{source.kind}/{quote(source.name, safe='')}"


def _below(base_url: str, path: str) -> str:
    return base_url.rstrip("/") + path


def _link(url: str) -> str:
    return f"<{quote(url, safe=_URL_CHARACTERS, errors='surrogateescape')}>"
