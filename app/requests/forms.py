"""Reads the `hub.*` parameters of a request from its query or body (docs/rabbithub.md).

A body is a form, or JSON in the form of RabbitHub's fork:
`{"hub": {"mode": "subscribe", ..., "contact": {"app_name": ...}}}`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qs

from starlette.requests import Request

from ...core.resources.partial_content import PartialContents
from ..problems import Problem
from .body import read_body
from .properties import MAX_QUERY_FIELDS
from .strict_json import loads

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
MAX_BODY_BYTES = 256 * 1024
CONTACT = "contact"

Form = Mapping[str, list[str]]


async def read_form(request: Request, query: Form, unfinished: PartialContents, owner: str) -> Form:
    """Returns the parameters of the query if it has any `hub.*`, else those of the body.

    Raises `Problem` 400, 413 for a body of more than 256 KiB, 415 for another media type, 503 as
    `read_body`.
    """
    if any(name.startswith("hub.") for name in query):
        return query
    encoding = request.headers.get("content-encoding", "identity")
    if encoding.strip().lower() != "identity":
        raise Problem(415, f"content encoding '{encoding[:80]}' is not accepted here")
    media_type = request.headers.get("content-type", FORM).partition(";")[0].strip().lower()
    if media_type not in (FORM, JSON):
        raise Problem(415, f"content type '{media_type[:80]}' is neither {FORM} nor {JSON}")
    body = await read_body(request.receive, MAX_BODY_BYTES, unfinished, owner)
    return parse_form(body) if media_type == FORM else parse_json(body)


def parse_form(raw: bytes) -> Form:
    """Parses a URL-encoded form. Raises `Problem` 400 if it is not UTF-8 or has too many fields."""
    try:
        return parse_qs(
            raw.decode(),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=MAX_QUERY_FIELDS,
        )
    except ValueError as error:
        raise Problem(400, f"invalid form: {error}") from error


def parse_json(raw: bytes) -> Form:
    """Parses JSON into the same mapping as a form; `contact` is flattened. Raises `Problem` 400."""
    document = loads(raw)
    hub = document.get("hub") if isinstance(document, dict) else None
    if not isinstance(hub, dict):
        raise Problem(400, 'the body has no object "hub"')
    contact = hub.get(CONTACT) or {}
    if not isinstance(contact, dict):
        raise Problem(400, f"hub.{CONTACT} is not an object")
    flat = {name: value for name, value in hub.items() if name != CONTACT}
    repeated = flat.keys() & contact.keys()
    if repeated:
        raise Problem(400, f"hub.{min(repeated)[:80]} is given twice: in hub and in hub.{CONTACT}")
    return {
        f"hub.{name}": _texts(name, value)
        for name, value in {**flat, **contact}.items()
        if value is not None
    }


def first(form: Form, name: str) -> str | None:
    """Returns the first value of a parameter, or None."""
    values = form.get(name)
    return values[0] if values else None


def first_values(form: Form) -> dict[str, str]:
    """Returns the first value of each `hub.*` parameter that has one."""
    return {name: values[0] for name, values in form.items() if values and name[:4] == "hub."}


def _texts(name: str, value: Any) -> list[str]:
    if isinstance(value, list):
        return [text for item in value for text in _texts(name, item)]
    if isinstance(value, dict):
        raise Problem(400, f"hub.{name[:80]} is an object; give a string or a number")
    if isinstance(value, bool):
        return ["true" if value else "false"]
    return [str(value)]
