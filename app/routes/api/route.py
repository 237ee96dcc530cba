"""Types of the route tables."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from starlette.responses import Response

from .call import Call
from .required_tags import RequiredTag

Handler = Callable[[Call], Awaitable[Response]]
Answers = Mapping[int, Any]
"""Answers by status: a type of `documents`, the media types if it is not JSON, or None for no
body."""
GONE: Final[Answers] = {204: None}
SET: Final[Answers] = {201: None, 204: None}


@dataclass(frozen=True, slots=True)
class Operation:
    """A method of a path: what it does, who may call it, what it answers and takes.

    `body` is a type of `documents`, or the media types of a body that is not JSON; `query` names
    the parameters of a GET. The docstring of the handler describes the operation in
    `/openapi.json`.
    """

    handler: Handler
    tag: RequiredTag
    answers: Answers
    body: Any = None
    query: tuple[str, ...] = ()


Methods = Mapping[str, Operation]
Routes = Mapping[str, Methods]
"""Methods by path below `/api`; `{vhost}` in a path matches any name."""
