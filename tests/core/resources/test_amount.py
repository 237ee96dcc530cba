"""Parsing and formatting amounts of memory and disk."""

from __future__ import annotations

import pytest

from warrenmq.core.resources.amount import GIB, MIB, in_words, read_amount


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0), ("0.0", 0), ("0MiB", 0), ("0.4", 40 * MIB), ("1", 100 * MIB),
        ("1.5", 150 * MIB), ("512MiB", 512 * MIB), ("512 mib", 512 * MIB), ("2GB", 2 * 10**9),
        ("1.5GiB", GIB * 3 // 2), ("100B", 100), ("1kB", 1000), ("1TiB", 1024 * GIB),
        ("1PiB", 1024**2 * GIB),
    ],
)  # fmt: skip
def test_amounts(text: str, expected: int) -> None:
    assert read_amount(text).of(100 * MIB) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "neither a share"), ("-1", "neither a share"), ("lots", "neither a share"),
        ("inf", "neither a share"), ("nan", "neither a share"), ("1e3", "neither a share"),
        ("50%", "neither a share"), ("1" * 19, "neither a share"), (".5", "neither a share"),
        ("5XB", "unknown unit 'XB'"), ("5M", "unknown unit 'M'"),
        ("536870912", "has a unit: 536870912B"), ("100.1", "multiple above 100"),
    ],
)  # fmt: skip
def test_refused_amounts(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why) as refusal:
        read_amount(text)
    assert f"'{text}'" in str(refusal.value)


@pytest.mark.parametrize(
    ("size_bytes", "words"),
    [
        (0, "0 bytes"), (1023, "1023 bytes"), (1024, "1.0 KiB"), (512 * MIB, "512.0 MiB"),
        (GIB * 3 // 2, "1.5 GiB"), (2048 * GIB, "2.0 TiB"),
    ],
)  # fmt: skip
def test_size_is_formatted(size_bytes: int, words: str) -> None:
    assert in_words(size_bytes) == words
