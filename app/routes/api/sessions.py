"""Sessions of browsers: `/warren/login`, `/warren/session`, `/warren/logout` (docs/security.md)."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from ....core import VERSION
from ...access.cross_site import require_own_site
from ...access.local_requests import peer_of
from ...access.session_cookies import is_secure, secret_of, set_cookie
from ...access.session_requests import OpenSession, no_session
from ...documents import access, requests
from ...problems import Problem
from ...requests.body import read_body
from ...requests.forms import FORM, JSON, parse_form
from .body import Body
from .call import Call
from .required_tags import ANYBODY, NO_LOGIN, sees
from .route import GONE, Operation, Routes

MAX_BODY_BYTES = 16_384
_NO_STORE = {"Cache-Control": "no-store"}


async def _login(call: Call) -> Response:
    """Begins a session; the body is JSON or a form with `name` and `password`. The answer sets a
    cookie, which is accepted below `/api` only; each change needs the `csrf_token` in the field
    `X-CSRF-Token`."""
    scope, context = call.request.scope, call.context
    require_own_site(scope, context.public_url)
    name, password = await _credentials(call)
    known = context.broker.users.get(name)
    version = -1 if known is None else known.credentials_version
    try:
        user = await context.authenticator.login(name, password, scope)
    except Problem as problem:
        raise no_session(problem.detail) if problem.status == 401 else problem  # noqa: B904
    secure = is_secure(scope, context.public_url)
    sessions = context.sessions
    sessions.end(secret_of(scope, secure=secure))
    secret = sessions.begin(user, version)
    session = sessions.find(secret)
    if session is None:
        raise no_session("the user was changed during the login: log in again")
    opened = OpenSession(secret, session, sessions.csrf_token(secret))
    context.hub.audit.record(user.name, peer_of(scope), "login")
    return _answer(call, opened, {"Set-Cookie": set_cookie(secret, secure=secure)})


async def _credentials(call: Call) -> tuple[str, str]:
    """Returns name and password. Raises `Problem` 400, 413, or 415 for another media type."""
    media_type = call.request.headers.get("content-type", JSON).partition(";")[0].strip().lower()
    if media_type not in (FORM, JSON):
        raise Problem(415, f"content type '{media_type[:80]}' is neither {FORM} nor {JSON}")
    raw = await read_body(
        call.request.receive, MAX_BODY_BYTES, call.context.unfinished, peer_of(call.request.scope)
    )
    if media_type == JSON:
        body = Body(raw)
        return body.text("name"), body.text("password")
    form = parse_form(raw)
    given = [form.get(key, []) for key in ("name", "password")]
    if any(len(values) != 1 for values in given):
        raise Problem(400, "the form needs the fields 'name' and 'password', once each")
    return given[0][0], given[1][0]


async def _session(call: Call) -> Response:
    """Returns who is logged in by the session's cookie, and the token that changes need."""
    return _answer(call, call.context.session(call.request))


async def _logout(call: Call) -> Response:
    """Ends the session, and only it."""
    scope, public_url = call.request.scope, call.context.public_url
    secure = is_secure(scope, public_url)
    call.context.sessions.end(secret_of(scope, secure=secure))
    call.context.hub.audit.record(call.user.name, peer_of(scope), "logout", status=204)
    headers = {**_NO_STORE, "Set-Cookie": set_cookie("", secure=secure)}
    return Response(status_code=204, headers=headers)


def _answer(call: Call, opened: OpenSession, headers: dict[str, str] | None = None) -> Response:
    context, sessions = call.context, call.context.sessions
    found = {
        "name": opened.user.name,
        "tags": sorted(opened.user.tags),
        "csrf_token": opened.csrf_token,
        "version": VERSION,
        "vhosts": sorted(one for one in context.broker.vhosts if sees(opened.user, one)),
        "engine": context.management_url,
        "idle_s": int(sessions.idle_s),
        "expires_in_s": int(sessions.lasts_s(opened.session)),
    }
    return JSONResponse(found, headers={**_NO_STORE, **(headers or {})})


ROUTES: Routes = {
    "/warren/login": {"POST": Operation(_login, NO_LOGIN, {200: access.Session}, requests.Login)},
    "/warren/session": {"GET": Operation(_session, NO_LOGIN, {200: access.Session})},
    "/warren/logout": {"POST": Operation(_logout, ANYBODY, GONE)},
}
