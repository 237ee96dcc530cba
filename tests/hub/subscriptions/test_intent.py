from __future__ import annotations

import pytest

from tests.support.settings import hub_settings
from warrenmq.hub.errors import BadRequest
from warrenmq.hub.subscriptions.intent import grant_lease, read_intent, read_lease

from ..support import NEWS, request

SETTINGS = hub_settings()
YEAR_S = 365 * 86_400
MONTH_S = 30 * 86_400


@pytest.mark.parametrize(
    ("asked", "granted"),
    [
        *((one, MONTH_S) for one in (None, "", "soon", "0", "-1", "1.5", "\u0663")),
        ("1", 1), ("600", 600), (" 600 ", 600),
        *((one, YEAR_S) for one in (str(YEAR_S), str(YEAR_S + 1), "1000000000000", "9" * 100_000)),
    ],
)  # fmt: skip
def test_leases(asked: str | None, granted: int) -> None:
    assert grant_lease(asked, SETTINGS) == granted


@pytest.mark.parametrize(
    ("asked", "is_anonymous", "granted_days"),
    [
        (None, False, 10), ("3456000", False, 40), ("7776001", False, 90), ("9" * 30, False, 90),
        (None, True, 10), ("3456000", True, 10), ("9" * 100_000, True, 10),
    ],
)  # fmt: skip
def test_a_long_lease_is_shortened_at_hub(
    asked: str | None, is_anonymous: bool, granted_days: int
) -> None:
    assert read_lease(asked, SETTINGS, is_anonymous=is_anonymous) == granted_days * 86_400


@pytest.mark.parametrize("asked", ["0", "000", "-1", "+5", "1.5", "soon", "\u0663"])
def test_a_senseless_lease_is_refused_at_hub(asked: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read_lease(asked, SETTINGS)
    assert caught.value.field == "hub.lease_seconds"
    assert caught.value.limit == "1 to 7776000, longer ones are shortened"


@pytest.mark.parametrize(
    ("verify", "is_sync"),
    [
        ((), True), (("",), True), (("sync",), True), (("pigeon, sync",), True),
        (("async",), False), (("async,sync",), False), (("pigeon", "async"), False),
    ],
)  # fmt: skip
def test_ways_of_verification(verify: tuple[str, ...], is_sync: bool) -> None:
    assert (
        read_intent("subscribe", request(NEWS, "http://a.b/", verify=verify), SETTINGS).is_sync
        is is_sync
    )


def test_an_empty_secret_is_none() -> None:
    assert (
        read_intent("subscribe", request(NEWS, "http://a.b/", secret=""), SETTINGS).secret is None
    )


@pytest.mark.parametrize("field", ["topic", "secret"])
def test_nul_is_refused(field: str) -> None:
    asked = {"topic": "#", field: "sec\0ret"}
    with pytest.raises(BadRequest, match="NUL") as caught:
        read_intent("subscribe", request(NEWS, "http://a.b/", **asked), SETTINGS)
    assert caught.value.field == f"hub.{field}"
    assert field == "topic" or "ret" not in f"{caught.value.reason}{caught.value.value}"
