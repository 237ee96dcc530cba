"""Plans of publish requests: all that path, query and headers decide.

Requests to one resource mostly repeat each other's path, query and headers, so what these decide
(who may publish what where, with which properties) is worked out once and cached as a
`PublishPlan`. A repeat costs two dictionary hits.
"""

from __future__ import annotations

from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from typing import Final

from starlette.types import Scope

from ...core.auth import User
from ...core.auth.authorization import to_publish
from ...core.message.model import Properties
from ..access.authentication import Authenticator, is_bearer
from ..access.authorization import require_vhost
from ..access.cross_site import SIGNS, refuse_other_sites
from ..requests.cloud_event import ID as EVENT_ID
from ..requests.forms import FORM
from ..requests.paths import Target
from ..requests.properties import (
    HOPS_HEADER,
    PLAIN_HEADERS,
    PREFIXES,
    RABBITHUB_HEADERS,
    TRACE_HEADERS,
    read,
)
from ..responses.success_bodies import wants_json

_ACCEPT: Final = b"accept"
_CURL_TYPE: Final = (b"content-type", FORM.encode())
_ONCE: Final = TRACE_HEADERS | {EVENT_ID}
"""Headers that differ in each request."""
MAX_HOPS: Final = 20
MAX_PLANS: Final = 4096
MAX_KEY_BYTES: Final = 2048
"""Longer paths, queries and headers are not cached: 4,096 of them must not fill the memory."""

Fields = list[tuple[bytes, bytes]]
_Key = tuple[User, bytes, bytes, tuple[tuple[bytes, bytes], ...]]


@dataclass(frozen=True, slots=True)
class PublishPlan:
    """A publish without its body. Void as soon as `user.version` is not `version`."""

    user: User
    version: int
    vhost: str
    exchange: str
    queue: str | None
    routing_key: str
    properties: Properties
    mandatory: bool
    is_batch: bool
    has_key: bool
    """Whether the routing key was given: else each message of a batch may bring its own."""
    wants_json: bool
    """Whether the 202 has a body."""


@dataclass(frozen=True, slots=True)
class Permit:
    """A publish in the name of a user who is not the client, such as one to a secret URL."""

    user: User
    target: Target
    query_string: bytes
    headers: Fields
    routing_key: str | None = None
    """The only one that may be used; None leaves it to `hub.topic`."""


class Plans:
    """Makes the plans of requests, and caches those that may come again."""

    def __init__(
        self,
        authenticator: Authenticator,
        vhosts: Container[str],
        *,
        correlation_id_header: bytes,
        max_hops: int,
        public_url: str,
    ) -> None:
        self._authenticator = authenticator
        self._vhosts = vhosts
        self._correlation_id_header = correlation_id_header.decode()
        self._max_hops = max_hops
        self._public_url = public_url
        self._mapped = frozenset(
            {
                *PLAIN_HEADERS,
                RABBITHUB_HEADERS,
                HOPS_HEADER,
                *TRACE_HEADERS,
                *SIGNS,
                _ACCEPT,
                correlation_id_header,
            }
        )
        self._plans: dict[_Key, PublishPlan] = {}

    def message_headers(self, headers: Iterable[tuple[bytes, bytes]]) -> Fields:
        """Returns the header fields that affect the message."""
        return [
            field for field in headers if field[0] in self._mapped or field[0].startswith(PREFIXES)
        ]

    async def of_request(self, scope: Scope, target: Target) -> PublishPlan:
        """Returns the plan of a request that its user may make.

        Raises `Problem` 401, 403, 404 or 400, or `ChannelError`, as the request deserves.
        """
        authorization = None
        mapped: Fields = []
        for field in scope["headers"]:
            name = field[0]
            if name == b"authorization":
                authorization = field[1]
            elif name in self._mapped or name.startswith(PREFIXES):
                mapped.append(field)
        user = authorization and self._authenticator.cached(authorization, scope)
        if not user:
            user = await self._authenticator.user(authorization, scope, takes_tokens=True)
        key = (user, scope["raw_path"], scope["query_string"], tuple(mapped))
        plan = self._plans.get(key)
        if plan is None or plan.version != user.version:
            if not is_bearer(authorization):
                refuse_other_sites(scope, self._public_url)
            # curl gives its form type to every body; a real form says so with `amqp.content_type`.
            headers = [field for field in mapped if field != _CURL_TYPE]
            plan = self._make(user, target, scope["query_string"], headers)
            self._cache(key, plan)
        return plan

    def of_permit(self, permit: Permit) -> PublishPlan:
        """Returns the plan of a permit, uncached: ids among its headers may make it unique.

        Raises as `of_request`.
        """
        plan = self._make(permit.user, permit.target, permit.query_string, permit.headers)
        if permit.routing_key is None:
            return plan
        return replace(plan, routing_key=permit.routing_key, has_key=True)

    def _make(
        self, user: User, target: Target, query_string: bytes, headers: Fields
    ) -> PublishPlan:
        require_vhost(user, target.vhost, self._vhosts)
        # The core checks it too; here no body is taken from whom it would be refused to.
        to_publish(user, target.vhost, target.kind, target.name)
        wish = read(query_string, headers, self._correlation_id_header, self._max_hops)
        is_queue = target.letter == "q"
        return PublishPlan(
            user=user,
            version=user.version,
            vhost=target.vhost,
            exchange="" if is_queue else target.name,
            queue=target.name if is_queue else None,
            routing_key=wish.routing_key,
            properties=wish.properties,
            mandatory=wish.mandatory and not is_queue,
            is_batch=wish.is_batch,
            has_key=wish.has_topic,
            wants_json=any(
                name == _ACCEPT and wants_json(value.decode("latin-1")) for name, value in headers
            ),
        )

    def _cache(self, key: _Key, plan: PublishPlan) -> None:
        _, raw_path, query_string, mapped = key
        if any(name in SIGNS or name in _ONCE for name, _ in mapped):
            return  # Browsers are checked each time, as the key has no host.
        size = sum(len(name) + len(value) for name, value in mapped)
        if len(raw_path) + len(query_string) + size > MAX_KEY_BYTES:
            return
        if len(self._plans) >= MAX_PLANS:
            self._plans.clear()
        self._plans[key] = plan
