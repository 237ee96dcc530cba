"""Whether a user may use a virtual host over HTTP."""

from __future__ import annotations

from collections.abc import Container

from ..core.auth import User
from ..core.errors import access_refused, not_found


def require_vhost(user: User, vhost: str, vhosts: Container[str]) -> None:
    """Raises `ChannelError` 404 for a virtual host that does not exist, 403 without permission."""
    if vhost not in vhosts:
        raise not_found(f"no vhost '{vhost}'")
    if not user.may_enter(vhost):
        raise access_refused(f"access to vhost '{vhost}' refused for user '{user.name}'")
