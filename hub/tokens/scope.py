"""Scopes: access to an exchange or queue, tunnels, or the management API, by a name or by how names
begin."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, cast

from ..errors import BadRequest
from ..requests import Kind, Resource

ScopeAccess = Literal["read", "write"]
ACCESSES: Final[tuple[ScopeAccess, ...]] = ("read", "write")
ANY_END: Final = "*"
"""At the end of a name: all names that begin with what is before it. Nowhere else is it special."""
MAX_NAME_BYTES: Final = 255  # an AMQP short string
MAX_LABEL_CHARACTERS: Final = 63  # of a DNS label (RFC 1035 2.3.4)
TUNNEL: Final = "tunnel"
MANAGE: Final = "manage"
MAX_PATH_CHARACTERS: Final = 1_000


@dataclass(frozen=True, slots=True)
class Scope:
    """Access to `name` of a virtual host, which may end in `*`."""

    access: ScopeAccess
    vhost: str
    kind: Kind
    name: str

    @property
    def resource(self) -> Resource | None:
        """The one exchange or queue that it is for; None for many."""
        return None if self.name.endswith(ANY_END) else Resource(self.vhost, self.kind, self.name)

    def allows(self, access: str, vhost: str, kind: Kind, name: str) -> bool:
        is_kind = access == self.access and vhost == self.vhost and kind == self.kind
        return is_kind and matches(self.name, name)

    def document(self) -> dict[str, str]:
        """Returns the scope as it is given: `{"read": "x/news", "vhost": "/"}`."""
        return {self.access: f"{self.kind}/{self.name}", "vhost": self.vhost}


@dataclass(frozen=True, slots=True)
class TunnelScope:
    """Enrolling a tunnel with a label, which may end in `*`."""

    label: str

    def document(self) -> dict[str, str]:
        return {TUNNEL: self.label}


@dataclass(frozen=True, slots=True)
class ManageScope:
    """Requests to the paths below `/api` that match, which may end in `*`."""

    access: ScopeAccess
    """Only GET, or all methods."""
    path: str
    """Percent-encoded, without `/api/`."""
    vhost: str | None
    """Only what is in one virtual host; None for all that the owner manages."""

    def allows(self, path: str, *, is_change: bool) -> bool:
        return (self.access == "write" or not is_change) and matches(self.path, path)

    def document(self) -> dict[str, str]:
        vhost = {} if self.vhost is None else {"vhost": self.vhost}
        return {MANAGE: self.access, "path": self.path, **vhost}


AnyScope = Scope | TunnelScope | ManageScope


def read_scope(given: Any) -> AnyScope:
    """Reads `{"read": "x/NAME", "vhost"?}`, or `write`, `{"tunnel": "LABEL"}`, or
    `{"manage": "read", "path"?, "vhost"?}`, or `write`.

    Raises `BadRequest`.
    """
    if isinstance(given, Mapping) and MANAGE in given:
        return _read_manage_scope(given)
    if isinstance(given, Mapping) and given.keys() == {TUNNEL}:
        return _read_tunnel_scope(given)
    if not isinstance(given, Mapping) or not given.keys() <= {*ACCESSES, "vhost"}:
        raise _wrong(given)
    accesses = [access for access in ACCESSES if access in given]
    vhost = given.get("vhost", "/")
    if len(accesses) != 1 or not isinstance(vhost, str):
        raise _wrong(given)
    path = given[accesses[0]]
    kind, slash, name = path.partition("/") if isinstance(path, str) else ("", "", "")
    if kind not in ("x", "q") or not slash or not name:
        raise _wrong(given)
    if len(name.encode()) > MAX_NAME_BYTES or "\0" in name + vhost:
        raise _wrong(given)
    return Scope(accesses[0], vhost, cast(Kind, kind), name)


def _read_tunnel_scope(given: Mapping[str, Any]) -> TunnelScope:
    label = given[TUNNEL]
    if not isinstance(label, str) or not 1 <= len(label) <= MAX_LABEL_CHARACTERS:
        raise _wrong(given)
    return TunnelScope(label.lower())


def _read_manage_scope(given: Mapping[str, Any]) -> ManageScope:
    access, path, vhost = given[MANAGE], given.get("path", ANY_END), given.get("vhost")
    if not given.keys() <= {MANAGE, "path", "vhost"} or access not in ACCESSES:
        raise _wrong(given)
    if not isinstance(path, str) or not 1 <= len(path) <= MAX_PATH_CHARACTERS:
        raise _wrong(given)
    if path.startswith("/") or not (vhost is None or isinstance(vhost, str)):
        raise _wrong(given)
    return ManageScope(access, path, vhost)


def matches(pattern: str, name: str) -> bool:
    """Returns whether the name is the pattern, or begins with what is before a final `*`."""
    if pattern.endswith(ANY_END):
        return name.startswith(pattern[: -len(ANY_END)])
    return name == pattern


def _wrong(given: Any) -> BadRequest:
    return BadRequest(
        "has something that is no scope",
        field="scopes",
        value=str(given),
        limit='{"read" or "write": "x/NAME" or "q/NAME", "vhost": "/"}, {"tunnel": "LABEL"}, or '
        '{"manage": "read" or "write", "path": "queues/*", "vhost": "/"}',
    )
