from __future__ import annotations

import pytest

from warren.hub.signature import sign

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
