"""The parameter `columns`: parts of documents in place of whole ones, at every GET below `/api`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from .call import DocumentResponse, answer

Document = dict[str, Any]


def columns_of(query: QueryParams) -> tuple[str, ...]:
    """Returns the dotted columns that are asked for."""
    return tuple(filter(None, query.get("columns", "").split(",")))


def with_columns(request: Request, response: Response) -> Response:
    """Returns the response to a GET with those columns alone that it asks for; of a list, each
    document has them."""
    columns = columns_of(request.query_params)
    if not columns or request.method not in ("GET", "HEAD"):
        return response
    if not isinstance(response, DocumentResponse):
        return response
    paths = [column.split(".") for column in columns]
    return answer(_parts(response.document, paths))


def _parts(found: Any, paths: Sequence[Sequence[str]]) -> Any:
    if isinstance(found, list):
        return [_parts(one, paths) for one in found]
    return reduced(found, paths) if isinstance(found, dict) else found


def reduced(document: Document, paths: Iterable[Sequence[str]]) -> Document:
    """Returns the parts of a document at these paths, nested as they were."""
    found: Document = {}
    for path in paths:
        value = look_up(document, path)
        if value is None:
            continue
        inner = found
        for step in path[:-1]:
            inner = inner.setdefault(step, {})
        inner[path[-1]] = value
    return found


def look_up(document: Any, path: Sequence[str]) -> Any:
    """Returns what is at a path of keys; None where there is nothing."""
    for step in path:
        if not isinstance(document, dict):
            return None
        document = document.get(step)
    return document
