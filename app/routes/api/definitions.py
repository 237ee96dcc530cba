"""Definitions documents: `/definitions`, of the server or of a virtual host."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from starlette.responses import Response

from ....core.errors import ConfigError
from ...definitions.addition import Addition, planned
from ...definitions.document import parse
from ...definitions.export import exported
from ...definitions.in_force import put_into_force
from ...definitions.left_out import LeftOut
from ...documents import rabbitmq, requests
from ...problems import Problem
from .call import NO_STORE, Call, answer
from .columns import columns_of
from .required_tags import ADMINISTRATOR
from .route import Operation, Routes

MAX_BYTES: Final = 64 * 1024 * 1024
MULTIPART: Final = "multipart/form-data"
IMPORTED: Final = {200: rabbitmq.PartialImport, 204: None}
_OF_VHOST: Final = ("rabbit_version", "rabbitmq_version", "product_name", "product_version")
_IN_VHOST: Final = ("parameters", "policies", "queues", "exchanges", "bindings")


async def export(call: Call) -> Response:
    """Returns all stored definitions, as RabbitMQ writes them."""
    return await _exported(call, partial(exported, dict(call.broker.store.definitions)))


async def export_vhost(call: Call) -> Response:
    """Returns what is in one virtual host, without users and permissions."""
    (vhost,) = call.names
    call.vhost(vhost)
    return await _exported(call, partial(_of_vhost, dict(call.broker.store.definitions), vhost))


async def _exported(call: Call, export: Callable[[], bytes]) -> Response:
    raw = await asyncio.to_thread(export)
    if columns_of(call.request.query_params):
        return answer(json.loads(raw))
    return Response(raw, media_type="application/json", headers=NO_STORE)


def _of_vhost(definitions: dict[bytes, bytes], vhost: str) -> bytes:
    whole = json.loads(exported(definitions))
    found: dict[str, Any] = {name: whole[name] for name in _OF_VHOST}
    itself = next(one for one in whole["vhosts"] if one["name"] == vhost)
    found |= {
        "rabbitmq_definition_format": "single_virtual_host",
        "original_vhost_name": vhost,
        "explanation": f"Definitions of virtual host '{vhost}'",
        "description": itself.get("description", ""),
        "metadata": itself.get("metadata", {}),
    }
    for section in _IN_VHOST:
        own = [one for one in whole[section] if one["vhost"] == vhost]
        found[section] = [{key: one[key] for key in one if key != "vhost"} for one in own]
    return json.dumps(found, indent=2, ensure_ascii=False).encode() + b"\n"


async def add(call: Call) -> Response:
    """Adds the definitions of a document, all of them or none: nothing is deleted, and what exists
    has to be equivalent. The body is JSON, or a form with it in the field `file`. What RabbitMQ has
    and this server can't hold (unknown keys, types and policy keys) is left out, and
    listed in an answer 200."""
    return await _add(call, None)


async def add_to_vhost(call: Call) -> Response:
    """Adds the definitions of a document to one virtual host, which has to exist."""
    (vhost,) = call.names
    call.vhost(vhost)
    return await _add(call, vhost)


async def _add(call: Call, vhost: str | None) -> Response:
    raw = _document(await call.raw_body(MAX_BYTES), call.request.headers.get("content-type", ""))
    left_out = LeftOut()
    try:
        current = dict(call.broker.store.definitions)
        addition = await asyncio.to_thread(partial(_planned, current, raw, left_out, vhost))
        call.still_permitted()
        await put_into_force(call.broker, call.context.engine, addition)
    except ConfigError as error:
        raise Problem(400, f"{error}; nothing was changed") from error
    left_out.log()
    done = await call.done()
    return answer({"left_out": left_out.sentences}) if left_out.sentences else done


def _planned(
    current: dict[bytes, bytes], raw: bytes, left_out: LeftOut, vhost: str | None
) -> Addition:
    return planned(current, parse(raw, left_out, vhost), left_out)


def _document(raw: bytes, content_type: str) -> bytes:
    """Returns the document, also from a form."""
    if not content_type.lower().startswith(MULTIPART):
        return raw
    head = b"content-type: " + content_type.encode("latin-1") + b"\r\n\r\n"
    from email.parser import BytesParser  # late: a twentieth of what a start imports
    from email.policy import HTTP

    form = BytesParser(policy=HTTP).parsebytes(head + raw)
    for part in form.iter_parts():
        if part.get_param("name", header="content-disposition") == "file":
            content = part.get_payload(decode=True)
            return content if isinstance(content, bytes) else b""
    raise Problem(400, "the form has no field 'file'")


ROUTES: Routes = {
    "/definitions": {
        "GET": Operation(export, ADMINISTRATOR, {200: dict[str, Any]}),
        "POST": Operation(add, ADMINISTRATOR, IMPORTED, requests.Definitions),
    },
    "/definitions/{vhost}": {
        "GET": Operation(export_vhost, ADMINISTRATOR, {200: dict[str, Any]}),
        "POST": Operation(add_to_vhost, ADMINISTRATOR, IMPORTED, requests.Definitions),
    },
}
