"""A token, which lets its holder read, write and enrol in the name of a user."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from ..requests import Kind
from .scope import AnyScope, ManageScope, Scope, TunnelScope, matches


@dataclass(frozen=True, slots=True)
class Token:
    """A token, without its secret. Times are wall time in seconds."""

    id: str
    digest: str
    """SHA-256 of the secret, in hex; it is of no use for a request."""
    name: str
    owner: str
    """The user whose permissions it uses, as far as the scopes allow."""
    scopes: tuple[AnyScope, ...]
    made_at: float
    expires_at: float

    def is_over(self, now_s: float) -> bool:
        return self.expires_at <= now_s

    def allows(self, access: str, vhost: str, kind: Kind, name: str) -> bool:
        return any(scope.allows(access, vhost, kind, name) for scope in self._resources())

    def allows_label(self, label: str) -> bool:
        """Returns whether a tunnel with this label, in lower case, may be enrolled."""
        labels = (scope.label for scope in self.scopes if isinstance(scope, TunnelScope))
        return any(matches(pattern, label) for pattern in labels)

    def enters(self, vhost: str) -> bool:
        """Returns whether a scope is for an exchange or queue in the virtual host."""
        return any(scope.vhost == vhost for scope in self._resources())

    def has_vhost(self, vhost: str) -> bool:
        """Returns whether a scope names the virtual host."""
        vhosts = {one.vhost for one in self.scopes if not isinstance(one, TunnelScope)}
        return vhost in vhosts

    def managed(self, path: str, *, is_change: bool) -> list[ManageScope]:
        """Returns the scopes that allow a request to this path below `/api`."""
        scopes = (scope for scope in self.scopes if isinstance(scope, ManageScope))
        return [scope for scope in scopes if scope.allows(path, is_change=is_change)]

    def _resources(self) -> Iterator[Scope]:
        return (scope for scope in self.scopes if isinstance(scope, Scope))
