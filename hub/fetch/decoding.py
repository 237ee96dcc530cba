"""Content codings undone, one layer and up to a length (RFC 9110 8.4)."""

from __future__ import annotations

import zlib

ACCEPTED = "gzip, deflate"
_GZIP = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"
_DEFLATE_METHOD = 8
MAX_MEMBERS = 1_000
"""Of a gzip file. What is behind each is copied, so that megabytes of empty ones take minutes."""


class DecodingFailed(ValueError):
    """The body is not what its Content-Encoding says, or longer than allowed."""


def decode(body: bytes, coding: str, max_bytes: int) -> bytes:
    """The body without its content coding. It takes time: not for the event loop."""
    match coding.strip().lower():
        case "" | "identity":
            return body
        case "gzip" | "x-gzip":
            return _gunzip(body, max_bytes)
        case "deflate":
            return _inflate(body, _zlib_bits(body), max_bytes)[0]
    raise DecodingFailed(f"has the Content-Encoding '{coding[:100]}', {ACCEPTED} are understood")


def _gunzip(body: bytes, max_bytes: int) -> bytes:
    """All members of the file (RFC 1952 2.2)."""
    member, rest = _inflate(body, _GZIP, max_bytes)
    members, left_bytes = [member], max_bytes - len(member)
    while rest.startswith(_GZIP_MAGIC):
        if len(members) == MAX_MEMBERS:
            raise DecodingFailed(f"has more than {MAX_MEMBERS} gzip members")
        member, rest = _inflate(rest, _GZIP, left_bytes)
        members.append(member)
        left_bytes -= len(member)
    if rest.strip(b"\0"):  # padding is none of our business
        raise DecodingFailed(f"has {len(rest)} bytes behind its end that are not gzip")
    return b"".join(members)


def _inflate(body: bytes, bits: int, max_bytes: int) -> tuple[bytes, bytes]:
    """The decoded bytes, and those behind the end of the stream."""
    inflater = zlib.decompressobj(bits)
    try:
        whole = inflater.decompress(body, max_bytes + 1)
    except zlib.error as error:
        raise DecodingFailed(f"can't be decoded: {error}") from error
    if len(whole) > max_bytes:
        raise DecodingFailed(f"is longer than {max_bytes} bytes when decoded")
    if not inflater.eof:
        raise DecodingFailed("is cut: its compressed data have no end")
    return whole, inflater.unused_data


def _zlib_bits(body: bytes) -> int:
    """`deflate` is meant to be zlib's format, but some send the bare stream (RFC 9110 8.4.1.2)."""
    head = body[:2]
    is_zlib = len(head) == 2 and head[0] & 15 == _DEFLATE_METHOD and int.from_bytes(head) % 31 == 0
    return zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS
