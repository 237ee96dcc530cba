from __future__ import annotations

import base64

import pytest

from warrenmq.hub.delivery.signature import METHODS
from warrenmq.hub.errors import BadRequest
from warrenmq.hub.subscriptions.options import (
    DEFAULTS,
    PARAMETERS,
    Contact,
    Options,
    as_parameters,
    read_basic_auth,
    read_options,
)


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, DEFAULTS),
        ({"hub.format": "", "hub.in_flight": "", "hub.email": ""}, DEFAULTS),
        ({"hub.unknown": "x"}, DEFAULTS),
        *(({"hub.signature_method": m}, Options(signature_method=m)) for m in METHODS),
        ({"hub.format": "plain"}, DEFAULTS),
        ({"hub.format": "cloudevents-binary"}, Options(format="cloudevents-binary")),
        ({"hub.format": "cloudevents-structured"}, Options(format="cloudevents-structured")),
        ({"hub.order": "strict"}, Options(strict_order=True)),
        ({"hub.order": "loose"}, DEFAULTS),
        ({"hub.in_flight": "0"}, DEFAULTS),
        ({"hub.in_flight": "1000"}, Options(in_flight=1_000)),
        ({"hub.max_tps": "007"}, Options(max_tps=7)),
        ({"hub.max_tps": "1000000"}, Options(max_tps=1_000_000)),
        ({"hub.ha_mode": "all"}, Options(ha_mode="all")),
        ({"hub.ha_mode": "none"}, Options(ha_mode="none")),
        ({"hub.ha_mode": "9999"}, Options(ha_mode="9999")),
        ({"hub.app_name": "x" * 1_000}, Options(contact=Contact("x" * 1_000))),
        (
            {"hub.app_name": "a", "hub.email": "a@b", "hub.phone": "1"},
            Options(contact=Contact("a", email="a@b", phone="1")),
        ),
    ],
)
def test_options_are_read(given: dict[str, str], expected: Options) -> None:
    assert read_options(given) == expected


@pytest.mark.parametrize("name", ["contact_name", "phone", "email", "description"])
def test_a_contact_needs_the_name_of_its_application(name: str) -> None:
    with pytest.raises(BadRequest) as refusal:
        read_options({f"hub.{name}": "x"})
    assert refusal.value.field == "hub.app_name"


@pytest.mark.parametrize(
    "options",
    [DEFAULTS, Options(signature_method="sha512", strict_order=True, in_flight=5)],
)
def test_as_parameters_and_back(options: Options) -> None:
    shown = as_parameters(options)
    assert read_options({f"hub.{name}": str(value) for name, value in shown.items()}) == options
    assert not {"max_tps", "ha_mode"} & shown.keys()


def test_the_defaults_are_shared() -> None:
    assert read_options({}) is DEFAULTS


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("hub.signature_method", "md5"), ("hub.format", "Plain"), ("hub.order", "true"),
        *(("hub.in_flight", one) for one in ("1001", "-1", "1.5", " 1", "\u0663")),
        ("hub.max_tps", "1000001"), ("hub.max_tps", "9" * 100_000),
        ("hub.ha_mode", "some"), ("hub.ha_mode", "10000"),
        ("hub.app_name", "x" * 1_001), ("hub.contact_name", "a\0b"),
    ],
)  # fmt: skip
def test_a_bad_value_is_named(field: str, value: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read_options({field: value})
    assert caught.value.field == field
    assert field in PARAMETERS


@pytest.mark.parametrize("given", [{}, {"hub.basic_auth": ""}])
def test_no_basic_auth(given: dict[str, str]) -> None:
    assert read_basic_auth(given) is None


@pytest.mark.parametrize("credentials", ["user:password", ":", "a:b:c", "caf\u00e9:x"])
def test_valid_basic_auth_is_kept_unchanged(credentials: str) -> None:
    value = encoded(credentials)
    assert read_basic_auth({"hub.basic_auth": value}) == value


@pytest.mark.parametrize(
    "value",
    [
        "user:password",
        encoded("user"),
        encoded("user:password").rstrip("="),
        encoded("a:b") + "\r\n",
        "caf\u00e9",
        encoded("u:" + "x" * 1_024),
    ],
)
def test_bad_basic_auth_is_never_repeated(value: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read_basic_auth({"hub.basic_auth": value})
    assert caught.value.field == "hub.basic_auth"
    assert caught.value.value is None and value not in str(caught.value)
