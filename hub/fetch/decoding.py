"""Decodes content codings, one layer and up to a size (RFC 9110 8.4)."""

from __future__ import annotations

import zlib

ACCEPTED = "gzip, deflate"
_GZIP = 16 + zlib.MAX_WBITS
_GZIP_MAGIC = b"\x1f\x8b"
_DEFLATE_METHOD = 8
MAX_MEMBERS = 1_000
"""The most members of a gzip file: the rest is copied after each, so many would take minutes."""


class DecodingFailed(ValueError):
    """The body does not match its Content-Encoding, or is too long."""


def decode(body: bytes, coding: str, max_bytes: int) -> bytes:
    """Returns the decoded body. It is too slow for the event loop."""
    match coding.strip().lower():
        case "" | "identity":
            return body
        case "gzip" | "x-gzip":
            return _gunzip(body, max_bytes)
        case "deflate":
            return _inflate(body, _zlib_bits(body), max_bytes)[0]
    raise DecodingFailed(f"has the Content-Encoding '{coding[:100]}', {ACCEPTED} are understood")


def _gunzip(body: bytes, max_bytes: int) -> bytes:
    """Decodes all members of the file (RFC 1952 2.2)."""
    member, rest = _inflate(body, _GZIP, max_bytes)
    members, left_bytes = [member], max_bytes - len(member)
    while rest.startswith(_GZIP_MAGIC):
        if len(members) == MAX_MEMBERS:
            raise DecodingFailed(f"has more than {MAX_MEMBERS} gzip members")
        member, rest = _inflate(rest, _GZIP, left_bytes)
        members.append(member)
        left_bytes -= len(member)
    if rest.strip(b"\0"):  # zeros are padding
        raise DecodingFailed(f"has {len(rest)} bytes behind its end that are not gzip")
    return b"".join(members)


def _inflate(body: bytes, bits: int, max_bytes: int) -> tuple[bytes, bytes]:
    """Returns the decoded bytes, and those after the end of the stream."""
    inflater = zlib.decompressobj(bits)
    try:
        whole = inflater.decompress(body, max_bytes + 1)
    except zlib.error as error:
        raise DecodingFailed(f"can't be decoded: {error}") from error
    if len(whole) > max_bytes:
        raise DecodingFailed(f"is longer than {max_bytes} bytes when decoded")
    if not inflater.eof:
        raise DecodingFailed("is truncated: the compressed data is incomplete")
    return whole, inflater.unused_data


def _zlib_bits(body: bytes) -> int:
    """Returns the window bits: `deflate` means zlib's format, but some servers send raw streams."""
    head = body[:2]
    is_zlib = len(head) == 2 and head[0] & 15 == _DEFLATE_METHOD and int.from_bytes(head) % 31 == 0
    return zlib.MAX_WBITS if is_zlib else -zlib.MAX_WBITS
