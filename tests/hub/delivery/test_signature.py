from __future__ import annotations

import base64
import hmac
import tracemalloc

import pytest

from warrenmq.hub.delivery.signature import check_secret, sign, webhook_key, webhook_signature
from warrenmq.hub.errors import BadRequest

# RFC 2202 and RFC 4231, test case 2: key "Jefe".
BODY = b"what do ya want for nothing?"
VECTORS = {
    "sha1": "effcdf6ae5eb2fa2d27416d5f184df9c259a7c79",
    "sha256": "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843",
    "sha384": (
        "af45d2e376484031617f78d2b58a6b1b9c7ef464f5a01b47e42ec3736322445e"
        "8e2240ca5e69e2c78b3239ecfab21649"
    ),
    "sha512": (
        "164b7a7bfcf819e2e395fbe73b56e0a387bd64222e831fd610270cd7ea250554"
        "9758bf75c05a994a6d034f65f8f0e6fdcaeab1a34d4a6b4b636e070a38bce737"
    ),
}


@pytest.mark.parametrize("method", VECTORS)
def test_published_vectors(method: str) -> None:
    assert sign(method, "Jefe", BODY) == f"{method}={VECTORS[method]}"


def test_a_method_websub_does_not_have() -> None:
    with pytest.raises(ValueError, match="md5"):
        sign("md5", "Jefe", BODY)


STANDARD_KEY = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def test_the_vector_of_standard_webhooks() -> None:
    """The one in the documentation of its reference libraries."""
    signature = webhook_signature(
        [webhook_key(STANDARD_KEY)],
        "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "1614265330",
        b'{"test": 2432232314}',
    )
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("size", [64 * 1024, 64 * 1024 + 1, 8 * 1024 * 1024])
def test_a_large_body_is_not_copied(size: int) -> None:
    body = bytes(size)
    expected = hmac.digest(b"key", b"msg_1.1." + body, "sha256")
    tracemalloc.start()
    try:
        signature = webhook_signature([b"key"], "msg_1", "1", body)
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert base64.b64decode(signature.removeprefix("v1,")) == expected
    assert peak_bytes < 128 * 1024


def test_any_other_secret_is_its_own_key() -> None:
    assert webhook_key("s3cret") == b"s3cret"
    assert webhook_key("whsec_?") == b"whsec_?"  # one that was stored before it was checked


def key_of(size: int) -> str:
    return "whsec_" + base64.b64encode(bytes(size)).decode()


@pytest.mark.parametrize("secret", ["s3cret", "whsec", STANDARD_KEY, key_of(24), key_of(64)])
def test_valid_secrets_are_accepted(secret: str) -> None:
    assert check_secret(secret) == secret


@pytest.mark.parametrize(
    ("secret", "words"),
    [
        ("whsec_?", "is not base64"),
        ("whsec_AAA", "is not base64"),
        ("whsec_", "0 bytes"),
        (key_of(23), "23 bytes"),
        (key_of(65), "65 bytes"),
    ],
)
def test_invalid_secrets_are_refused(secret: str, words: str) -> None:
    with pytest.raises(BadRequest, match=words) as refused:
        check_secret(secret)
    assert refused.value.field == "hub.secret"
    assert len(secret) < 10 or secret not in str(refused.value)
