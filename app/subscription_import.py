"""Subscribing for somebody who gives a subscription as JSON (`subscription_entry.py`)."""

from __future__ import annotations

import asyncio
import time
from dataclasses import replace
from typing import Any

from ..core.auth import User
from ..hub.errors import BadRequest, TooManyPending
from ..hub.requests import SubscribeRequest, SubscribeResult
from ..hub.subscriptions.active import ActiveSubscription
from ..hub.subscriptions.options import Keys
from ..hub.subscriptions.subscription import identity_of_request
from ..hub.subscriptions.websub import key_of, read_topic
from ..hub.topics.names import ENTRIES
from .access import require_vhost
from .context import Context
from .problems import Problem, problem_of
from .routes.api.required_tags import ADMINISTRATOR
from .routes.subscribe import require_sink, require_source
from .subscription_entry import Entry, read_entry
from .subscription_json import MICROSECONDS, NODE

LOOK_AGAIN_S = 0.1
_NAMES = ("vhost", "resource_type", "resource_name", "topic", "callback")

Document = dict[str, Any]


class Importer:
    """Takes entries in for a user, who needs the rights to subscribe.

    Where too many verifications are pending it waits for room, until `max_wait_s` after its start.
    """

    def __init__(
        self, context: Context, user: User, base_url: str, max_wait_s: float = 0.0
    ) -> None:
        self._context = context
        self._hub = context.hub.subscriptions
        self._user = user
        self._base_url = base_url
        self._waits_until = time.monotonic() + max_wait_s

    def read(self, raw: Any) -> Entry:
        """Raises `BadRequest`."""
        return read_entry(raw, self._user, self._base_url, self._keys)

    async def take(self, raw: Any) -> Document:
        """Never raises: what is wrong is in the result."""
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

    async def subscribe(self, entry: Entry) -> int:
        """The granted lease in seconds. Raises what a subscribe raises."""
        request = replace(entry.request, user=self._owner(entry))
        if entry.sink is not None:
            token = self._context.hub.shortcuts.generate_token(entry.sink, "subscribe")
            request = replace(request, verify_token=token)
        await self._require_rights(request)
        if not entry.is_active:
            return (await self._hub.put_inactive(request)).lease_seconds
        return (await self._subscribe_in_time(request)).lease_seconds

    async def _subscribe_in_time(self, request: SubscribeRequest) -> SubscribeResult:
        while True:
            try:
                return await self._hub.subscribe(request)
            except TooManyPending:
                if time.monotonic() > self._waits_until:
                    raise
            await asyncio.sleep(LOOK_AGAIN_S)

    async def _require_rights(self, request: SubscribeRequest) -> None:
        """Those of the user who asks, whoever is to own it; topics of others are everybody's."""
        if request.topic_url and not await self._is_own_topic(request):
            return
        require_vhost(self._user, request.source.vhost, self._context.vhosts)
        await require_source(self._context, self._user, request)
        require_sink(self._context, self._user, request, "subscribe")

    async def _is_own_topic(self, request: SubscribeRequest) -> bool:
        """Raises `BadRequest` for a topic URL that stands for something else: what is delivered
        would come in the name of another topic."""
        bases = (*self._context.hub.settings.base_urls, self._base_url)
        content = "new" if request.source.name == ENTRIES else "full"
        topic = read_topic(request.topic_url, bases, content)
        key = await key_of(self._context.engine, topic)
        if (topic.source, key) != (request.source, request.topic):
            limit = f"{topic.source} with the key '{key}'"
            reason = "stands for another topic"
            raise BadRequest(reason, field="topic_url", value=request.topic_url, limit=limit)
        return topic.is_own

    def _owner(self, entry: Entry) -> str:
        """Only administrators make subscriptions for others, or for nobody as at `/hub`."""
        owner = self._user.name if entry.owner is None else entry.owner
        if owner != self._user.name:
            ADMINISTRATOR.require(self._user)
            if self._context.broker.users.get(owner) is None and not _is_for_nobody(entry):
                raise BadRequest("is no user", field="owner", value=owner)
        return owner

    def find(self, request: SubscribeRequest) -> ActiveSubscription | None:
        """The subscription that it is about, if there is one."""
        return self._hub.find(identity_of_request(request))

    def _keys(self, request: SubscribeRequest) -> Keys | None:
        """None for those of others too, for nobody has to learn that they subscribe."""
        active = self.find(request)
        if active is None or not (ADMINISTRATOR.has(self._user) or self._owns(active)):
            return None
        return active.subscription.keys

    def _owns(self, active: ActiveSubscription) -> bool:
        return active.subscription.owner == self._user.name


def _is_for_nobody(entry: Entry) -> bool:
    return entry.owner == "" and entry.request.topic_url != ""


def _failed(problem: Problem) -> Document:
    error = {"status": problem.status, "title": problem.title, **problem.members}
    return {"lease_expiry_time_microsec": 0, **_status(problem.detail), "error": error}


def _status(word: str) -> Document:
    return {"status": {"consumers": [{"node": NODE, "status": word}]}}
