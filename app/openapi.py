"""`/openapi.json`: the paths that exist, made of the tables that answer and describe them."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Mapping
from typing import Any

from ..hub.upstream.upstream import CALLBACK_PATH
from .facets import FACETS, PLACES, Action, Parameter
from .forms import FORM
from .paths import CAPABILITY_PATH
from .routes.api.route import Handler, Methods
from .routes.api.table import TABLES

Document = dict[str, Any]
_PLAIN = {
    "/health/live": "Answers 200 while the process runs.",
    "/health/ready": "Answers 200 while requests are served, 503 during start and stop. `warnings` "
    "says whether some of what is stored can't be read or served.",
    "/openapi.json": "This document.",
}
_SECRETS = {
    CAPABILITY_PATH: {
        "get": "Confirms that the URL is wanted as a callback.",
        "post": "Publishes the body to the resource that the URL stands for.",
    },
    CALLBACK_PATH: {
        "get": "Answers another hub, at which this one subscribes.",
        "post": "Takes what the other hub delivers.",
    },
}
_KINDS = {"x": "exchange", "q": "queue"}
_TEXT = {"type": "string"}
_VERBS = {"GET": "Reads", "PUT": "Sets", "POST": "Acts on", "DELETE": "Deletes"}


def document(version: str) -> Document:
    paths: Document = {path: {"get": _operation(text, [])} for path, text in _PLAIN.items()}
    for (facet, letter), described in FACETS.items():
        below = f"{facet}/{letter}/{{name}}"
        for path, names in ((f"/{below}", ["name"]), (f"/{{vhost}}/{below}", ["vhost", "name"])):
            paths[path] = _path(described.actions, names, _KINDS[letter] + ": ")
    for path, place in PLACES.items():
        paths[path] = _path(place.actions, [])
    for path, told in _SECRETS.items():
        paths[path + "{secret}"] = _secret_path(told)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Warren", "version": version},
        "components": {"securitySchemes": {"basic": {"type": "http", "scheme": "basic"}}},
        "security": [{"basic": []}],
        "paths": paths | _api(),
    }


def _path(actions: tuple[Action, ...], names: list[str], of: str = "") -> Document:
    """One operation a method; the values of `hub.mode` are told in its description."""
    operations: Document = {"parameters": _names(names)} if names else {}
    for method in dict.fromkeys(action.method for action in actions):
        alike = [action for action in actions if action.method == method]
        operation = _operation(of + " ".join(map(_sentence, alike)), _parameters(alike))
        body = _body(alike)
        operations[method.lower()] = operation | ({"requestBody": body} if body else {})
    return operations


def _secret_path(told: Mapping[str, str]) -> Document:
    """The URL is the credential."""
    operations = {method: {**_operation(text, []), "security": []} for method, text in told.items()}
    return {"parameters": _names(["secret"]), **operations}


def _names(names: list[str]) -> list[Document]:
    return [{"name": name, "in": "path", "required": True, "schema": _TEXT} for name in names]


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
        "schema": _TEXT,
    }


def _body(actions: list[Action]) -> Document | None:
    """The form, or None where none is read; in the query its fields may be as well."""
    found = {
        parameter.name: parameter
        for action in actions
        for parameter in action.parameters
        if parameter.location == "body"
    }
    if not found:
        return None
    modes = [action.mode for action in actions if action.mode]
    fields: Document = {"hub.mode": {**_TEXT, "enum": modes}} if modes else {}
    for name, parameter in found.items():
        fields[name] = {**_TEXT, "description": parameter.description}
    return {"content": {FORM: {"schema": {"type": "object", "properties": fields}}}}


def _api() -> Document:
    """The management paths, from the table that routes them."""
    found = [(path, methods) for table in TABLES for path, methods in table.items()]
    return {"/api" + _numbered(path): _api_path(path, methods) for path, methods in found}


def _api_path(path: str, methods: Methods) -> Document:
    operations: Document = {"parameters": _names(_numbers(path))} if "{}" in path else {}
    for method, (handler, _) in methods.items():
        text = _told(handler) or f"{_VERBS[method]} {path}."
        operations[method.lower()] = _operation(text, [])
    return operations


def _numbers(path: str) -> list[str]:
    return [f"name{number}" for number in range(1, path.count("{}") + 1)]


def _numbered(path: str) -> str:
    counter = itertools.count(1)
    return re.sub(r"\{\}", lambda _: f"{{name{next(counter)}}}", path)


def _told(handler: Handler) -> str:
    """The first paragraph of what the function says of itself."""
    return " ".join((inspect.getdoc(handler) or "").split("\n\n")[0].split())


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
