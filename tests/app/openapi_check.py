"""Holds answers against `/openapi.json`: each that a test gets is one of those it promises."""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

import httpx
from jsonschema import Draft202012Validator, FormatChecker

from warrenmq.app.openapi import document

# RabbitMQ's paths are not below RabbitHub's alias.
PREFIXES = re.compile(r"^(/rabbithub(?!/api/)|/a/base|/base|/hub(?!/callback/))(?=/)")
UNTOLD = frozenset({404, 405, 501, 400})
"""What a path or method that is not in the document is answered with."""


async def check(response: httpx.Response) -> None:
    """Fails the test whose request was answered with something that the document does not say."""
    request = response.request
    path = PREFIXES.sub("", request.url.raw_path.decode().partition("?")[0])
    if path.startswith("/api/"):
        path = path.removesuffix("/")
    method = "get" if request.method == "HEAD" else request.method.lower()
    found = operation(path, method)
    if found is None:
        is_known = method == "options" or (path == "/" and method == "post")
        assert is_known or response.status_code in UNTOLD | {401}, (method, path, response)
        return
    responses = found["responses"]
    told = responses.get(str(response.status_code))
    if told is None:
        assert response.status_code >= 400, (method, path, response.status_code, list(responses))
        told = responses[f"{response.status_code // 100}XX"]
    if "$ref" in told:
        told = _document()["components"]["responses"][told["$ref"].rpartition("/")[2]]
    await response.aread()
    if response.content:
        content = told.get("content", {})
        media_type = response.headers["content-type"].partition(";")[0]
        assert media_type in content, (method, path, response.status_code, media_type)
        schema = content[media_type].get("schema")
        # With columns a document is a part of what is told.
        if schema is not None and "columns" not in request.url.params:
            _validate(schema, response.json())


def operation(path: str, method: str) -> Any:
    """The one of the first template that the path is of; None without one."""
    for pattern, operations in _templates():
        if pattern.fullmatch(path):
            return operations.get(method)
    return None


def _validate(schema: Any, found: Any) -> None:
    errors = list(_validator(json.dumps(schema)).iter_errors(found))
    assert not errors, errors[0]


@cache
def _document() -> Any:
    """No key may be there that is not told."""
    told = document("1")
    for schema in told["components"]["schemas"].values():
        schema.setdefault("additionalProperties", False)
    return told


@cache
def _templates() -> list[tuple[re.Pattern[str], Any]]:
    """Those with the fewest names first."""
    paths = sorted(_document()["paths"], key=lambda path: path.count("{"))
    found = []
    for path in paths:
        parts = ["[^/]*" if part.startswith("{") else re.escape(part) for part in path.split("/")]
        found.append((re.compile("/".join(parts)), _document()["paths"][path]))
    return found


@cache
def _validator(schema: str) -> Draft202012Validator:
    whole = {**json.loads(schema), "components": _document()["components"]}
    return Draft202012Validator(whole, format_checker=FormatChecker())
