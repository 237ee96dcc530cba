"""A range of an answer's octets (RFC 9110 14)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from ..problems import Problem

_ONE_RANGE: Final = re.compile(r"bytes=(\d{0,19})-(\d{0,19})", re.ASCII | re.IGNORECASE)


def requested_range(headers: Mapping[str, str], etag: str, size: int) -> range | None:
    """Returns the positions of the octets that are asked for, of an answer that has `size`.

    None is the whole answer: for one without octets, without a range, with a range that is not
    valid, with several, and with an `If-Range` other than the answer's `etag`, which is a strong
    one. Raises `Problem` 416 for a range behind the end.
    """
    field = headers.get("range", "").replace(" ", "")
    found = _ONE_RANGE.fullmatch(field)
    if found is None or not size or headers.get("if-range", etag) != etag:
        return None
    first, last = found.groups()
    if not (first or last) or (first and last and int(last) < int(first)):
        return None
    start = int(first) if first else max(0, size - int(last))
    end = min(size, int(last) + 1) if first and last else size
    if start >= end:
        raise Problem(
            416, f"Range '{field}' is not within the answer, which has {size} bytes",
            headers={"Content-Range": f"bytes */{size}"},
        )  # fmt: skip
    return range(start, end)
