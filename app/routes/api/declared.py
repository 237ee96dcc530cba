"""The arguments of declarations and bindings in a request's body."""

from __future__ import annotations

from ....core.message.model import Table
from ...definitions.values import table_from_json
from ...problems import Problem
from .body import Body


def arguments_of(body: Body) -> Table:
    """Returns the table `arguments`. Raises `Problem` 400 for one that AMQP can't encode."""
    if not body.has("arguments"):
        return {}
    try:
        return table_from_json(body.table("arguments"))
    except ValueError as error:
        raise Problem(400, f"arguments: {error}") from error
