"""`/openapi.json`: the paths that exist, made of the tables that answer and describe them.

The schemas of the answers are made of the types in `documents.py`.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from typing import Any

import msgspec

from ..hub.upstream.upstream import CALLBACK_PATH
from .documents import Problem, RabbitError
from .facets import FACETS, PLACES, Action, Parameter
from .forms import FORM
from .openapi_answers import ANSWERS, OTHER_MEDIA_TYPES, QUERIES
from .paths import CAPABILITY_PATH
from .problems import MEDIA_TYPE
from .routes.api.route import Handler, Methods
from .routes.api.table import TABLES

Document = dict[str, Any]
JSON = "application/json"
_REFERENCES = "#/components/schemas/{name}"
_PLAIN = {
    "/": "Says in a few lines what there is.",
    "/static/{file}": "Style sheets, and what else browsers are shown.",
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
    paths: Document = {path: _plain_path(path, text) for path, text in _PLAIN.items()}
    for (facet, letter), described in FACETS.items():
        below = f"{facet}/{letter}/{{name}}"
        for path, names in ((f"/{below}", ["name"]), (f"/{{vhost}}/{below}", ["vhost", "name"])):
            paths[path] = _path(described.actions, names, _KINDS[letter] + ": ")
    for path, place in PLACES.items():
        paths[path] = _path(place.actions, [])
    for path, told in _SECRETS.items():
        paths[path + "{secret}"] = _secret_path(told)
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
    """Open to everybody."""
    return {**_path_names(path), "get": {**_operation(text, []), "security": []}}


def _answer_all(paths: Document) -> Document:
    """Adds the responses to each operation; returns the schemas that they refer to."""
    places = [
        (path, method, status, kind)
        for path, answers in ANSWERS.items()
        for method, found in answers.items()
        for status, kind in found.items()
    ]
    kinds = [kind for *_, kind in places if not _is_body_free(kind)]
    (*made, problem, rabbit_error), schemas = msgspec.json.schema_components(
        [*kinds, Problem, RabbitError], ref_template=_REFERENCES
    )
    found = iter(made)
    for path, method, status, kind in places:
        schema = None if _is_body_free(kind) else next(found)
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
    """Those of WebSub are plain text, unless JSON is asked for."""
    found: Document = {MEDIA_TYPE: {"schema": problem}}
    return {"text/plain": {}, **found} if path == "/hub" else found


def _is_body_free(kind: Any) -> bool:
    """Whether it has no schema: no body at all, or one that is not JSON."""
    return kind is None or isinstance(kind, tuple)


def _response(kind: Any, schema: Document | None) -> Document:
    told: Document = {"description": "Done."}
    if isinstance(kind, tuple):
        told["content"] = {media_type: {} for media_type in kind}
    elif schema is not None:
        others = OTHER_MEDIA_TYPES.get(getattr(kind, "__name__", ""), ())
        told["content"] = {JSON: {"schema": schema}, **{one: {} for one in others}}
    return told


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
    return {"/api" + path: _api_path(path, methods) for path, methods in found}


def _api_path(path: str, methods: Methods) -> Document:
    operations: Document = _path_names(path)
    for method, (handler, _) in methods.items():
        text = _told(handler) or f"{_VERBS[method]} {path}."
        names = QUERIES.get("/api" + path, ()) if method == "GET" else ()
        operations[method.lower()] = _operation(text, [_query(name) for name in names])
    return operations


def _query(name: str) -> Document:
    return {"name": name, "in": "query", "schema": _TEXT}


def _path_names(path: str) -> Document:
    names = re.findall(r"\{(\w+)\}", path)
    return {"parameters": _names(names)} if names else {}


def _told(handler: Handler) -> str:
    """The first paragraph of what the function says of itself."""
    return " ".join((inspect.getdoc(handler) or "").split("\n\n")[0].split())


def _operation(text: str, parameters: list[Document]) -> Document:
    return {
        "description": text,
        "parameters": parameters,
        "responses": {},
    }
