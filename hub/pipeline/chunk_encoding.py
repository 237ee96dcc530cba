"""Makes chunks of rows (docs/streams.md): columns at once, no Python object per message.

Messages become the frames that publish them. Those that arrived in the same millisecond are one
record, since a record has one time of arrival.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from itertools import pairwise
from struct import Struct
from typing import Any, Final, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from .chunk_format import (
    COPIED,
    HEAD,
    MAGIC,
    MESSAGES,
    META_BYTES,
    NUMBERED,
    PLACE,
    RECORD,
    RECORD_MAGIC,
    SCATTERED,
)
from .octets import Positions
from .rows_format import (
    bounds_of,
    joined,
    lengths_of,
    octets_of,
    property_lists,
    short_strings,
)

_META: Final = Struct("<IQIBBBI")
_SHARE: Final = Struct("<IIQ")
_NUMBERS: Final = Struct("<IQQ")
_RECORD_BYTES: Final = HEAD.size + RECORD.size + META_BYTES + _SHARE.size + _NUMBERS.size + 4
_MESSAGE_BYTES: Final = 12
_PUBLISH, _BASIC, _CHANNEL, _END = 40, 60, 1, 0xCE
_METHOD_FRAME: Final = np.dtype(
    [("type", "u1"), ("channel", ">u2"), ("size", ">u4"), ("class", ">u2"), ("method", ">u2"),
     ("reserved", ">u2")]
)  # fmt: skip
_HEADER_FRAME: Final = np.dtype(
    [("flags", "u1"), ("end", "u1"), ("type", "u1"), ("channel", ">u2"), ("size", ">u4"),
     ("class", ">u2"), ("weight", ">u2"), ("body", ">u8")]
)  # fmt: skip
_BODY_FRAME: Final = np.dtype(
    [("end", "u1"), ("type", "u1"), ("channel", ">u2"), ("size", ">u4")]
)  # fmt: skip


class _Frames(NamedTuple):
    """Messages as frames: all octets, where in them each begins, its header frame, and its end."""

    data: pa.Buffer
    starts: Positions
    contents: Positions
    ends: Positions


def encode_chunks(rows: pa.RecordBatch, stream_id: int, limit_bytes: int) -> tuple[int, bytes]:
    """Returns chunks of the first rows, at least of one, and of how many they are. Offsets have no
    gap. Raises `RowError` for a row that is no message."""
    frames = _frames(rows)
    arrived = rows["timestamp"].cast(pa.int64()).to_numpy() // 1000
    is_first = np.diff(arrived, prepend=arrived[0] - 1) != 0
    sizes = frames.ends - frames.starts + _MESSAGE_BYTES + is_first * _RECORD_BYTES
    count = max(1, int(np.searchsorted(np.cumsum(sizes), limit_bytes, "right")))
    bounds = [*np.flatnonzero(is_first[:count]).tolist(), count]
    first = rows["offset"][0].as_py()
    pieces: list[bytes] = []
    for start, end in pairwise(bounds):
        pieces += _chunk(frames, slice(start, end), stream_id, first + start, int(arrived[start]))
    return count, b"".join(pieces)


def _frames(rows: pa.RecordBatch) -> _Frames:
    columns = dict(zip(rows.schema.names, rows.columns, strict=True))
    exchange, key = (short_strings(name, columns[name]) for name in ("exchange", "routing_key"))
    body = columns["body"].cast(pa.large_binary())
    lists, list_sizes = property_lists(columns, rows.num_rows)
    envelopes, sizes = lengths_of(exchange) + lengths_of(key) + 2, lengths_of(body)
    method = _filled(_METHOD_FRAME, rows, type=1, size=envelopes + 7, method=_PUBLISH)
    header = _filled(_HEADER_FRAME, rows, type=2, size=list_sizes + 12, body=sizes)
    content = _filled(_BODY_FRAME, rows, type=3, size=sizes)
    frames = joined(
        [
            octets_of(method), *_counted(exchange), *_counted(key), octets_of(header), *lists,
            octets_of(content, sizes > 0), body, octets_of(np.full(rows.num_rows, _END, "u1")),
        ]
    )  # fmt: skip
    bounds = bounds_of(frames)
    contents = bounds[:-1] + _METHOD_FRAME.itemsize + envelopes + 2
    return _Frames(frames.buffers()[2], bounds[:-1], contents, bounds[1:])


def _filled(kind: np.dtype[Any], rows: pa.RecordBatch, **values: Any) -> NDArray[Any]:
    found = np.zeros(rows.num_rows, kind)
    known = {"class": _BASIC, "channel": _CHANNEL, "end": _END}
    for name, value in (known | values).items():
        if name in (kind.names or ()):
            found[name] = value
    return found


def _counted(texts: pa.Array) -> Iterator[pa.Array]:
    yield octets_of(lengths_of(texts).astype("u1"))
    yield texts


def _chunk(
    frames: _Frames, chosen: slice, stream_id: int, offset: int, arrived_ms: int
) -> tuple[bytes, ...]:
    """Returns the chunk of messages that arrived together: a record with one share."""
    starts, contents, ends = (column[chosen] for column in frames[1:])
    base, count = int(starts[0]), len(starts)
    places = np.concatenate((starts, contents, ends)) - base
    shares = _SHARE.pack(1, 0, stream_id << 1) + _NUMBERS.pack(1, stream_id, offset)
    layout = b"\0\0\0\0" + places.astype("<u4").tobytes()
    size = META_BYTES + len(shares) + len(layout)
    meta = _META.pack(size, arrived_ms, count, SCATTERED | NUMBERED, 0, 0, 1)
    body = b"".join((meta, shares, layout, frames.data[base : int(ends[-1])]))
    length = RECORD.size + len(body)
    head = RECORD.pack(RECORD_MAGIC, MESSAGES, 0, length, 0, 0)[:-4]
    crc = zlib.crc32(body, zlib.crc32(head, zlib.crc32(PLACE.pack(0, 0))))
    chunk = HEAD.pack(MAGIC, COPIED, offset, count, length, stream_id, 0, 0)
    return chunk, head, crc.to_bytes(4, "little"), body
