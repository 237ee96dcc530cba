"""An entry of the audit log, and the filter by which a request selects entries."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A change or a login. It has no secrets: whoever makes it leaves them out."""

    at: float
    """Wall time in seconds."""
    user: str
    address: str
    action: str
    """`put`, `post`, `patch`, `delete`, `login` or `logout`."""
    subject: str
    """The path of what was changed; empty for a login."""
    status: int
    """The status of the answer: 401 for a wrong password, 403 for a change that was refused."""
    token: str = ""
    """The name of the bearer token, if one was used."""
    before: str = ""
    """The values that a change has replaced, as JSON; empty for nothing."""
    after: str = ""


@dataclass(frozen=True, slots=True)
class StoredEntry:
    """An entry as it is stored; later ones have higher ids."""

    id: int
    entry: AuditEntry


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Selects entries; None selects all. `before` is the last id of the previous page."""

    user: str | None = None
    address: str | None = None
    action: str | None = None
    subject: str | None = None
    """The beginning of the path."""
    before: int | None = None
    limit: int = 100
