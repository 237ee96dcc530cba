"""Health checks below `/health/checks`, with responses in RabbitMQ's form."""

from __future__ import annotations

from starlette.responses import JSONResponse, Response

from ...unserved import WHERE, unserved_data
from .call import NO_STORE, Call, answer
from .required_tags import MONITORING
from .route import Routes


async def _storage(call: Call) -> Response:
    """Answers 503 while some stored data can't be read or served. All other data is served, so
    this is for monitoring and no reason to take the server out of service."""
    found = unserved_data(call.broker)
    if not found:
        return answer({"status": "ok"})
    reason = f"{'; '.join(found)}; {WHERE}"
    return JSONResponse({"status": "failed", "reason": reason}, 503, headers=NO_STORE)


ROUTES: Routes = {"/health/checks/storage": {"GET": (_storage, MONITORING)}}
