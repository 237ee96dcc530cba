"""Writes chunks as an Arrow IPC stream, for clients that decode none.

pyarrow is imported at the first use, by a thread; the hub runs without it.
"""

from __future__ import annotations

from typing import Final

from .errors import ArrowMissing

END: Final = b"\xff\xff\xff\xff\0\0\0\0"
"""The end of an Arrow IPC stream."""


def head() -> bytes:
    """Returns the beginning of a stream: its schema. Raises `ArrowMissing`."""
    try:
        from ..pipeline.schema import ARROW_SCHEMA
    except ImportError as error:
        raise ArrowMissing(
            f"the server has no {error.name}, which Arrow needs: install it there with "
            f"pip install 'warrenmq[arrow]', or read application/vnd.warren.chunks",
            field="Accept",
        ) from error
    return bytes(ARROW_SCHEMA.serialize())


def batch(data: bytes, stream: str, start: int, end: int) -> bytes:
    """Returns the messages of chunks at offsets from `start` to before `end`."""
    from ..pipeline.chunk_format import read_chunks
    from ..pipeline.columns import decode
    from ..pipeline.schema import ARROW_SCHEMA

    rows = decode(data, read_chunks(data), stream, start, end, ARROW_SCHEMA)
    return bytes(rows.serialize())
