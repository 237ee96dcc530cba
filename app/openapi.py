"""Generates `/openapi.json` from the route tables and descriptions.

The schemas of the responses come from the types in `documents`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from ..hub.upstream.upstream import CALLBACK_PATH
from .access.session_cookies import PLAIN_NAME
from .documents.common import Problem
from .documents.rabbitmq import RabbitError
from .openapi_answers import ANSWERS, OTHER_MEDIA_TYPES
from .openapi_errors import refusals, shared_refusals
from .openapi_examples import Examples
from .openapi_operations import DONE, TAGS, identified
from .openapi_parameters import describe
from .openapi_requests import (
    BODIES,
    CONDITIONS,
    EXAMPLES,
    OPTIONAL,
    TEXT,
    form,
    is_one,
    parameter,
    path_names,
    query,
)
from .requests.paths import CAPABILITY_PATH, FOLDERS, TUNNELS_PATH
from .responses.facets import FACETS, HUB_FACETS, Action
from .routes import feeds, metrics, streams
from .routes.api.required_tags import NO_LOGIN
from .routes.api.route import Methods
from .routes.api.router import TABLES

Document = dict[str, Any]
JSON = "application/json"
_ABOUT = (
    "A message hub with HTTP as its first interface, over an AMQP 0-9-1 broker. Below `/api` are "
    "RabbitMQ's management paths, with `/api/hub` and `/api/warren` for what RabbitMQ does not "
    "have; `columns` reduces the documents of every GET there."
)
_REFERENCES = "#/components/schemas/{name}"
_PLAIN = {
    "/": "Returns a short overview of the paths.",
    "/static/{file}": "Returns style sheets and other files for browsers.",
    "/js/{file}": "Returns the client for web pages and Node, `warren.js`, for pages of any site.",
    "/demos/": "Returns a page with what a browser can do here, as working demos.",
    "/demos/{file}": "Returns a demo, one file each, or what demos share, for pages of any site.",
    "/docs/": "Returns the first page of the manual, with a list of all pages.",
    **dict.fromkeys(FOLDERS, "Redirects to the same path with a slash."),
    "/docs/{page}": "Returns a page of the manual, or with `.md` at the end its text as Markdown.",
    "/docs/api/": "Returns a page that shows this document.",
    "/docs/api/{file}": "Returns its script and style sheet.",
    "/ui/{file}": "Returns a file of the web UI.",
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
_TUNNELS = {
    "": {
        "get": "Lists the labels of the user, all for administrators; never with their tokens. "
        "Browsers are sent to the page of the web UI.",
        "post": "Enrols a label: the form has `name`, and may have `token` and `lease`.",
    },
    "/{label}/{token}": {
        "get": "Returns name and lease as a form.",
        "put": "Changes `lease` or `token`.",
        "post": "Releases the label, with `release=1`. With the label `_relay` the token is a "
        "host, to which the body is sent as a request.",
        "delete": "Releases the label.",
    },
    "/{label}/{token}/{request}": {
        "get": "Waits for a request; 204 if none came.",
        "post": "Replies to it with a whole HTTP response.",
    },
}
_TUNNEL_FORMS = {
    ("", "post"): ("name", "token", "lease"),
    ("/{label}/{token}", "put"): ("token", "lease"),
    ("/{label}/{token}", "post"): ("release",),
}
_STREAMS = {
    f"/streams/{{vhost}}/{letter}{{name}}/{handler.__name__}": (handler, names)
    for letter in ("", "x/", "q/")
    for handler, names in (
        (streams.offsets, streams.OFFSETS_QUERY), (streams.chunks, streams.CHUNKS_QUERY),
    )
}  # fmt: skip
_METRICS = {
    "/metrics": (metrics.aggregated, ()),
    "/metrics/per-object": (metrics.per_object, ()),
    "/metrics/detailed": (metrics.detailed, ("family", "vhost")),
}
_FEEDS = ("/feeds/{name}.{format}", "/{vhost}/feeds/{name}.{format}")
_WITH_TOKENS = frozenset(("endpoint", "subscribe", "stream", "transactions", "streams"))
"""Paths that take tokens begin so, or so behind a virtual host."""
_MANAGING: list[dict[str, list[str]]] = [{"basic": []}, {"session": []}, {"token": []}]
_KINDS = {"x": "exchange", "q": "queue"}


def document(version: str) -> Document:
    """Returns the OpenAPI document."""
    paths: Document = {path: _plain_path(path, text) for path, text in _PLAIN.items()}
    for (facet, letter), described in FACETS.items():
        below = f"{facet}/{letter}/{{name}}"
        for path in (f"/{below}", f"/{{vhost}}/{below}"):
            paths[path] = _path(path, described.actions, _KINDS[letter] + ": ")
    for path, described in HUB_FACETS.items():
        paths[path] = _path(path, described.actions)
    paths |= {path: _read_path(path, *found) for path, found in _STREAMS.items()}
    for path, operations in paths.items():
        if not _WITH_TOKENS.isdisjoint(path.split("/")[1:3]):
            _allow_tokens(operations)
    for path, read in _METRICS.items():
        paths[path] = _read_path(path, *read)
        paths[path]["get"]["security"] = [{"basic": []}, {}]
    paths |= {path: _feed_path(path) for path in _FEEDS}
    paths["/hub"]["get"]["security"] = []
    paths["/hub"]["post"]["security"] = [{"basic": []}, {"token": []}, {}]
    for path, descriptions in _SECRETS.items():
        paths[path + "{secret}"] = _secret_path(descriptions)
    for path, descriptions in _TUNNELS.items():
        paths[TUNNELS_PATH + path] = _tunnel_path(path, descriptions)
    paths |= _api()
    schemas = _answer_all(paths) | _request_all(paths)
    _complete(paths, schemas)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Warren", "version": version, "description": _ABOUT},
        "tags": [{"name": name, "description": text} for name, (_, text) in TAGS.items()],
        "components": {
            "responses": shared_refusals(),
            "securitySchemes": {
                "basic": {"type": "http", "scheme": "basic"},
                "token": {"type": "http", "scheme": "bearer"},
                "session": {"type": "apiKey", "in": "cookie", "name": PLAIN_NAME},
            },
            "schemas": schemas,
        },
        "security": [{"basic": []}],
        "paths": paths,
    }


def _allow_tokens(path: Document) -> None:
    """Says that bearer tokens are accepted beside passwords."""
    for method in path.keys() - {"parameters"}:
        path[method]["security"] = [{"basic": []}, {"token": []}]


def _plain_path(path: str, text: str) -> Document:
    """Returns a path that needs no credentials."""
    return {**_path_names(path), "get": {**_operation(text, []), "security": []}}


def _read_path(path: str, handler: Callable[..., object], names: Sequence[str]) -> Document:
    """Returns a path that is only read, with its query."""
    operation = _operation(_description(handler), [query(name) for name in names])
    return {**_path_names(path), "get": operation}


def _feed_path(path: str) -> Document:
    """Returns the path of a document, which needs credentials only if it is not public."""
    parameters = [query(name) for name in feeds.QUERY]
    operation = _operation(_description(feeds.feed_document), parameters)
    return {**_path_names(path), "get": {**operation, "security": []}}


def _answer_all(paths: Document) -> Document:
    """Adds the responses to each operation; returns the schemas that they refer to."""
    responses = [
        (path, method, status, kind)
        for path, answers in ANSWERS.items()
        for method, found in answers.items()
        for status, kind in found.items()
    ]
    kinds = [kind for *_, kind in responses if not _has_no_schema(kind)]
    made, schemas = msgspec.json.schema_components(
        [*kinds, Problem, RabbitError], ref_template=_REFERENCES
    )
    found = iter(made)
    for path, method, status, kind in responses:
        schema = None if _has_no_schema(kind) else next(found)
        paths[path][method]["responses"][str(status)] = _response(status, kind, schema)
    return schemas


def _request_all(paths: Document) -> Document:
    """Adds the bodies that are not forms; returns the schemas that they refer to."""
    bodies = [(path, method, kind) for path in BODIES for method, kind in BODIES[path].items()]
    kinds = [kind for *_, kind in bodies if not isinstance(kind, tuple)]
    made, schemas = msgspec.json.schema_components(
        kinds, ref_template=_REFERENCES.format(name="{name}Request")
    )
    found = iter(made)
    for path, method, kind in bodies:
        types = kind if isinstance(kind, tuple) else (JSON,)
        content: Document = {one: {} for one in types}
        if kind in EXAMPLES:
            content = {JSON: {"schema": next(found), "example": EXAMPLES[kind]}}
        is_required = kind not in OPTIONAL
        paths[path][method]["requestBody"] = {"required": is_required, "content": content}
    named = {f"{name}Request": schema for name, schema in schemas.items()}
    return {name: {**schema, **CONDITIONS.get(name, {})} for name, schema in named.items()}


def _complete(paths: Document, schemas: Document) -> None:
    """Adds what operations, parameters and schemas have in common."""
    for path, operations in paths.items():
        for method in operations.keys() - {"parameters"}:
            operation = operations[method]
            operation["responses"] |= refusals(path, operation)
            operation["parameters"] = list(map(describe, operation["parameters"]))
            operations[method] = identified(path, method, operation)
        if "parameters" in operations:
            operations["parameters"] = list(map(describe, operations["parameters"]))
    examples = Examples(schemas)
    bodies = {f"{kind.__name__}Request": example for kind, example in EXAMPLES.items()}
    for name in schemas:
        example = bodies[name] if name in bodies else examples.of(name)
        schemas[name] = {**schemas[name], "examples": [example]}


def _has_no_schema(kind: Any) -> bool:
    """Returns whether the response has no body, or one that is not JSON."""
    return kind is None or isinstance(kind, tuple)


def _response(status: int, kind: Any, schema: Document | None) -> Document:
    response: Document = {"description": DONE[status]}
    if isinstance(kind, tuple):
        response["content"] = {media_type: {} for media_type in kind}
    elif schema is not None:
        others = OTHER_MEDIA_TYPES.get(getattr(kind, "__name__", ""), ())
        response["content"] = {JSON: {"schema": schema}, **{one: {} for one in others}}
    return response


def _path(path: str, actions: tuple[Action, ...], of: str = "") -> Document:
    """Returns one operation per method; its description names the values of `hub.mode`."""
    operations: Document = _path_names(path)
    for method in dict.fromkeys(action.method for action in actions):
        alike = [action for action in actions if action.method == method]
        operation = _operation(of + " ".join(map(_sentence, alike)), _parameters(alike, path))
        body = _body(alike)
        operations[method.lower()] = operation | ({"requestBody": body} if body else {})
    return operations


def _secret_path(descriptions: Mapping[str, str]) -> Document:
    """Returns a path without credentials: the URL is the credential."""
    operations = {
        method: {**_operation(text, []), "security": []} for method, text in descriptions.items()
    }
    return {**_path_names("{secret}"), **operations}


def _tunnel_path(path: str, descriptions: Mapping[str, str]) -> Document:
    """Returns a path of tunnels; longer ones are credentials."""
    security: Document = {"security": []} if path else {}
    operations = {
        method: {**_operation(text, []), **security} for method, text in descriptions.items()
    }
    for method, operation in operations.items():
        if names := _TUNNEL_FORMS.get((path, method)):
            operation["requestBody"] = form(dict.fromkeys(names, TEXT), [])
    return {**_path_names(path), **operations}


def _sentence(action: Action) -> str:
    mode = f" (hub.mode={action.mode})" if action.mode else ""
    many = [f" `{one.name}`: {one.description}" for one in action.parameters if not is_one(one)]
    return action.description.removesuffix(".") + mode + "." + "".join(many)


def _parameters(actions: list[Action], path: str) -> list[Document]:
    """Returns those of the query; which are required depends on `hub.mode`, if there are modes."""
    found = {one.name: one for action in actions for one in action.parameters if is_one(one)}
    return [
        parameter(one, path, is_required=one.default is None and len(actions) == 1)
        for one in found.values()
        if one.location == "query"
    ]


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
    fields: Document = {"hub.mode": {**TEXT, "enum": modes}} if modes else {}
    for name, one in found.items():
        fields[name] = {**TEXT, "description": one.description}
    names = (name for name, one in found.items() if one.default is None and len(actions) == 1)
    return form(fields, [*(["hub.mode"] if modes else ()), *names])


def _api() -> Document:
    """Returns the management paths, from their route tables."""
    found = [(path, methods) for table in TABLES for path, methods in table.items()]
    return {"/api" + path: _api_path(path, methods) for path, methods in found}


def _api_path(path: str, methods: Methods) -> Document:
    operations: Document = _path_names("/api" + path)
    for method, one in methods.items():
        security: list[Document] = [] if one.tag is NO_LOGIN else _MANAGING
        parameters = [query(name, "/api" + path) for name in one.query]
        operation = _operation(_description(one.handler), parameters)
        operations[method.lower()] = {**operation, "security": security}
    return operations


def _path_names(path: str) -> Document:
    names = path_names(path)
    return {"parameters": names} if names else {}


def _description(handler: Callable[..., object]) -> str:
    """Returns the first paragraph of the function's docstring."""
    return " ".join((inspect.getdoc(handler) or "").split("\n\n")[0].split())


def _operation(text: str, parameters: list[Document]) -> Document:
    return {"description": text, "parameters": parameters, "responses": {}}
