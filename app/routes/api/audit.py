"""The audit log: who has changed what, and who has logged in (docs/security.md)."""

from __future__ import annotations

import json
from typing import Any, Final

from starlette.responses import Response

from ....hub.audit.entry import AuditFilter, StoredEntry
from ...documents import access
from ...requests.properties import parse_query
from ...responses.times import rfc3339
from .call import Call, answer
from .filters import Filters
from .required_tags import ADMINISTRATOR
from .route import Operation, Routes

LIMIT: Final = 100
MAX_LIMIT: Final = 1000
ACTIONS: Final = ("put", "post", "patch", "delete", "login", "logout")
QUERY: Final = ("user", "address", "action", "object", "before", "limit")


async def list_entries(call: Call) -> Response:
    """Lists changes and logins, newest first; `object` is how the path begins, and `next_before`
    the `before` of the next page, null at the end."""
    filters = Filters(parse_query(call.request.scope["query_string"]), QUERY)
    limit = filters.number("limit", 1, MAX_LIMIT) or LIMIT
    condition = AuditFilter(
        user=filters.text("user"),
        address=filters.text("address"),
        action=filters.word("action", ACTIONS),
        subject=filters.text("object"),
        before=filters.number("before", 0, 2**63 - 1),
        limit=limit,
    )
    found = await call.context.hub.audit.find(condition)
    before = found[-1].id if len(found) == limit else None
    return answer({"entries": [described(one) for one in found], "next_before": before})


def described(stored: StoredEntry) -> dict[str, Any]:
    entry = stored.entry
    return {
        "id": stored.id,
        "at": rfc3339(entry.at),
        "user": entry.user,
        "token": entry.token or None,
        "address": entry.address,
        "action": entry.action,
        "object": entry.subject or None,
        "status": entry.status,
        "before": json.loads(entry.before) if entry.before else None,
        "after": json.loads(entry.after) if entry.after else None,
    }


ROUTES: Routes = {
    path: {"GET": Operation(list_entries, ADMINISTRATOR, {200: access.AuditLog}, query=QUERY)}
    for path in ("/warren/audit", "/hub/audit")
}
