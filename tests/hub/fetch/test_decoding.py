"""Content codings under a cap (reliability.md 57-60)."""

from __future__ import annotations

import gzip
import zlib

import pytest

from warrenmq.hub.fetch.decoding import MAX_MEMBERS, DecodingFailed, decode

TEXT = b"some text, some text, some text"
MAX = 1_000


def bare(body: bytes) -> bytes:
    deflater = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return deflater.compress(body) + deflater.flush()


def gzipped(data: bytes, level: int = 9) -> bytes:
    """Without the time, so that the names of tests stay the same."""
    return gzip.compress(data, level, mtime=0)


@pytest.mark.parametrize(
    ("coding", "body"),
    [
        ("", TEXT),
        ("Identity", TEXT),
        ("gzip", gzipped(TEXT)),
        (" X-GZIP ", gzipped(TEXT)),
        ("gzip", gzipped(TEXT[:9]) + gzipped(TEXT[9:])),
        ("gzip", gzipped(TEXT) + b"\0" * 512),
        ("deflate", zlib.compress(TEXT)),
        ("deflate", bare(TEXT)),
    ],
)
def test_one_layer_is_decoded(coding: str, body: bytes) -> None:
    assert decode(body, coding, MAX) == TEXT


@pytest.mark.parametrize(
    ("coding", "body", "reason"),
    [
        ("gzip", gzipped(b"\0" * 200_000_000, 1), "longer than 1000 bytes"),
        ("gzip", gzipped(b"a" * 600) * 2, "longer than"),
        ("gzip", gzipped(b"") * (MAX_MEMBERS + 1), "more than 1000 gzip members"),
        ("deflate", zlib.compress(b"\0" * 1_001), "longer than"),
        ("gzip", gzipped(TEXT)[:-1], "truncated"),
        ("gzip", gzipped(TEXT)[:9], "truncated"),
        ("gzip", b"", "truncated"),
        ("gzip", TEXT, "can't be decoded"),
        ("gzip", gzipped(TEXT) + b"more", "4 bytes behind its end"),
        ("gzip, gzip", gzipped(gzipped(TEXT)), "'gzip, gzip'"),
        ("br", TEXT, "gzip, deflate are understood"),
    ],
    ids=[
        "bomb", "members", "count", "deflate", "cut", "head", "empty", "plain", "tail", "layers",
        "br",
    ],
)  # fmt: skip
def test_unknown_codings_and_damaged_bodies_are_refused(
    coding: str, body: bytes, reason: str
) -> None:
    with pytest.raises(DecodingFailed, match=reason):
        decode(body, coding, MAX)


def test_the_cap_is_inclusive() -> None:
    assert len(decode(gzipped(b"a" * MAX), "gzip", MAX)) == MAX
