"""Examples of documents, made of their schemas and of known values of fields."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from .documents.field_examples import DOCUMENTS, FIELDS

Schema = Mapping[str, Any]
_USUAL: Final[Mapping[str, Any]] = {
    "string": "example", "integer": 1, "number": 0.5, "boolean": False, "null": None,
}  # fmt: skip
_TYPES: Final[Mapping[str, type | tuple[type, ...]]] = {
    "string": str, "integer": int, "number": (int, float), "object": dict,
}  # fmt: skip
_TIME: Final = "2026-01-31T12:00:00Z"
_REFERENCE: Final = "#/components/schemas/"


class Examples:
    """Makes examples of the schemas of a document."""

    def __init__(self, schemas: Mapping[str, Schema]) -> None:
        self._schemas = schemas

    def of(self, name: str) -> Any:
        """Returns a document with this schema."""
        if name in DOCUMENTS:
            return DOCUMENTS[name]
        return self._of(self._schemas[name], "", name)

    def _of(self, schema: Schema, field: str, owner: str) -> Any:
        """Returns a value of a field in a document of the schema `owner`."""
        if "$ref" in schema:
            return self.of(schema["$ref"].removeprefix(_REFERENCE))
        if "const" in schema:
            return schema["const"]
        if "enum" in schema:
            return next((one for one in _known(field, owner) if one in schema["enum"]),
                        schema["enum"][0])  # fmt: skip
        if either := schema.get("anyOf") or schema.get("oneOf"):
            chosen = next(one for one in either if one.get("type") != "null")
            return self._of(chosen, field, owner)
        return self._of_type(schema, field, owner)

    def _of_type(self, schema: Schema, field: str, owner: str) -> Any:
        kind = schema.get("type", "object")
        if kind == "array":
            parts = schema.get("prefixItems") or filter(None, (schema.get("items"),))
            return [self._of(one, field, owner) for one in parts]
        if "properties" in schema:
            return {key: self._of(one, key, owner) for key, one in schema["properties"].items()}
        if schema.get("format") == "date-time":
            return _TIME
        for value in _known(field, owner):
            if isinstance(value, _TYPES.get(kind, ())):
                return value
        if kind != "object":
            return max(_USUAL[kind], schema.get("minimum", _USUAL[kind]))
        values = schema.get("additionalProperties")
        return {"orders": self._of(values, "", owner)} if isinstance(values, dict) else {}


def _known(field: str, owner: str) -> tuple[Any, ...]:
    return (*FIELDS.get(f"{owner}.{field}", ()), *FIELDS.get(field, ()))
