"""Content with a secret is believed by its signature alone (WebSub 8; rocks 301, 302)."""

from __future__ import annotations

import pytest

from warrenmq.hub.delivery.signature import METHODS, sign
from warrenmq.hub.upstream.content import refusal

SECRET, BODY = "s3cr\xe9t", b"bonjour"


@pytest.mark.parametrize("method", METHODS)
def test_any_of_the_four_methods(method: str) -> None:
    header = sign(method, SECRET, BODY)
    assert refusal(header, SECRET, BODY) is None
    name, _, digits = header.partition("=")
    assert refusal(f"{name.upper()}={digits.upper()} ", SECRET, BODY) is None


def test_without_a_secret_nothing_is_asked() -> None:
    assert refusal(None, None, BODY) is None
    assert refusal("sha256=wrong", None, BODY) is None


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        (None, "is missing"),
        ("", "is missing"),
        ("sha256=", "not that of this content"),
        ("sha256", "not that of this content"),
        (sign("sha256", "another", BODY), "not that of this content"),
        (sign("sha256", SECRET, BODY + b" "), "not that of this content"),
        (sign("sha256", SECRET, BODY).replace("sha256", "sha1"), "not that of this content"),
        (sign("sha256", SECRET, BODY)[:-1], "not that of this content"),
        ("sha256=" + "\xff\udcff" * 32, "not that of this content"),
        ("md5=abc", "the method 'md5', none of sha1, sha256, sha384, sha512"),
        ("=abc", "the method ''"),
    ],
)
def test_what_is_not_processed(header: str | None, reason: str) -> None:
    found = refusal(header, SECRET, BODY)
    assert found is not None and reason in found
    assert SECRET not in found
