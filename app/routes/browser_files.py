"""Files for browsers: the web UI at `/ui/`, the module `/js/warren.js`, the demos at `/demos/`, the
API at `/docs/api/`.

They are public. Pages of any site may load the module and the demos. In a demo the URL of the hub
is that of the request, so that a copy on somebody's disk finds the hub again.
"""

from __future__ import annotations

import base64
import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from ..context import Context
from ..responses.error_pages import STATIC

MODULES: Final = STATIC / "js"
DEMOS: Final = STATIC / "demos"
API: Final = STATIC / "docs"
UI: Final = STATIC / "ui"
HUB_IN_FILES: Final = "http://localhost:15672/"
"""The default address, as the files have it, so that they also work as they are in the
repository."""
INDEX: Final = "index.html"
MAX_RENDERED: Final = 64
"""Demos that are kept as they were sent; the Host field is the client's to choose."""
_PUBLIC: Final = {
    "Access-Control-Allow-Origin": "*",
    "Cache-Control": "no-cache",
    "Cross-Origin-Resource-Policy": "cross-origin",
    "X-Content-Type-Options": "nosniff",
}
OWN: Final = {
    "Cache-Control": "no-cache",
    "Content-Security-Policy": "default-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_INLINE: Final = re.compile(r"<(script|style)\b[^>]*>(.*?)</\1>", re.DOTALL)


class PublicFiles(StaticFiles):
    """The files of a folder, for pages of any site."""

    def file_response(self, *args: object, **parameters: object) -> Response:
        response = super().file_response(*args, **parameters)  # type: ignore[arg-type]
        response.headers.update(_PUBLIC)
        return response


class Demos(PublicFiles):
    """The demos, with what they share; the list of them is the index."""

    def __init__(self, context: Context) -> None:
        super().__init__(directory=DEMOS)
        self._context = context

    async def get_response(self, path: str, scope: Scope) -> Response:
        file = INDEX if path == "." else path
        response = await super().get_response(file, scope)
        if not file.endswith(".html"):
            return response
        hub = self._context.base_url(Request(scope)) + "/"
        page, policy = _rendered(DEMOS / file, hub)
        headers = {**_PUBLIC, "Content-Security-Policy": policy, "Referrer-Policy": "no-referrer"}
        return Response(page, 200, headers, media_type="text/html")


class OwnFiles(StaticFiles):
    """The files of a folder, for pages of this server only, which load nothing from elsewhere."""

    def file_response(self, *args: object, **parameters: object) -> Response:
        response = super().file_response(*args, **parameters)  # type: ignore[arg-type]
        response.headers.update(OWN)
        return response


class ApiDocs(StaticFiles):
    """The page that shows `/openapi.json`, with its script and style sheet."""

    def __init__(self) -> None:
        super().__init__(directory=API)

    async def get_response(self, path: str, scope: Scope) -> Response:
        response = await super().get_response(INDEX if path == "." else path, scope)
        response.headers.update(OWN)
        return response


@lru_cache(MAX_RENDERED)
def _rendered(file: Path, hub: str) -> tuple[str, str]:
    """Returns a demo and its policy: its own scripts and styles, and nothing from other sites.

    Frames are the exception, since tunnels have hosts of their own.
    """
    page = file.read_text(encoding="utf-8").replace(HUB_IN_FILES, hub)
    allowed = {"script": "", "style": ""}
    for kind, text in _INLINE.findall(page):
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        allowed[kind] += f" 'sha256-{digest}'"
    policy = (
        "default-src 'none'",
        f"script-src 'self' {hub}{allowed['script']}",
        f"style-src 'self' {hub}{allowed['style']}",
        f"connect-src 'self' {hub}",
        "frame-src 'self' http: https:",
        "img-src data:",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'self'",
    )
    return page, "; ".join(policy)
