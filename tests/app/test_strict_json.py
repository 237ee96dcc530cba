"""JSON that two parsers could understand differently is refused (reliability.md 40)."""

from __future__ import annotations

import pytest

from warrenmq.app.problems import Problem
from warrenmq.app.requests.strict_json import loads


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (b'{"a": [1, 2.5, true, null, "\\u00e9"]}', {"a": [1, 2.5, True, None, "é"]}),
        (b'"[[[[{{{{ \\" ]["', '[[[[{{{{ " ]['),
        (b"[" * 128 + b"]" * 128, None),
        (b'"\\ud83d\\ude00 \\\\ud800"', "\U0001f600 \\ud800"),
        (b'{"a": {"b": 1}, "b": {"a": 1}}', {"a": {"b": 1}, "b": {"a": 1}}),
    ],
)
def test_valid_json_is_read(text: bytes, value: object) -> None:
    assert value is None or loads(text) == value
    loads(text)


@pytest.mark.parametrize(
    "text",
    [
        b"", b"{", b"{} {}", b"[" * 129 + b"]" * 129, b"[" * 100_000, b'{"a":' * 100_000,
        b'{"a": 1, "a": 1}', b'{"a": 1, "\\u0061": 2}', b"NaN", b"[Infinity]", b"-Infinity",
        b"1" * 100_000, b"\xff", b'"\xc3"', b'"\n"', b"'a'", b'"' + b'\\"' * 30_000, b'"\\ud800"',
        b'{"\\uDFFF": 1}', b'["\\ude00\\ud83d"]',
    ],
)  # fmt: skip
def test_ambiguous_json_is_refused(text: bytes) -> None:
    with pytest.raises(Problem) as refusal:
        loads(text)
    assert refusal.value.status == 400
    assert len(refusal.value.detail) < 300
