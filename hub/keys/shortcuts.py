"""Subscriptions of one resource of this hub at another, with a token instead of verification.

They are listed as subscriptions with a sink. From an exchange to a queue or exchange of its virtual
host it is an AMQP binding, else a consumer in this process; neither uses HTTP.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import BadRequest, TokenRefused
from ..guard.own import endpoint_of
from ..requests import Resource, SubscribeRequest
from .tokens import USES, Grant, ShortcutTokens


class Shortcuts:
    """Issues and checks the tokens for this hub's own resources."""

    def __init__(self, tokens: ShortcutTokens, base_urls: Sequence[str]) -> None:
        self._tokens = tokens
        self._base_urls = base_urls

    def generate_token(self, resource: Resource, intended_use: str | None) -> str:
        """Returns a token for the resource's own endpoint URL, valid for `token_lifetime_s`.

        `intended_use` is `subscribe` or `unsubscribe`, else `BadRequest`. The caller has
        checked that the resource exists and that the user may write to it.
        """
        if intended_use not in USES:
            limit = ", ".join(USES)
            reason = "is no use of a token" if intended_use else "is required"
            raise BadRequest(reason, field="hub.intended_use", value=intended_use, limit=limit)
        return self._tokens.issue(intended_use, resource)

    def check_token(self, token: str | None, resource: Resource, use: str) -> Grant:
        """Checks the token of a GET `/endpoint` with `hub.mode=subscribe` or `unsubscribe`.

        Raises `TokenRefused` unless the token was made for this resource and use.
        """
        grant = self._tokens.read(token) if token is not None else None
        if grant is None:
            raise TokenRefused("is not a token of this hub", field="hub.verify_token")
        if grant.use != use or grant.resource != resource:
            reason = f"was made to {grant.use} {grant.resource}"
            raise TokenRefused(reason, field="hub.verify_token", limit=f"{use} {resource}")
        return grant

    def sink(self, request: SubscribeRequest, use: str) -> Resource | None:
        """Returns the resource that the request's token allows as a sink, None without a token.

        The route checks that the user may write to it. Raises `TokenRefused` if the callback is
        not that resource's endpoint URL.
        """
        token = request.verify_token
        grant = self._tokens.read(token) if token is not None else None
        if grant is None:
            return None
        bases = (*self._base_urls, request.base_url)
        if grant.use != use:
            reason = f"is a shortcut token for another hub.mode ('{grant.use}')"
            raise TokenRefused(reason, field="hub.verify_token", limit=use)
        if request.callback is None or endpoint_of(request.callback, bases) != grant.resource:
            reason = "is a shortcut token, and hub.callback is not its resource's endpoint URL"
            raise TokenRefused(reason, field="hub.verify_token", limit=str(grant.resource))
        if grant.resource == request.source:
            raise BadRequest("is the source itself", field="hub.callback", value=request.callback)
        return grant.resource
