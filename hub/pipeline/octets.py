"""Reads numbers and texts at many positions of a byte string at once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

Positions = NDArray[np.int64]


class Octets:
    """A byte string; positions are arrays of offsets into it.

    A position outside raises `IndexError`.
    """

    def __init__(self, data: bytes) -> None:
        self.data = data
        self._buffer = pa.py_buffer(data)
        self._octets = np.frombuffer(data, np.uint8)

    def octet(self, at: Positions) -> Positions:
        return self._octets.take(at).astype(np.int64)

    def number(self, kind: str, at: Positions) -> NDArray[Any]:
        """Returns numbers of NumPy's type `kind`, such as `>u4`, in the machine's byte order."""
        dtype = np.dtype(kind)
        # Every position begins a number: a view with a stride of one octet, which copies nothing.
        count = max(0, len(self.data) - dtype.itemsize + 1)
        view = np.ndarray((count,), dtype, self.data, strides=(1,))
        return view[at].astype(dtype.newbyteorder("="))

    def integer(self, kind: str, at: Positions) -> Positions:
        return self.number(kind, at).astype(np.int64)

    def binary(self, starts: Positions, ends: Positions) -> pa.Array:
        """Returns the byte strings between starts and ends."""
        count = len(starts)
        if not count:
            return pa.array([], pa.binary())
        # Arrow's offsets say where each string begins and the one before it ends. With starts and
        # ends in turn every second string is wanted; `take` copies these and nothing else.
        bounds = np.empty(2 * count + 1, np.int32)
        bounds[0:-1:2] = starts
        bounds[1::2] = ends
        # From the last one `take` estimates how much it will copy.
        bounds[-1] = min(len(self.data), bounds[0] + 2 * int((ends - starts).sum()))
        both = pa.Array.from_buffers(
            pa.binary(), 2 * count, [None, pa.py_buffer(bounds), self._buffer]
        )
        return both.take(pa.array(np.arange(0, 2 * count, 2, dtype=np.int32)))

    def text(self, starts: Positions, ends: Positions) -> pa.Array:
        """Returns the texts between starts and ends; what is not UTF-8 becomes U+FFFD."""
        found = self.binary(starts, ends)
        try:
            return found.cast(pa.string())
        except pa.ArrowInvalid:
            texts = [value.decode(errors="replace") for value in found.to_pylist()]
            return pa.array(texts, pa.string())


def spread(values: pa.Array, present: NDArray[np.bool_]) -> pa.Array:
    """Returns the values at the places that are `present`, and nulls at the others."""
    if len(values) == len(present):
        return values
    return values.take(pa.array(np.cumsum(present) - 1, mask=~present))
