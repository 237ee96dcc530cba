"""Stored data that can't be served: `/warren/quarantine`, see `warren repair`."""

from __future__ import annotations

import asyncio

from starlette.responses import Response

from ...documents import common
from .call import Call, answer
from .required_tags import ADMINISTRATOR
from .route import Operation, Routes


async def _list(call: Call) -> Response:
    """Lists messages whose queue's definition was lost, definitions that are not applied, damaged
    bytes, and segments that the disk could not read."""
    broker = call.broker
    files = await asyncio.to_thread(broker.store.recovered.set_aside_files)
    counts = broker.store.recovered.quarantine
    return answer(
        {
            "messages": [{"queue_id": key, "messages": count} for key, count in counts.items()],
            "definitions": list(broker.set_aside.values()),
            "unreadable": [
                {"name": name, "reason": reason}
                for name, reason in broker.store.recovered.unreadable.items()
            ],
            "files": [{"name": name, "size": size} for name, size in files.items()],
        }
    )


ROUTES: Routes = {
    "/warren/quarantine": {"GET": Operation(_list, ADMINISTRATOR, {200: common.Quarantine})}
}
