"""The dependencies of every HTTP route, passed as one value."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from starlette.requests import Request

from ..core.auth import User
from ..core.broker import Broker
from ..core.resources.partial_content import PartialContents
from ..hub.engine.port import Engine
from ..hub.service import Hub
from .access import require_vhost
from .authentication import Authenticator, authorization_of
from .cross_site import refuse_other_sites
from .host_field import is_host
from .paths import ALIAS, Target


@dataclass(frozen=True, slots=True)
class Context:
    """The dependencies of every route. `public_url` has no trailing slash and is empty unless it is
    configured."""

    engine: Engine
    hub: Hub
    authenticator: Authenticator
    vhosts: Container[str]
    public_url: str
    own_url: str
    """`http://host:port` of the listener, used if the Host field of a request is not valid."""
    broker: Broker
    """For users, virtual hosts and policies, which `Engine` does not cover."""

    @property
    def unfinished(self) -> PartialContents:
        return self.broker.alarms.unfinished

    async def user(self, request: Request) -> User:
        """Returns the authenticated user.

        Raises `Problem` 401, 429 or 503, and 403 for a cross-site request.
        """
        scope = request.scope
        user = await self.authenticator.user(authorization_of(scope), scope)
        refuse_other_sites(scope, self.public_url)
        return user

    async def user_in(self, request: Request, vhost: str) -> User:
        """Returns the authenticated user, who has access to the virtual host.

        Raises as `user`, and `ChannelError` 404 or 403 for the virtual host.
        """
        user = await self.user(request)
        require_vhost(user, vhost, self.vhosts)
        return user

    def base_url(self, request: Request) -> str:
        """Returns the URL under which the client reached this server, with the base path if the
        request had it."""
        if self.public_url:
            return self.public_url
        host = request.headers.get("host", "")
        own = f"{request.scope['scheme']}://{host}" if is_host(host.encode()) else self.own_url
        prefix = str(request.scope.get("prefix", ""))
        return own if prefix == ALIAS else own + prefix

    def verified_url(self, request: Request) -> str:
        """Returns `base_url` if it is known to be this server's, else a known one.

        Used in requests to third parties on behalf of an anonymous client, whose Host field can't
        be trusted.
        """
        found, known = self.base_url(request), self.hub.settings.base_urls
        if found in (self.public_url, *known):
            return found
        return next((url for url in known if url.startswith(self.own_url)), self.own_url)

    def location(self, request: Request, target: Target) -> str:
        """Returns the absolute URL of an exchange or queue."""
        return self.base_url(request) + target.path()
