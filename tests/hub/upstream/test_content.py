"""Content with a secret is believed by its signature alone (WebSub 8; rocks 301, 302)."""

from __future__ import annotations

import pytest

from warrenmq.hub.delivery.signature import METHODS, sign
from warrenmq.hub.upstream.content import refusal

SECRET, BODY = "s3cr\xe9t", b"bonjour"


GOOD = sign("sha256", SECRET, BODY)


@pytest.mark.parametrize(
    ("header", "reason"),
    [
        *((sign(method, SECRET, BODY), None) for method in METHODS),
        (GOOD.upper() + " ", None),
        *((header, "is missing") for header in (None, "")),
        *((header, "not that of this content") for header in (
            "sha256=", "sha256", sign("sha256", "another", BODY), GOOD[:-1],
            GOOD.replace("sha256", "sha1"), "sha256=" + "\xff\udcff" * 32,
        )),
        ("md5=abc", "the method 'md5', none of sha1, sha256, sha384, sha512"),
        ("=abc", "the method ''"),
    ],
)  # fmt: skip
def test_signatures(header: str | None, reason: str | None) -> None:
    found = refusal(header, SECRET, BODY)
    assert (found is None) is (reason is None)
    assert (reason or "") in (found or "") and SECRET not in (found or "")
    assert refusal(header, None, BODY) is None
