"""What the server keeps and can't serve: `/warren/quarantine`, see `warren repair`."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from .call import Call, answer
from .required_tags import ADMINISTRATOR
from .route import Routes


async def _list(call: Call) -> Response:
    """Messages whose queue's definition was lost, definitions that are not in force, bytes
    that were damaged, and segments that the disk could not read."""
    broker = call.broker
    files = await asyncio.to_thread(broker.store.set_aside_files)
    counts = broker.store.quarantine
    return answer(
        {
            "messages": [{"queue_id": key, "messages": count} for key, count in counts.items()],
            "definitions": list(broker.set_aside.values()),
            "unreadable": [
                {"name": name, "reason": reason} for name, reason in broker.store.unreadable.items()
            ],
            "files": [{"name": name, "size": size} for name, size in files.items()],
        }
    )


ROUTES: Routes = {"/warren/quarantine": {"GET": (_list, ADMINISTRATOR)}}
