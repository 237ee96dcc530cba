"""What a table of routes is made of."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping

from starlette.responses import Response

from .call import Call
from .required_tags import RequiredTag

Handler = Callable[[Call], Awaitable[Response]]
Methods = Mapping[str, tuple[Handler, RequiredTag]]
Routes = Mapping[str, Methods]
"""By path below `/api`; a part `{vhost}` stands for a name."""
