"""`/openapi.json`: the paths that exist, made from the table that descriptions are made from."""

from __future__ import annotations

from typing import Any

from .facets import FACETS, Action, Facet, Parameter

Document = dict[str, Any]
_PLAIN = {
    "/health/live": "Answers 200 while the process runs.",
    "/health/ready": "Answers 200 while requests are served, 503 during start and stop.",
    "/openapi.json": "This document.",
}
_KINDS = {"x": "exchange", "q": "queue"}


def document(version: str) -> Document:
    paths: Document = {path: {"get": _operation(text, [])} for path, text in _PLAIN.items()}
    for (facet, letter), described in FACETS.items():
        below = f"{facet}/{letter}/{{name}}"
        for path, names in ((f"/{below}", ["name"]), (f"/{{vhost}}/{below}", ["vhost", "name"])):
            paths[path] = _path(described, _KINDS[letter], names)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Warren", "version": version},
        "components": {"securitySchemes": {"basic": {"type": "http", "scheme": "basic"}}},
        "security": [{"basic": []}],
        "paths": paths,
    }


def _path(facet: Facet, kind: str, names: list[str]) -> Document:
    """One operation a method; the values of `hub.mode` are told in its description."""
    operations: Document = {
        "parameters": [
            {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
            for name in names
        ]
    }
    for method in dict.fromkeys(action.method for action in facet.actions):
        actions = [action for action in facet.actions if action.method == method]
        text = f"{kind}: " + " ".join(map(_sentence, actions))
        operations[method.lower()] = _operation(text, _parameters(actions))
    return operations


def _sentence(action: Action) -> str:
    mode = f" (hub.mode={action.mode})" if action.mode else ""
    return action.description.removesuffix(".") + mode + "."


def _parameters(actions: list[Action]) -> list[Document]:
    found = {parameter.name: parameter for action in actions for parameter in action.parameters}
    return [_parameter(parameter) for parameter in found.values() if parameter.location == "query"]


def _parameter(parameter: Parameter) -> Document:
    return {
        "name": parameter.name,
        "in": "query",
        "description": parameter.description,
        "schema": {"type": "string"},
    }


def _operation(text: str, parameters: list[Document]) -> Document:
    return {
        "description": text,
        "parameters": parameters,
        "responses": {
            "2XX": {"description": "Done."},
            "4XX": {
                "description": "Refused.",
                "content": {"application/problem+json": {"schema": {"type": "object"}}},
            },
        },
    }
