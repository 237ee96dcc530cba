"""Finds the session of a request and refuses those that may be forged."""

from __future__ import annotations

from dataclasses import dataclass

from starlette.types import Scope

from ...core.auth import User
from ..problems import Problem, unauthenticated
from .authentication import NO_CREDENTIALS, Authenticator
from .session_cookies import is_from_page, is_secure, refuse_forged, secret_of
from .sessions import LoginSession, Sessions

_OVER = "there is no such session, or it is over: log in again"


@dataclass(frozen=True, slots=True)
class OpenSession:
    """A session with the secret from its cookie."""

    secret: str
    session: LoginSession
    csrf_token: str

    @property
    def user(self) -> User:
        return self.session.user


def session_in(
    scope: Scope, sessions: Sessions, authenticator: Authenticator, public_url: str = ""
) -> OpenSession:
    """Returns the session of the request's cookie.

    Raises `Problem` 401 if there is none or it is over, 403 for a change that may be forged, and
    where passwords are not accepted.
    """
    secret = secret_of(scope, secure=is_secure(scope, public_url))
    if not secret and not is_from_page(scope):
        raise unauthenticated(NO_CREDENTIALS)
    authenticator.require_may_log_in(scope)
    session = sessions.find(secret)
    if session is None or not authenticator.accepts(session.user, scope):
        raise no_session()
    csrf_token = sessions.csrf_token(secret)
    refuse_forged(scope, csrf_token, public_url)
    return OpenSession(secret, session, csrf_token)


def no_session(detail: str = _OVER) -> Problem:
    """Returns a 401 for which browsers show no dialog of their own: they know no such scheme."""
    return Problem(401, detail, headers={"WWW-Authenticate": 'Cookie realm="warren"'})
