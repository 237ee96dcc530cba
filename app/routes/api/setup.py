"""The first administrator of a new server: `/warren/setup` (docs/security.md)."""

from __future__ import annotations

from starlette.responses import Response

from ....core.auth import GUEST
from ....hub.audit.documents import path_of
from ...access.cross_site import require_own_site
from ...access.local_requests import peer_of
from ...access.setup_link import SetupLink
from ...documents import requests
from ...exposure import PASSWORD_MIN_CHARACTERS
from ...problems import Problem
from .call import Call
from .required_tags import NO_LOGIN
from .route import Operation, Routes

MAX_BODY_BYTES = 16_384
_OVER = (
    "this setup link does not work: there is an administrator, or its hour is over, or the server "
    "was started again. As long as there is no administrator, each start prints a new link"
)


async def create(call: Call) -> Response:
    """Creates the first administrator, with the secret of the link that a new server prints when
    it starts. 403 for any other secret, and once there is an administrator."""
    scope, context = call.request.scope, call.context
    require_own_site(scope, context.public_url)
    context.authenticator.require_may_log_in(scope)
    body = await call.body(max_bytes=MAX_BODY_BYTES)
    name, password, secret = (body.text(key) for key in ("name", "password", "secret"))
    link = _accepting(context.setup_link, secret)
    _check(call, link, name, password)
    password_hash = await context.authenticator.logins.hashed(password)
    _accepting(link, secret)  # another request may have come first
    context.broker.add_administrator(name, password_hash)
    context.hub.audit.record(name, peer_of(scope), "put", path_of(("users", name)), status=201)
    return await call.done(is_new=True)


def _accepting(link: SetupLink | None, secret: str) -> SetupLink:
    """Returns the link; raises `Problem` 403 unless it accepts the secret."""
    if link is None or not link.accepts(secret):
        raise Problem(403, _OVER)
    return link


def _check(call: Call, link: SetupLink, name: str, password: str) -> None:
    """Raises `Problem` 400 for a name or password that an administrator can't have, 409 for the
    name of another user."""
    if name == GUEST:
        raise Problem(400, f"{GUEST} can't log in over HTTP: choose another name")
    if call.broker.users.get(name) is not None:
        raise Problem(409, f"there is a user '{name}' already: choose another name")
    if not link.takes_password(name, password):
        raise Problem(
            400,
            f"this password is easily guessed, and other machines can reach the server: choose one "
            f"of {PASSWORD_MIN_CHARACTERS} characters or more, not counting the name",
        )


ROUTES: Routes = {
    "/warren/setup": {"POST": Operation(create, NO_LOGIN, {201: None}, requests.Setup)}
}
