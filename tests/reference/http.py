"""docs/reference/http.md: each operation, from the document that is at `/openapi.json`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from warrenmq.app.openapi import document
from warrenmq.app.openapi_operations import TAGS
from warrenmq.app.routes.api.connections import ROUTES

from .tables import code, codes, page, table

Operation = dict[str, Any]
INTRODUCTION = """Every operation of the HTTP interface. `/openapi.json` of a running server \
describes them in OpenAPI 3.1, and `/docs/api/` shows that description, with the JSON documents. \
[The HTTP interface](../http.md) shows the main operations by example.

Operations need a user's name and password, except those marked *public*; those marked *token* \
also accept a bearer token. Bodies are JSON unless another media type is given. Errors are \
`application/problem+json`; on RabbitMQ's paths, RabbitMQ's errors. \
`{vhost}` is `%2F` for the virtual host `/`. Paths of exchanges, queues and feeds in another \
virtual host begin with its name: `/orders/endpoint/x/{name}`."""
GROUPS = {
    "lists": ROUTES["/connections"]["GET"].query,
    "statistics": ROUTES["/connections/{connection}"]["GET"].query,
}
OF_GROUPS = f"""*Lists* take these query parameters: {codes(GROUPS["lists"])}.

Those of *statistics* are {codes(GROUPS["statistics"])}."""
OF_VHOST = "/{vhost}"
JSON = "application/json"
METHODS = ("get", "put", "post", "patch", "delete")


def write() -> str:
    return page("HTTP reference", f"{INTRODUCTION}\n\n{OF_GROUPS}", _parts(document("")["paths"]))


def _parts(paths: dict[str, Operation]) -> Iterator[str]:
    groups: dict[str, list[tuple[str, str, Operation]]] = {title: [] for title in TAGS}
    for path, operations in paths.items():
        if path.removeprefix(OF_VHOST) != path and path.removeprefix(OF_VHOST) in paths:
            continue
        for method in METHODS:
            if method in operations:
                (title,) = operations[method]["tags"]
                groups[title].append((method, path, operations[method]))
    for title, operations_of in groups.items():
        yield f"## {title}"
        yield table(
            ("operation", "does", "parameters", "answers"),
            [
                (code(f"{method.upper()} {path}"), does(one), parameters(one), answers(one))
                for method, path, one in operations_of
            ],
        )
        if described := dict(_described(one for *_, one in operations_of)):
            yield table(
                ("parameter", "meaning"),
                [(code(name), text) for name, text in described.items()],
            )


def does(operation: Operation) -> str:
    marks = {"()": "public", "token": "token"}
    security = operation.get("security")
    names = {name for way in security or () for name in way} or ({"()"} if security == [] else ())
    found = "".join(f" *{mark}*" for name, mark in marks.items() if name in names)
    return f"{operation['description']}{found}"


def parameters(operation: Operation) -> str:
    names = tuple(one["name"] for one in operation["parameters"])
    query = codes(names)
    for group, those in GROUPS.items():
        if names[: len(those)] == those:
            query = ", ".join(filter(None, (f"those of *{group}*", codes(names[len(those) :]))))
    parts = [f"query: {query}"] if query else []
    content = operation.get("requestBody", {}).get("content", {})
    fields = [codes(one.get("schema", {}).get("properties", ())) for one in content.values()]
    if any(fields):
        parts.append(f"form: {fields[0]}")
    elif content:
        parts.append(f"body: {codes(content)}")
    return "; ".join(parts)


def answers(operation: Operation) -> str:
    """The statuses of success, with the media types of their bodies but JSON."""
    content = {status: one.get("content", {}) for status, one in operation["responses"].items()}
    return "; ".join(
        f"{status} {codes(types if list(types) != [JSON] else ())}".strip()
        for status, types in content.items()
        if "$ref" not in operation["responses"][status]
    )


def _described(operations: Iterator[Operation]) -> Iterator[tuple[str, str]]:
    for operation in operations:
        for one in operation["parameters"]:
            if "description" in one:
                yield one["name"], one["description"]
        for content in operation.get("requestBody", {}).get("content", {}).values():
            for name, field in content.get("schema", {}).get("properties", {}).items():
                if "description" in field:
                    yield name, field["description"]
