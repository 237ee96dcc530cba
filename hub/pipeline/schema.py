"""The columns of a stream's rows, for Spark and for Arrow."""

from __future__ import annotations

from typing import Final

import pyarrow as pa

from .errors import SchemaError

COLUMNS: Final = {
    "stream": "string",
    "offset": "bigint",
    "timestamp": "timestamp",
    "exchange": "string",
    "routing_key": "string",
    "message_id": "string",
    "content_type": "string",
    "headers": "map<string,string>",
    "body": "binary",
    "content_encoding": "string",
    "delivery_mode": "int",
    "priority": "int",
    "correlation_id": "string",
    "reply_to": "string",
    "expiration": "string",
    "message_timestamp": "timestamp",
    "type": "string",
    "user_id": "string",
    "app_id": "string",
}
"""Names and Spark's types. `timestamp` is when the message arrived, `message_timestamp` what its
publisher says."""

_ARRIVAL: Final = frozenset({"stream", "offset", "timestamp", "exchange"})
WRITTEN: Final = {
    "body": ("binary", "string"),
    **{name: (kind,) for name, kind in COLUMNS.items() if name not in _ARRIVAL | {"body"}},
}
"""The columns that can be written, with the types that each may have."""

ARROW_TYPES: Final[dict[str, pa.DataType]] = {
    "string": pa.string(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
    "map<string,string>": pa.map_(pa.string(), pa.string()),
    "binary": pa.binary(),
    "int": pa.int32(),
}
"""Arrow's types as Spark compares them, by Spark's."""

ARROW_SCHEMA: Final = pa.schema([(name, ARROW_TYPES[kind]) for name, kind in COLUMNS.items()])


def arrow_schema(columns: dict[str, str]) -> pa.Schema:
    """Returns the Arrow schema of some columns, given as names and Spark's types.

    Raises:
        SchemaError: a stream has no such column, or has it in another type.
    """
    for name, kind in columns.items():
        if name not in COLUMNS:
            raise SchemaError(
                f"column '{name}' of the schema: a stream has {', '.join(COLUMNS)}; "
                "leave it out, or leave out .schema(...)"
            )
        if kind != COLUMNS[name]:
            raise SchemaError(
                f"column '{name}' of the schema is {kind}, in a stream it is {COLUMNS[name]}; "
                "read it so and cast it behind .load()"
            )
    return pa.schema([ARROW_SCHEMA.field(name) for name in columns])


def check_written(columns: dict[str, str], queue: str | None) -> None:
    """Checks the columns of rows that are to be published, given as names and Spark's types; to an
    exchange, or to a queue.

    Raises:
        SchemaError: there is no body, a message has no such column, or it has another type.
    """
    if queue is not None and "routing_key" in columns:
        raise SchemaError(
            f"column 'routing_key' beside option queue='{queue}': all rows go to that queue; drop "
            "it with .drop('routing_key'), or give .option('exchange', '') in place of the queue"
        )
    for name, kind in columns.items():
        if name not in WRITTEN:
            raise SchemaError(
                f"column '{name}' can't be published: a message has {', '.join(WRITTEN)}; "
                f"drop it with .drop('{name}'), or put it into the body"
            )
        if kind not in WRITTEN[name]:
            raise SchemaError(
                f"column '{name}' is {kind}, to be published it has to be "
                f"{' or '.join(WRITTEN[name])}; cast it"
            )
    if "body" not in columns:
        raise SchemaError(
            f"the column 'body' is missing among {', '.join(columns)}; "
            "make it, as with .selectExpr('to_json(struct(*)) AS body')"
        )
