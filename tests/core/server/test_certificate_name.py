"""Names in certificates, decoded as Python decodes them."""

from __future__ import annotations

from typing import Any

import pytest

from warrenmq.core.server.certificate_name import common_name, distinguished_name


def subject(*parts: dict[str, str]) -> dict[str, Any]:
    """The most general part first, as it stands in a certificate."""
    return {"subject": tuple(tuple(part.items()) for part in parts)}


ANDERS = subject(
    {"countryName": "SE"}, {"organizationName": "Example"}, {"commonName": "anders"}
)  # fmt: skip


def test_common_name() -> None:
    assert common_name(ANDERS) == "anders"


def test_unusual_common_names() -> None:
    for name in ("guest\0.example.org", "guest ", "GUEST", "g" * 100_000, "*"):
        assert common_name(subject({"commonName": name})) == name


@pytest.mark.parametrize(
    "certificate",
    [{}, subject({"organizationName": "Example"}), subject({"commonName": ""}),
     subject({"commonName": "anders"}, {"commonName": "guest"})],
)  # fmt: skip
def test_no_common_name_or_two(certificate: dict[str, Any]) -> None:
    assert common_name(certificate) is None


@pytest.mark.parametrize(
    ("certificate", "name"),
    [
        (ANDERS, "CN=anders,O=Example,C=SE"),
        (subject({"commonName": "anders", "userId": "7"}), "CN=anders+UID=7"),
        (subject({"1.2.3.4": "x"}), "1.2.3.4=x"),
        (subject({"commonName": "a,O=b"}), r"CN=a\,O\=b".replace(r"\=", "=")),
        (subject({"commonName": ' #"+\\<>; '}), r'CN=\ #\"\+\\\<\>\;\ '),
        (subject({"commonName": "#a"}), r"CN=\#a"),
        (subject({"commonName": " "}), "CN=\\ "),
        (subject({"commonName": "a\0b"}), r"CN=a\00b"),
        ({}, None),
    ],
)  # fmt: skip
def test_distinguished_name(certificate: dict[str, Any], name: str | None) -> None:
    assert distinguished_name(certificate) == name


def test_separators_in_values_are_escaped() -> None:
    one = subject({"organizationName": "Example"}, {"commonName": "anders"})
    other = subject({"commonName": "anders,O=Example"})
    assert distinguished_name(one) != distinguished_name(other)
