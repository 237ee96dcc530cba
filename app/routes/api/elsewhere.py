"""Which parts of the API answer where a RabbitMQ cluster is the engine: those of the hub and of
this process. Exchanges, queues, users and all else are there."""

from __future__ import annotations

from typing import Final

from ...problems import Problem

_SERVED: Final = (
    "/hub/", "/auth", "/version", "/whoami", "/logs", "/livelog",
    "/warren/audit", "/warren/log", "/warren/login", "/warren/logout", "/warren/session",
)  # fmt: skip
_EMBEDDED: Final = ("/hub/pipeline", "/auth/")


def is_elsewhere(path: str) -> bool:
    """Returns whether a path below `/api` is for the embedded engine alone."""
    return not path.startswith(_SERVED) or path.startswith(_EMBEDDED)


def elsewhere(path: str, management_url: str) -> Problem:
    """Returns the 501 for such a path."""
    if path.startswith("/hub/"):
        return embedded_only("pipelines need transactions")
    detail = (
        f"this hub runs on RabbitMQ, which has the objects below /api{path}: ask its management "
        f"API at {management_url}"
    )
    return Problem(501, detail, title="Not on this engine", members={"engine": management_url})


def embedded_only(why: str) -> Problem:
    """Returns the 501 for what RabbitMQ does not have either."""
    detail = f"{why}, which the embedded engine has alone, and this hub runs on RabbitMQ"
    return Problem(501, detail, title="Not on this engine")
