"""Creates subscriptions from JSON entries (`entry.py`)."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

from ...core.auth import User
from ...hub.errors import BadRequest, TooManyPending
from ...hub.outputs.readers import DocumentReader
from ...hub.requests import SubscribeRequest, SubscribeResult
from ...hub.subscriptions.active import ActiveSubscription
from ...hub.subscriptions.options import Keys
from ...hub.subscriptions.subscription import identity_of_request
from ...hub.subscriptions.websub import WebSubTopic, key_of, read_topic
from ...hub.topics.names import ENTRIES
from ..access.authorization import require_vhost
from ..context import Context
from ..problems import Problem, problem_of
from ..routes.api.required_tags import ADMINISTRATOR
from ..routes.feeds import not_a_reader
from ..routes.subscribe import require_sink, require_source
from .document import MICROSECONDS, NODE
from .entry import SubscriptionEntry, read_entry

RETRY_INTERVAL_S = 0.1
_NAMES = ("vhost", "resource_type", "resource_name", "topic", "callback")

Document = dict[str, Any]


class Importer:
    """Imports entries for a user, who needs the rights to subscribe.

    While too many verifications are pending it waits, until `max_wait_s` after its creation.
    """

    def __init__(
        self, context: Context, user: User, base_url: str, max_wait_s: float = 0.0
    ) -> None:
        self._context = context
        self._hub = context.hub
        self._user = user
        self._base_url = base_url
        self._waits_until = time.monotonic() + max_wait_s

    def read(self, raw: Any) -> SubscriptionEntry:
        """Parses an entry. Raises `BadRequest`."""
        return read_entry(raw, self._user, self._base_url, self._keys)

    async def take(self, raw: Any) -> Document:
        """Imports an entry and returns its result. Never raises: errors are in the result."""
        named = {key: raw.get(key) for key in _NAMES} if isinstance(raw, dict) else {}
        try:
            entry = self.read(raw)
            lease_seconds = await self.subscribe(entry)
        except Exception as error:
            return {**named, **_failed(problem_of(error))}
        expiry = int((time.time() + lease_seconds) * MICROSECONDS)
        is_asked = entry.is_active and entry.sink is None and entry.request.verify == ("async",)
        status = "pending" if is_asked else "ok"
        return {**named, "lease_expiry_time_microsec": expiry, **_status(status)}

    async def subscribe(self, entry: SubscriptionEntry) -> int:
        """Subscribes; returns the granted lease in seconds. Raises as a subscribe request does."""
        request = replace(entry.request, user=self._owner(entry))
        if entry.sink is not None:
            token = self._context.hub.shortcuts.generate_token(entry.sink, "subscribe")
            request = replace(request, verify_token=token)
        await self._require_rights(request)
        if not entry.is_active:
            return (await self._hub.subscriptions.put_inactive(request)).lease_seconds
        return (await self._subscribe_in_time(request)).lease_seconds

    async def _subscribe_in_time(self, request: SubscribeRequest) -> SubscribeResult:
        while True:
            try:
                return await self._hub.subscriptions.subscribe(request)
            except TooManyPending:
                if time.monotonic() > self._waits_until:
                    raise
            await asyncio.sleep(RETRY_INTERVAL_S)

    async def _require_rights(self, request: SubscribeRequest) -> None:
        """Checks the rights of the requesting user, whoever will own the subscription; external
        topics need none."""
        topic = await self._topic(request) if request.topic_url else None
        if topic is not None and not topic.is_own:
            return
        if topic is not None and topic.document is not None:
            reader = DocumentReader(topic.token, self._user.name)
            if not self._hub.readers.may_read(topic.document.place, reader):
                raise not_a_reader(self._hub, topic.document)
            return
        require_vhost(self._user, request.source.vhost, self._context.vhosts)
        await require_source(self._context, self._user, request)
        require_sink(self._context, self._user, request, "subscribe")

    async def _topic(self, request: SubscribeRequest) -> WebSubTopic:
        """Returns the topic that the topic URL stands for.

        Raises `BadRequest` if the URL stands for another source or key than the entry's, since
        deliveries would carry the URL of another topic.
        """
        bases = (*self._context.hub.settings.base_urls, self._base_url)
        content = "new" if request.source.name == ENTRIES else "full"
        topic = read_topic(request.topic_url, bases, content)
        key = await key_of(self._context.engine, topic)
        if (topic.source, key) != (request.source, request.topic):
            limit = f"{topic.source} with the key '{key}'"
            reason = "stands for another topic"
            raise BadRequest(reason, field="topic_url", value=request.topic_url, limit=limit)
        return topic

    def _owner(self, entry: SubscriptionEntry) -> str:
        """Returns the owner. Only administrators may name another user, or none (anonymous)."""
        owner = self._user.name if entry.owner is None else entry.owner
        if owner != self._user.name:
            ADMINISTRATOR.require(self._user)
            if self._context.broker.users.get(owner) is None and not _is_anonymous(entry):
                raise BadRequest("is not a user", field="owner", value=owner)
        return owner

    def find(self, request: SubscribeRequest) -> ActiveSubscription | None:
        """Returns the existing subscription with the identity of the request, if any."""
        return self._hub.subscription_store.find(identity_of_request(request))

    def _keys(self, request: SubscribeRequest) -> Keys | None:
        """Returns the secrets of the existing subscription; None too if the user may not see it."""
        active = self.find(request)
        if active is None or not (ADMINISTRATOR.has(self._user) or self._owns(active)):
            return None
        return active.subscription.keys

    def _owns(self, active: ActiveSubscription) -> bool:
        return active.subscription.owner == self._user.name


def _is_anonymous(entry: SubscriptionEntry) -> bool:
    return entry.owner == "" and entry.request.topic_url != ""


def _failed(problem: Problem) -> Document:
    error = {"status": problem.status, "title": problem.title, **problem.members}
    return {"lease_expiry_time_microsec": 0, **_status(problem.detail), "error": error}


def _status(word: str) -> Document:
    return {"status": {"consumers": [{"node": NODE, "status": word}]}}
