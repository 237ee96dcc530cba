from __future__ import annotations

from dataclasses import replace

import pytest

from warrenmq.core.model import FieldValue, Message, Properties, Table
from warrenmq.hub.deliver.envelope import Envelope, parked_properties, read_envelope


def message_with(headers: Table | None = None, exchange: str = "news") -> Message:
    return Message(exchange, "eu.fr", Properties(headers=headers), b"x")


def test_a_message_that_was_never_parked() -> None:
    assert read_envelope(message_with(), 7) == Envelope("msg_7", "news", "eu.fr")


def test_a_post_to_a_queue_keeps_its_key_in_a_header() -> None:
    posted = Message("", "in", Properties(headers={"x-hub-topic": "eu.fr"}), b"x")
    assert read_envelope(posted, 7) == Envelope("msg_7", "", "eu.fr")


def test_what_is_parked_comes_back_the_same() -> None:
    first = message_with({"colour": "red"})
    failed = replace(read_envelope(first, 7), failures=3, not_before=1_700_000_000.25)
    properties = parked_properties(first, failed)
    back = Message("", "hub.sub.1", properties, b"x")
    assert read_envelope(back, 99) == failed
    assert properties.headers is not None and properties.headers["colour"] == "red"
    assert first.properties.headers == {"colour": "red"}


def test_an_expiration_does_not_cut_the_wait_short() -> None:
    message = Message("e", "k", Properties(expiration="10", delivery_mode=2), b"")
    parked = parked_properties(message, Envelope("i", "e", "k"))
    assert parked.expiration is None and parked.delivery_mode == 2


def test_copies_are_not_sent_again() -> None:
    parked = parked_properties(message_with({"CC": ["other"]}), Envelope("i", "e", "k"))
    assert parked.headers is not None
    assert "CC" not in parked.headers and parked.headers["x-hub-cc"] == ["other"]


def test_deaths_of_our_own_queues_are_forgotten_and_others_kept() -> None:
    ours: FieldValue = {"queue": "hub.retry.5s", "reason": "expired"}
    theirs: FieldValue = {"queue": "work", "reason": "rejected"}
    named = {f"x-{which}-death-queue": "hub.retry.5s" for which in ("first", "last")}
    message = message_with({"x-death": [ours, theirs], **named})
    headers = parked_properties(message, Envelope("i", "e", "k")).headers or {}
    assert headers["x-death"] == [theirs]
    assert not named.keys() & headers.keys()
    only_ours = message_with({"x-death": [ours], "x-first-death-queue": "work"})
    headers = parked_properties(only_ours, Envelope("i", "e", "k")).headers or {}
    assert "x-death" not in headers
    assert headers["x-first-death-queue"] == "work"


@pytest.mark.parametrize("wrong", [None, -1, "3", [1], {"a": 1}, 1.5, 2**63 - 1])
def test_headers_of_wrong_types_count_as_absent(wrong: FieldValue) -> None:
    headers: Table = {"x-hub-id": 5, "x-hub-failures": wrong, "x-hub-not-before": wrong}
    forged = message_with(headers, exchange="")
    forged.properties.headers = {**(forged.properties.headers or {}), "x-hub-failed-at": wrong}
    assert read_envelope(forged, 7) == Envelope("msg_7", "", "eu.fr")


def test_headers_of_what_came_over_an_exchange_are_its_publishers() -> None:
    headers: Table = {
        "x-hub-id": "msg_8", "x-hub-topic": "us", "x-hub-exchange": "other", "x-hub-failures": 11,
        "x-hub-not-before": 1_700_000_000_000, "x-hub-failed-at": 1, "x-hub-hops": 3,
    }  # fmt: skip
    assert read_envelope(message_with(headers), 7) == Envelope("msg_7", "news", "eu.fr", hops=3)
    assert read_envelope(message_with(headers, exchange=""), 7).message_id == "msg_8"


@pytest.mark.parametrize("forged", ["msg_1.5", "", "a b", "x" * 256, "caf\u00e9", "a\n"])
def test_an_id_that_could_not_be_signed_counts_as_absent(forged: str) -> None:
    assert read_envelope(message_with({"x-hub-id": forged}, exchange=""), 7).message_id == "msg_7"


def test_the_first_failure_stays_known() -> None:
    first = read_envelope(message_with(), 7).failed(1_700_000_000.5)
    assert (first.failures, first.failed_at) == (1, 1_700_000_000.5)
    back = Message("", "q", parked_properties(message_with(), first), b"x")
    second = read_envelope(back, 8).failed(1_700_000_009.0)
    assert (second.failures, second.failed_at) == (2, 1_700_000_000.5)


def test_hops_are_read() -> None:
    assert read_envelope(message_with({"x-hub-hops": 3}), 7).hops == 3
