"""Generates `/openapi.json` from the route tables and descriptions.

The schemas of the responses come from the types in `documents.py`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ..hub.upstream.upstream import CALLBACK_PATH
from .documents import Problem, RabbitError
from .facets import FACETS, HUB_FACETS, Action, Parameter
from .forms import FORM
from .openapi_answers import ANSWERS, OTHER_MEDIA_TYPES, QUERIES
from .paths import CAPABILITY_PATH
from .problems import MEDIA_TYPE
from .routes.api.route import Handler, Methods
from .routes.api.router import TABLES

Document = dict[str, Any]
JSON = "application/json"
_REFERENCES = "#/components/schemas/{name}"
_PLAIN = {
    "/": "Returns a short overview of the paths.",
    "/static/{file}": "Returns style sheets and other files for browsers.",
    "/health/live": "Answers 200 while the process runs.",
    "/health/ready": "Answers 200 while requests are served, 503 during start and stop. `warnings` "
    "says whether some stored data can't be read or served.",
    "/openapi.json": "This document.",
}
_SECRETS = {
    CAPABILITY_PATH: {
        "get": "Confirms the intent to use the URL as a callback.",
        "post": "Publishes the body to the resource of the URL.",
    },
    CALLBACK_PATH: {
        "get": "Answers the verification of another hub, at which this one subscribes.",
        "post": "Receives a delivery of that hub.",
    },
}
_KINDS = {"x": "exchange", "q": "queue"}
_TEXT = {"type": "string"}
_VERBS = {"GET": "Reads", "PUT": "Sets", "POST": "Acts on", "DELETE": "Deletes"}


def document(version: str) -> Document:
    """Returns the OpenAPI document."""
    paths: Document = {path: _plain_path(path, text) for path, text in _PLAIN.items()}
    for (facet, letter), described in FACETS.items():
        below = f"{facet}/{letter}/{{name}}"
        for path, names in ((f"/{below}", ["name"]), (f"/{{vhost}}/{below}", ["vhost", "name"])):
            paths[path] = _path(described.actions, names, _KINDS[letter] + ": ")
    for path, described in HUB_FACETS.items():
        paths[path] = _path(described.actions, [])
    for path, descriptions in _SECRETS.items():
        paths[path + "{secret}"] = _secret_path(descriptions)
    paths |= _api()
    schemas = _answer_all(paths)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Warren", "version": version},
        "components": {
            "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}},
            "schemas": schemas,
        },
        "security": [{"basic": []}],
        "paths": paths,
    }


def _plain_path(path: str, text: str) -> Document:
    """Returns a path that needs no credentials."""
    return {**_path_names(path), "get": {**_operation(text, []), "security": []}}


def _answer_all(paths: Document) -> Document:
    """Adds the responses to each operation; returns the schemas that they refer to."""
    responses = [
        (path, method, status, kind)
        for path, answers in ANSWERS.items()
        for method, found in answers.items()
        for status, kind in found.items()
    ]
    kinds = [kind for *_, kind in responses if not _has_no_schema(kind)]
    (*made, problem, rabbit_error), schemas = msgspec.json.schema_components(
        [*kinds, Problem, RabbitError], ref_template=_REFERENCES
    )
    found = iter(made)
    for path, method, status, kind in responses:
        schema = None if _has_no_schema(kind) else next(found)
        paths[path][method]["responses"][str(status)] = _response(kind, schema)
    for path, operations in paths.items():
        is_rabbit = path.startswith("/api/") and not path.startswith(("/api/hub/", "/api/warren/"))
        refused = {JSON: {"schema": rabbit_error}} if is_rabbit else _refusals(path, problem)
        for method in operations.keys() - {"parameters"}:
            for range_ in ("4XX", "5XX"):
                operations[method]["responses"][range_] = {
                    "description": "Refused.", "content": {**refused, "text/html": {}},
                }  # fmt: skip
    return schemas


def _refusals(path: str, problem: Document) -> Document:
    """Returns the media types of errors; WebSub's are plain text unless JSON is asked for."""
    found: Document = {MEDIA_TYPE: {"schema": problem}}
    return {"text/plain": {}, **found} if path == "/hub" else found


def _has_no_schema(kind: Any) -> bool:
    """Returns whether the response has no body, or one that is not JSON."""
    return kind is None or isinstance(kind, tuple)


def _response(kind: Any, schema: Document | None) -> Document:
    response: Document = {"description": "Done."}
    if isinstance(kind, tuple):
        response["content"] = {media_type: {} for media_type in kind}
    elif schema is not None:
        others = OTHER_MEDIA_TYPES.get(getattr(kind, "__name__", ""), ())
        response["content"] = {JSON: {"schema": schema}, **{one: {} for one in others}}
    return response


def _path(actions: tuple[Action, ...], names: list[str], of: str = "") -> Document:
    """Returns one operation per method; its description names the values of `hub.mode`."""
    operations: Document = {"parameters": _names(names)} if names else {}
    for method in dict.fromkeys(action.method for action in actions):
        alike = [action for action in actions if action.method == method]
        operation = _operation(of + " ".join(map(_sentence, alike)), _parameters(alike))
        body = _body(alike)
        operations[method.lower()] = operation | ({"requestBody": body} if body else {})
    return operations


def _secret_path(descriptions: Mapping[str, str]) -> Document:
    """Returns a path without credentials: the URL is the credential."""
    operations = {
        method: {**_operation(text, []), "security": []} for method, text in descriptions.items()
    }
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
    """Returns the form, or None if the operation reads none; its fields may be in the query too."""
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
    """Returns the management paths, from their route tables."""
    found = [(path, methods) for table in TABLES for path, methods in table.items()]
    return {"/api" + path: _api_path(path, methods) for path, methods in found}


def _api_path(path: str, methods: Methods) -> Document:
    operations: Document = _path_names(path)
    for method, (handler, _) in methods.items():
        text = _description(handler) or f"{_VERBS[method]} {path}."
        names = QUERIES.get("/api" + path, ()) if method == "GET" else ()
        operations[method.lower()] = _operation(text, [_query(name) for name in names])
    return operations


def _query(name: str) -> Document:
    return {"name": name, "in": "query", "schema": _TEXT}


def _path_names(path: str) -> Document:
    names = re.findall(r"\{(\w+)\}", path)
    return {"parameters": _names(names)} if names else {}


def _description(handler: Handler) -> str:
    """Returns the first paragraph of the function's docstring."""
    return " ".join((inspect.getdoc(handler) or "").split("\n\n")[0].split())


def _operation(text: str, parameters: list[Document]) -> Document:
    return {
        "description": text,
        "parameters": parameters,
        "responses": {},
    }
