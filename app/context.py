"""The dependencies of every HTTP route, passed as one value."""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass, field
from urllib.parse import quote

from starlette.requests import Request

from ..core.auth import User
from ..core.broker import Broker
from ..core.resources.partial_content import PartialContents
from ..core.server.loop_monitor import LoopMonitor
from ..hub.engine.port import Engine
from ..hub.service import Hub
from .access.admission import Admission
from .access.authentication import Authenticator, authorization_of, is_bearer
from .access.authorization import require_vhost
from .access.cross_site import refuse_other_sites
from .access.session_requests import OpenSession, session_in
from .access.sessions import Sessions
from .access.setup_link import SetupLink
from .configuration.types import MetricsReaders
from .http.host_field import is_host
from .node import Node
from .overview.live import LiveOverview
from .requests.paths import ALIAS, Target
from .snapshots import Snapshots


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
    """The broker, for users, virtual hosts and policies, which `Engine` does not cover."""
    node: Node = field(default_factory=Node)
    metrics_readers: MetricsReaders = "local"
    monitor: LoopMonitor = field(default_factory=LoopMonitor)
    sessions: Sessions = field(default_factory=Sessions)
    setup_link: SetupLink | None = None
    """None if an administrator could log in over HTTP when the server started."""
    snapshots: Snapshots | None = None
    """None where no server runs."""
    overview: LiveOverview | None = None
    """None where no server runs."""
    management_url: str = ""
    """The management API of the cluster that is the engine; empty for the embedded engine."""

    @property
    def unfinished(self) -> PartialContents:
        return self.broker.alarms.unfinished

    async def user(self, request: Request, *, takes_tokens: bool = False) -> User:
        """Returns the authenticated user; that of a bearer token only if the route `takes_tokens`.

        Raises `Problem` 401, 429 or 503, and 403 for a cross-site request with a password.
        """
        scope = request.scope
        authorization = authorization_of(scope)
        user = await self.authenticator.user(authorization, scope, takes_tokens=takes_tokens)
        if not is_bearer(authorization):
            refuse_other_sites(scope, self.public_url)
        return user

    async def admission(self, request: Request) -> Admission:
        """Returns the user of a request below `/api`, by a password, the cookie of a session, or a
        bearer token with a scope for it. Raises as `user` and `session`."""
        scope = request.scope
        authorization = authorization_of(scope)
        if authorization is None:
            opened = self.session(request)
            return Admission(opened.user, self.sessions, opened.session)
        if is_bearer(authorization):
            path = "/".join(quote(name, safe="") for name in scope["api_names"])
            return Admission(self.authenticator.managing_user(authorization, scope, path))
        return Admission(await self.user(request))

    def session(self, request: Request) -> OpenSession:
        """Returns the session of the request's cookie. Raises `Problem` 401 and 403."""
        return session_in(request.scope, self.sessions, self.authenticator, self.public_url)

    async def user_in(self, request: Request, vhost: str, *, takes_tokens: bool = False) -> User:
        """Returns the authenticated user, who has access to the virtual host.

        Raises as `user`, and `ChannelError` 404 or 403 for the virtual host.
        """
        user = await self.user(request, takes_tokens=takes_tokens)
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
