"""Hashes of passwords: argon2id, and RabbitMQ's (management_api.md section 4)."""

from __future__ import annotations

import base64
import hashlib

import pytest
from argon2 import PasswordHasher

from warrenmq.core.auth import AuthError, exported, hashed, imported
from warrenmq.core.auth.hashes import MD5, NOBODY_HASH, SHA256, SHA512, is_foreign, matches

# What RabbitMQ 3.10.8 made of the password `secret`.
OF_RABBITMQ = {
    SHA256: "AooJzju8/26DNt7JG8KqzbTFtDL7hFOsSj4/uutyxYMdgAC3",
    SHA512: "ZWTDCt9Me6CjKJHGqaiq1fnRHN8/trxJ2VZD5JdfLUw1lybtQ8fbBq6jjrRwER/KN8nkcAfkTY/RmQAHiwu6"
    "YWuyAfI=",
    MD5: "/WNKzYzflEglYWJ1oeRPrUjwaHk=",
}


@pytest.fixture
def entries(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The hashes on which argon2 was run."""
    entry: list[str] = []
    verify = PasswordHasher.verify

    def counted(self: PasswordHasher, argon2_hash: str, password: bytes) -> bool:
        entry.append(argon2_hash)
        return verify(self, argon2_hash, password)

    monkeypatch.setattr(PasswordHasher, "verify", counted)
    return entry


def test_parameters_are_those_of_the_threat_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    assert hashed("secret").startswith("$argon2id$v=19$m=19456,t=2,p=1$")
    assert NOBODY_HASH.startswith("$argon2id$v=19$m=19456,t=2,p=1$")


def test_argon2_hash_is_exported_unchanged() -> None:
    kept = hashed("secret")
    assert matches(kept, "secret")
    assert not matches(kept, "Secret")
    assert not is_foreign(kept)
    assert exported(kept) == (kept, "argon2")
    assert imported(kept, "argon2") == imported(kept) == kept


def test_hashing_an_empty_password_is_refused() -> None:
    with pytest.raises(AuthError, match="give an empty password_hash"):
        hashed("")


@pytest.mark.parametrize("algorithm", OF_RABBITMQ)
def test_hashes_of_rabbitmq(algorithm: str) -> None:
    kept = imported(OF_RABBITMQ[algorithm], algorithm)
    assert matches(kept, "secret")
    for wrong in ("", "Secret", "secret ", "\udcff"):
        assert not matches(kept, wrong)
    assert is_foreign(kept)
    assert exported(kept) == (OF_RABBITMQ[algorithm], algorithm)


def test_algorithm_defaults_to_sha256_or_argon2() -> None:
    assert imported(OF_RABBITMQ[SHA256]) == f"${SHA256}${OF_RABBITMQ[SHA256]}"
    assert imported(NOBODY_HASH) == NOBODY_HASH


@pytest.mark.parametrize("algorithm", [None, "argon2", SHA256, SHA512, MD5])
def test_empty_hash_matches_no_password(algorithm: str | None) -> None:
    kept = imported("", algorithm)
    assert not matches(kept, "")
    assert not matches(kept, "secret")
    assert exported(kept) == ("", SHA256)


def test_an_empty_password_is_never_right() -> None:
    """Also with a hash of the empty password."""
    digest = hashlib.sha256(b"salt").digest()
    of_rabbitmq = imported(base64.b64encode(b"salt" + digest).decode(), SHA256)
    own = PasswordHasher(time_cost=1, memory_cost=8, parallelism=1).hash(b"")
    assert not matches(of_rabbitmq, "")
    assert not matches(own, "")


@pytest.mark.parametrize("kept", ["", None, f"${SHA256}${OF_RABBITMQ[SHA256]}", NOBODY_HASH])
def test_every_refusal_costs_one_argon2_run(kept: str | None, entries: list[str]) -> None:
    assert not matches(kept, "wrong")
    assert entries == [NOBODY_HASH]


@pytest.mark.parametrize(
    ("password_hash", "algorithm", "text"),
    [
        ("abc", "bcrypt", "'bcrypt' can't be checked; known are argon2, rabbit_password"),
        ("$2b$12$abc", "argon2", "not an argon2 hash"),
        ("$argon2id$v=19$x$y$z", None, "not an argon2 hash"),
        ("secret!", SHA256, "is base64, this is not"),
        (f"!{OF_RABBITMQ[SHA256]}", SHA256, "is base64, this is not"),
        ("$2b$12$abc", None, "is base64, this is not"),
        (OF_RABBITMQ[MD5], SHA256, "has 36 octets, this has 20"),
        (OF_RABBITMQ[SHA256], SHA512, "has 68 octets, this has 36"),
    ],
)
def test_invalid_hash_is_refused(password_hash: str, algorithm: str | None, text: str) -> None:
    with pytest.raises(AuthError) as refusal:
        imported(password_hash, algorithm)
    assert text in str(refusal.value)
    assert password_hash not in str(refusal.value)


@pytest.mark.parametrize(
    ("sound", "broken"),
    [
        ("t=2", "t=0"),
        ("t=2", "t=-1"),
        ("t=2", "t=02"),
        ("m=19456", "m=7"),
        ("p=1", "p=2433"),
        ("p=1", "p=1$x"),
        ("v=19", "v=99"),
        ("id", "x"),
        ("$vLzKCkjs+Wrwe3mfclzWpw", "$AAAA"),
        ("$vLzKCkjs+Wrwe3mfclzWpw", "$vLzKCkjs+Wrwe3mfclzWpx"),
        ("$vLzKCkjs+Wrwe3mfclzWpw", "$vLzKCkjs+Wrwe3mfclzW!!"),
        ("$vLzKCkjs+Wrwe3mfclzWpw", "$vLzKCkjs+Wrwe3mfclzWp"),
        ("/1iGSR96Wo", "/1iGSR96Wo="),
        ("/1iGSR96Wo", "/1iGSR96Wo\0"),
        ("/1iGSR96Wo", "/1iGSR96Wo\n"),
        ("/1iGSR96Wo", "/1iGSR96Wo\u00e9"),
        ("dB6qo+3JFJlsDWNohqOhHbqgbquIreQ3s/1iGSR96Wo", "dB6q"),
    ],
)
def test_a_malformed_argon2_hash_is_refused(sound: str, broken: str) -> None:
    """Otherwise each login would fail in the library."""
    assert NOBODY_HASH.count(sound) == 1
    with pytest.raises(AuthError, match="is not an argon2 hash in PHC form"):
        imported(NOBODY_HASH.replace(sound, broken), "argon2")


@pytest.mark.parametrize(
    "kept",
    [
        "$argon2i$m=8,t=1,p=1$c2FsdHNhbHQ$JodCGgfT/vWFhAzoZYTFUJLTvjdLsMOSfnzsEi7P3U4",
        "$argon2d$v=19$m=128,t=1,p=16$c2FsdHNhbHQ$MIzDR4W0EH4",
    ],
)
def test_other_kinds_of_argon2(kept: str) -> None:
    """Accepted hashes can be verified."""
    assert imported(kept) == kept
    assert not matches(kept, "wrong")


@pytest.mark.parametrize(
    ("usual", "absurd"), [("m=19456", "m=4194304"), ("t=2", "t=1000000"), ("p=1", "p=17")]
)
def test_a_hash_that_costs_too_much_is_refused(usual: str, absurd: str) -> None:
    with pytest.raises(AuthError, match="the password hash asks for"):
        imported(NOBODY_HASH.replace(usual, absurd))
