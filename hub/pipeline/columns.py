"""Decodes chunks to Arrow: columns of all messages at once, no Python object per message."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from .chunk_format import ChunkMessages, Records, locate
from .errors import DamagedChunk
from .octets import Octets, Positions
from .properties import read_properties
from .schema import ARROW_TYPES


def decode(
    data: bytes, records: Records, stream: str, start: int, end: int, schema: pa.Schema
) -> pa.RecordBatch:
    """Returns the messages at offsets from `start` to before `end`, with the columns of `schema`.

    Raises `DamagedChunk` for records that can't be read.
    """
    octets = Octets(data)
    try:
        messages = locate(octets, records).between(start, end)
        columns = _columns(octets, messages, stream, set(schema.names))
    except (IndexError, pa.ArrowInvalid) as error:
        raise DamagedChunk(f"stream '{stream}', offsets {start} to {end}: {error}") from error
    count = len(messages.offsets)
    arrays = [
        columns[field.name] if field.name in columns else pa.nulls(count, field.type)
        for field in schema
    ]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _columns(
    octets: Octets, messages: ChunkMessages, stream: str, wanted: set[str]
) -> dict[str, pa.Array]:
    """Returns the columns that have values."""
    columns = {
        "stream": pa.repeat(pa.scalar(stream, pa.string()), len(messages.offsets)),
        "offset": pa.array(messages.offsets),
        "timestamp": pa.array(
            (messages.arrived_ms * 1000).view("M8[us]"), ARROW_TYPES["timestamp"]
        ),
    }
    if "body" in wanted:
        columns["body"] = octets.binary(messages.bodies, messages.ends)
    return columns | _headed(octets, messages, wanted)


def _headed(octets: Octets, messages: ChunkMessages, wanted: set[str]) -> dict[str, pa.Array]:
    """Returns the columns of envelopes and properties; those that messages share are read once."""
    count = len(messages.properties)
    is_first = np.ones(count, np.bool_)
    is_first[1:] = messages.properties[1:] != messages.properties[:-1]
    firsts = np.flatnonzero(is_first)
    columns = _envelopes(octets, messages.envelopes[firsts], wanted)
    columns |= read_properties(octets, messages.properties[firsts], wanted)
    if len(firsts) == count:
        return columns
    places = pa.array(np.cumsum(is_first) - 1)
    return {name: column.take(places) for name, column in columns.items()}


def _envelopes(octets: Octets, at: Positions, wanted: set[str]) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {}
    for name in ("exchange", "routing_key"):
        ends = at + 1 + octets.octet(at)
        if name in wanted:
            columns[name] = octets.text(at + 1, ends)
        at = ends
    return columns
