"""What `/openapi.json` says for people and for generators of clients."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema import Draft202012Validator, FormatChecker

from warrenmq.app.openapi import document
from warrenmq.app.openapi_requests import BODIES

DOCUMENT = document("1")
SCHEMAS = DOCUMENT["components"]["schemas"]
JSON = "application/json"


def operations() -> Iterator[tuple[str, str, Any]]:
    for path, described in DOCUMENT["paths"].items():
        for method in described.keys() - {"parameters"}:
            yield path, method, described[method]


def wrong(schema: Any, found: Any) -> list[str]:
    whole = {**schema, "components": DOCUMENT["components"]}
    errors = Draft202012Validator(whole, format_checker=FormatChecker()).iter_errors(found)
    return [error.message for error in errors]


def test_each_operation_can_be_named_and_found() -> None:
    named = [one["operationId"] for *_, one in operations()]
    assert len(named) == len(set(named))
    tags = {tag["name"] for tag in DOCUMENT["tags"]}
    for path, method, one in operations():
        assert set(one["tags"]) <= tags and one["summary"], (method, path)
        told = {response.get("description") for response in one["responses"].values()}
        # Queues are never restarted, and there are no parameters: that is refused alone.
        refused = path.endswith("/restart") or path.startswith("/api/parameters/")
        assert told > {None} or refused, (method, path)
    assert tags == {tag for *_, one in operations() for tag in one["tags"]}


def test_each_parameter_is_described() -> None:
    for path, described in DOCUMENT["paths"].items():
        of_all = described.get("parameters", [])
        for one in (*of_all, *(one for key in described.keys() - {"parameters"}
                               for one in described[key]["parameters"])):  # fmt: skip
            assert one["description"].endswith("."), (path, one["name"])


@pytest.mark.parametrize("path", BODIES)
def test_each_body_has_an_example_that_is_one(path: str) -> None:
    for method in BODIES[path]:
        content = DOCUMENT["paths"][path][method]["requestBody"]["content"]
        if content.get(JSON):
            assert wrong(content[JSON]["schema"], content[JSON]["example"]) == [], (method, path)


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_document_has_an_example_that_is_one(name: str) -> None:
    (example,) = SCHEMAS[name]["examples"]
    assert wrong(SCHEMAS[name], example) == []
