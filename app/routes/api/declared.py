"""The names and arguments of declarations and bindings in requests."""

from __future__ import annotations

from ....core.errors import ChannelError
from ....core.message.model import Table
from ....core.vhost import check_name
from ...definitions.values import table_from_json
from ...problems import Problem
from .body import Body


def check_new_name(kind: str, name: str, vhost: str) -> None:
    """Raises `Problem` 400 for a reserved name, and for one with a line end."""
    try:
        check_name(kind, name, vhost)
    except ChannelError as error:
        raise Problem(400, str(error)) from error


def arguments_of(body: Body) -> Table:
    """Returns the table `arguments`. Raises `Problem` 400 for one that AMQP can't encode."""
    if not body.has("arguments"):
        return {}
    try:
        return table_from_json(body.table("arguments"))
    except ValueError as error:
        raise Problem(400, f"arguments: {error}") from error
