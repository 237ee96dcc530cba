"""Counts and limits the subscriptions of anonymous clients.

They are limited for the client, for the domain of the callback and for the domain of the topic:
a client can have any number of one of them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from urllib.parse import urlsplit

from ..errors import TooManySubscriptions
from ..guard.domains import owner_of
from ..requests import SubscribeRequest
from .options import AnonymousClient
from .subscription import Subscription

TOTAL_FACTOR = 10
"""The limit for all, as a multiple of that for one client, callback domain or topic domain."""


class AnonymousSubscriptions:
    """Counts and limits subscriptions of anonymous clients. `limit` is for one client, one callback
    domain and one topic domain each."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._counts: Counter[tuple[str, str]] = Counter()
        self._by_key: dict[str, dict[str, AnonymousClient]] = {}

    def add(self, subscription: Subscription) -> None:
        """Counts the subscription if it is of an anonymous client."""
        anonymous_client = subscription.options.anonymous_client
        if anonymous_client is not None:
            self._counts.update(accounts_of(anonymous_client))
            self._by_key.setdefault(subscription.topic, {})[subscription.id] = anonymous_client

    def remove(self, subscription: Subscription) -> None:
        anonymous_client = subscription.options.anonymous_client
        if anonymous_client is None:
            return
        self._counts.subtract(accounts_of(anonymous_client))
        for one in accounts_of(anonymous_client):
            if not self._counts[one]:
                del self._counts[one]
        of_key = self._by_key[subscription.topic]
        del of_key[subscription.id]
        if not of_key:
            del self._by_key[subscription.topic]

    def of(self, key: str) -> Collection[AnonymousClient]:
        """Returns the clients whose subscriptions are bound with this key."""
        return self._by_key.get(key, {}).values()

    def require_room(self, anonymous_client: AnonymousClient) -> None:
        """Raises `TooManySubscriptions` if one of its limits is reached."""
        for one in accounts_of(anonymous_client):
            what, who = one
            limit = self._limit if who else self._limit * TOTAL_FACTOR
            if self._counts[one] >= limit:
                reason = "too many subscriptions without credentials"
                raise TooManySubscriptions(
                    reason, field="hub.callback", value=who or None, limit=f"{limit} {what}"
                )


def accounts_of(anonymous_client: AnonymousClient) -> list[tuple[str, str]]:
    """Returns the accounts of a client, each with its name in error texts."""
    return [
        ("for one client", anonymous_client.client),
        ("for one domain of callbacks", anonymous_client.callback_domain),
        ("for one domain of topics", anonymous_client.topic_domain),
        ("in all", ""),
    ]


def anonymous_client_of(request: SubscribeRequest) -> AnonymousClient | None:
    """Returns the client that sent the request, None for a user.

    The list of public suffixes has to be loaded.
    """
    if not request.client:
        return None
    hosts = (urlsplit(url).hostname or "" for url in (request.callback or "", request.topic_url))
    return AnonymousClient(request.client, *map(owner_of, hosts))
