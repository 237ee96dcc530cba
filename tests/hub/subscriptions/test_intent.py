from __future__ import annotations

import pytest

from warrenmq.hub.errors import BadRequest
from warrenmq.hub.settings import HubSettings
from warrenmq.hub.subscriptions.intent import append_query, grant_lease, read_intent, read_lease

from ..support import NEWS, request

SETTINGS = HubSettings()
YEAR_S = 365 * 86_400
MONTH_S = 30 * 86_400
TEN_DAYS_S = 10 * 86_400


@pytest.mark.parametrize(
    ("asked", "granted"),
    [
        (None, MONTH_S),
        ("", MONTH_S),
        ("soon", MONTH_S),
        ("0", MONTH_S),
        ("-1", MONTH_S),
        ("1.5", MONTH_S),
        ("\u0663", MONTH_S),  # a digit, but none of ours
        ("1", 1),
        ("600", 600),
        (" 600 ", 600),
        (str(YEAR_S), YEAR_S),
        (str(YEAR_S + 1), YEAR_S),
        ("1000000000000", YEAR_S),
        ("9" * 100_000, YEAR_S),
    ],
)
def test_leases(asked: str | None, granted: int) -> None:
    assert grant_lease(asked, SETTINGS) == granted


@pytest.mark.parametrize(
    ("asked", "granted"),
    [(None, TEN_DAYS_S), ("", TEN_DAYS_S), ("1", 1), (" 600 ", 600), ("7776000", 7_776_000)],
)
def test_leases_at_hub(asked: str | None, granted: int) -> None:
    assert read_lease(asked, SETTINGS) == granted


@pytest.mark.parametrize(
    "asked", ["0", "-1", "+5", "1.5", "soon", "\u0663", "7776001", "1000000000000", "9" * 100_000]
)
def test_a_lease_out_of_bounds_is_refused_at_hub(asked: str) -> None:
    with pytest.raises(BadRequest) as caught:
        read_lease(asked, SETTINGS)
    assert caught.value.field == "hub.lease_seconds"
    assert caught.value.limit == "1 to 7776000 seconds"


def test_what_came_to_hub_is_read_by_its_rules() -> None:
    asked = request(NEWS, "http://a.b/", topic_url="http://t.u/", verify=("carrier",))
    intent = read_intent("subscribe", asked, SETTINGS)
    assert (intent.is_sync, intent.lease_seconds) == (False, TEN_DAYS_S)
    assert (intent.topic, intent.shown_topic) == ("#", "http://t.u/")


def test_an_unsubscribe_at_hub_ignores_the_lease() -> None:
    asked = request(NEWS, "http://a.b/", topic_url="http://t.u/", lease_seconds="0")
    read_intent("unsubscribe", asked, SETTINGS)
    with pytest.raises(BadRequest):
        read_intent("subscribe", asked, SETTINGS)


@pytest.mark.parametrize(
    ("verify", "is_sync"),
    [
        ((), True),
        (("",), True),
        (("sync",), True),
        (("async",), False),
        (("async,sync",), False),
        (("pigeon, sync",), True),
        (("pigeon", "async"), False),
    ],
)
def test_the_first_known_way_of_verification_counts(verify: tuple[str, ...], is_sync: bool) -> None:
    assert (
        read_intent("subscribe", request(NEWS, "http://a.b/", verify=verify), SETTINGS).is_sync
        is is_sync
    )


def test_a_secret_is_never_repeated_in_an_error() -> None:
    with pytest.raises(BadRequest) as caught:
        read_intent("subscribe", request(NEWS, "http://a.b/", secret="s3cret" * 50), SETTINGS)
    assert caught.value.value is None and "s3cret" not in str(caught.value)
    assert caught.value.limit == "199 bytes"


def test_an_empty_secret_is_none() -> None:
    assert (
        read_intent("subscribe", request(NEWS, "http://a.b/", secret=""), SETTINGS).secret is None
    )


@pytest.mark.parametrize(
    ("url", "whole"),
    [
        ("http://a.b/cb", "http://a.b/cb?hub.topic=x%26y%20%C3%A9"),
        ("http://a.b/cb?t=1", "http://a.b/cb?t=1&hub.topic=x%26y%20%C3%A9"),
        ("http://a.b/cb?", "http://a.b/cb?hub.topic=x%26y%20%C3%A9"),
        ("http://a.b/cb?t=%2F&", "http://a.b/cb?t=%2F&hub.topic=x%26y%20%C3%A9"),
        ("http://a.b", "http://a.b?hub.topic=x%26y%20%C3%A9"),
    ],
)
def test_the_callbacks_own_query_is_kept(url: str, whole: str) -> None:
    assert append_query(url, ("hub.topic", "x&y \u00e9")) == whole


@pytest.mark.parametrize("field", ["topic", "secret"])
def test_what_a_database_does_not_store_is_refused(field: str) -> None:
    asked = {"topic": "#", field: "sec\0ret"}
    with pytest.raises(BadRequest, match="NUL") as caught:
        read_intent("subscribe", request(NEWS, "http://a.b/", **asked), SETTINGS)
    assert caught.value.field == f"hub.{field}"
    assert field == "topic" or "ret" not in f"{caught.value.reason}{caught.value.value}"
