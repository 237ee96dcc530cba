"""The documents of browser sessions and of the audit log."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

from .common import Time


class Session(TypedDict):
    name: str
    tags: list[str]
    csrf_token: Annotated[
        str, Meta(description="For the field `X-CSRF-Token` of each change with the cookie.")
    ]
    version: Annotated[str, Meta(description="Of this server.")]
    vhosts: Annotated[list[str], Meta(description="Those that the user sees.")]
    engine: Annotated[
        str,
        Meta(description="The management API of the RabbitMQ that is the engine; else empty."),
    ]
    idle_s: Annotated[int, Meta(description="How long it lasts without a request.")]
    expires_in_s: Annotated[int, Meta(description="How long it lasts at most.")]


class AuditEntry(TypedDict):
    id: int
    at: Time
    user: str
    token: Annotated[str | None, Meta(description="The name of the bearer token that was used.")]
    address: str
    action: Literal["put", "post", "patch", "delete", "login", "logout"]
    object: Annotated[str | None, Meta(description="The path of what was changed.")]
    status: int
    before: Annotated[Any, Meta(description="What was replaced; without secrets.")]
    after: Annotated[Any, Meta(description="What it is now, or what was asked for.")]


class AuditLog(TypedDict):
    entries: list[AuditEntry]
    next_before: int | None
