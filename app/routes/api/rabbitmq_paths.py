"""Which paths of the API RabbitMQ has where a cluster is the engine: those of exchanges, queues,
users and the like. Those of the hub and of this process are served here."""

from __future__ import annotations

from typing import Final

from ...problems import Problem

_SERVED: Final = (
    "/hub/", "/auth", "/version", "/whoami", "/logs", "/livelog",
    "/warren/audit", "/warren/live", "/warren/log", "/warren/login", "/warren/logout",
    "/warren/session", "/warren/snapshots",
)  # fmt: skip
_OBJECTS: Final = "/auth/"
_PUBLISH: Final = "/publish"
"""The hub publishes as at `/endpoint`, which takes no session of a browser."""
_OWN: Final = "/warren/"


def is_rabbitmqs(path: str) -> bool:
    """Returns whether RabbitMQ's management API answers a path below `/api`."""
    is_served = path.startswith(_SERVED) or path.endswith(_PUBLISH)
    return not is_served or path.startswith(_OBJECTS)


def ask_rabbitmq(path: str, management_url: str) -> Problem:
    """Returns the 501 for such a path; its member `engine` is where to ask."""
    has = "without" if path.startswith(_OWN) else "which has the objects below"
    detail = (
        f"this hub runs on RabbitMQ, {has} /api{path}: ask its management API at {management_url}"
    )
    return Problem(501, detail, title="Not on this engine", members={"engine": management_url})
