"""Imports many subscriptions in one request: `POST /subscriptions` (docs/rabbithub.md).

Each entry has its own result; a bad one does not affect the others. An active one is verified
after the response, as with `hub.verify=async`; an inactive one is stored without verification.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import Response

from ...core.auth import User
from ..context import Context
from ..problems import Problem
from ..requests.body import read_body
from ..requests.forms import FORM
from ..requests.strict_json import loads
from .importing import Document, Importer

MAX_BYTES = 16 * 1024 * 1024
MAX_ENTRIES = 10_000
AT_ONCE = 20
"""Entries processed concurrently: each waits for the database."""
MAX_WAIT_S = 60.0
"""How long a batch waits in total while too many verifications are pending."""
_OF_FORMS = (FORM, "multipart/form-data", "text/plain")
"""Types that a page of another site can make a browser post with its stored credentials."""


async def import_batch(
    context: Context, request: Request, permitted: Callable[[], Awaitable[User]]
) -> Response:
    """Returns 202 with a result for each entry, in their order.

    `permitted` authenticates and authorizes the user; it is called before the body is read and
    again afterwards.

    Raises `Problem` 400 for what is no `{"subscriptions": [...]}`, 413 and 415.
    """
    media_type = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media_type in _OF_FORMS:
        raise Problem(415, f"the body is {media_type}; application/json is needed")
    user = await permitted()
    raw = await read_body(request.receive, MAX_BYTES, context.unfinished, user.name)
    user = await permitted()
    # In a thread: parsing some megabytes of JSON would block the event loop for too long.
    entries = await asyncio.to_thread(read_entries, raw)
    importer = Importer(context, user, context.base_url(request), MAX_WAIT_S)
    results = await _take_all(importer, entries)
    body = msgspec.json.encode({"rabbithub_batch_results": results})
    return Response(body, 202, media_type="application/json")


async def _take_all(importer: Importer, entries: list[Any]) -> list[Document]:
    results: list[Document] = [{} for _ in entries]
    waiting = enumerate(entries)

    async def work() -> None:
        for number, raw in waiting:
            results[number] = await importer.take(raw)
            await asyncio.sleep(0)  # an entry that is refused at once has not yielded

    await asyncio.gather(*(work() for _ in range(AT_ONCE)))
    return results


def read_entries(body: bytes) -> list[Any]:
    """Returns the entries of a request; raises `Problem` 400."""
    found = loads(body)
    entries = found.get("subscriptions") if isinstance(found, dict) else None
    if not isinstance(entries, list):
        raise Problem(400, 'the body has no list "subscriptions"')
    if len(entries) > MAX_ENTRIES:
        raise Problem(400, f"{len(entries)} subscriptions at once, {MAX_ENTRIES} are possible")
    return entries
