"""Counts and limits the subscriptions of anonymous clients.

They are limited three times: for the client that asked, for the domain of the
callback and for the domain of the topic. Each of them alone can be had in any number.
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
"""So many times what one client, callback domain or topic domain may have are for all."""


class AnonymousSubscriptions:
    """`limit` is for one client, one callback domain and one topic domain each."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._counts: Counter[tuple[str, str]] = Counter()
        self._by_key: dict[str, dict[str, AnonymousClient]] = {}

    def add(self, subscription: Subscription) -> None:
        """Counts it, unless it is a user's."""
        anonymous_client = subscription.options.anonymous_client
        if anonymous_client is not None:
            self._counts.update(counted(anonymous_client))
            self._by_key.setdefault(subscription.topic, {})[subscription.id] = anonymous_client

    def remove(self, subscription: Subscription) -> None:
        anonymous_client = subscription.options.anonymous_client
        if anonymous_client is None:
            return
        self._counts.subtract(counted(anonymous_client))
        for one in counted(anonymous_client):
            if not self._counts[one]:
                del self._counts[one]
        of_key = self._by_key[subscription.topic]
        del of_key[subscription.id]
        if not of_key:
            del self._by_key[subscription.topic]

    def of(self, key: str) -> Collection[AnonymousClient]:
        """Whose subscriptions are bound with this key."""
        return self._by_key.get(key, {}).values()

    def require_room(self, anonymous_client: AnonymousClient) -> None:
        """Raises `TooManySubscriptions`."""
        for one in counted(anonymous_client):
            what, who = one
            limit = self._limit if who else self._limit * TOTAL_FACTOR
            if self._counts[one] >= limit:
                reason = "no further subscription is taken without credentials"
                raise TooManySubscriptions(
                    reason, field="hub.callback", value=who or None, limit=f"{limit} {what}"
                )


def counted(anonymous_client: AnonymousClient) -> list[tuple[str, str]]:
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
