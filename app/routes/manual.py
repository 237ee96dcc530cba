"""`/docs/`: the pages of the manual, and their Markdown.

A page is rendered in a thread when it is first asked for.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final

from anyio import to_thread
from starlette.datastructures import Headers
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.staticfiles import NotModifiedResponse, StaticFiles
from starlette.types import Scope

from ..context import Context
from ..manual.files import DOCS, find_file
from .browser_files import OWN

_PAGE: Final = re.compile(r"(?:[\w-]+/)*[\w-]*", re.ASCII)
_PICTURE_POLICY: Final = "default-src 'none'; style-src 'unsafe-inline'; sandbox"
"""A picture in SVG has its colours in a style of its own, and no script."""
_SHOWN_AS_TEXT: Final = (".yml", ".toml")
"""Browsers would save them to disk."""


class Manual(StaticFiles):
    """The files of `docs`: without `.md` the page of a Markdown file, else the file itself."""

    def __init__(self, context: Context) -> None:
        super().__init__(directory=DOCS)
        self._context = context

    async def get_response(self, path: str, scope: Scope) -> Response:
        page = scope["path"].removeprefix(scope["root_path"] + "/")
        if _PAGE.fullmatch(page) and scope["method"] in ("GET", "HEAD"):
            return await self._page(page, scope)
        response = await super().get_response(path, scope)
        response.headers.update(OWN)
        if path.endswith(".svg"):
            response.headers["Content-Security-Policy"] = _PICTURE_POLICY
        elif path.endswith(_SHOWN_AS_TEXT):
            response.headers["Content-Type"] = "text/plain; charset=utf-8"
        return response

    async def _page(self, page: str, scope: Scope) -> Response:
        if not find_file(page).is_file():
            if find_file(f"{page}/").is_file():
                return RedirectResponse(f"{page.split('/')[-1]}/")
            raise HTTPException(404)
        # Markdown is imported here: a server whose manual nobody reads goes without.
        from ..manual.pages import page_html

        hub = self._context.base_url(Request(scope))
        text = (await to_thread.run_sync(page_html, page, hub)).encode()
        response = Response(text, 200, OWN, media_type="text/html")
        response.headers["ETag"] = f'"{hashlib.sha256(text).hexdigest()}"'
        if self.is_not_modified(response.headers, Headers(scope=scope)):
            return NotModifiedResponse(response.headers)
        return response
