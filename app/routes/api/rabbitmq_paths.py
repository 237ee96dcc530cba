"""Which paths of the API RabbitMQ has where a cluster is the engine: those of exchanges, queues,
users and the like. Those of the hub and of this process are served here."""

from __future__ import annotations

from typing import Final

from ...problems import Problem

_SERVED: Final = (
    "/hub/", "/auth", "/version", "/whoami", "/logs", "/livelog",
    "/warren/audit", "/warren/log", "/warren/login", "/warren/logout", "/warren/session",
)  # fmt: skip
_OBJECTS: Final = "/auth/"


def is_rabbitmqs(path: str) -> bool:
    """Returns whether RabbitMQ's management API answers a path below `/api`."""
    return not path.startswith(_SERVED) or path.startswith(_OBJECTS)


def ask_rabbitmq(path: str, management_url: str) -> Problem:
    """Returns the 501 for such a path; its member `engine` is where to ask."""
    detail = (
        f"this hub runs on RabbitMQ, which has the objects below /api{path}: ask its management "
        f"API at {management_url}"
    )
    return Problem(501, detail, title="Not on this engine", members={"engine": management_url})
