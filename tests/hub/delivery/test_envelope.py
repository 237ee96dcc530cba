from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from warrenmq.core.message.model import FieldValue, Message, Properties, Table
from warrenmq.hub.delivery.envelope import Envelope, retry_properties
from warrenmq.hub.delivery.internal_headers import LARGE_BYTES, InternalHeaders


@pytest.fixture
def internal_headers(tmp_path: Path) -> InternalHeaders:
    return InternalHeaders(tmp_path / "hub.key")


def message_with(headers: Table | None = None, exchange: str = "news") -> Message:
    return Message(exchange, "eu.fr", Properties(headers=headers), b"x")


async def test_a_retried_message_is_read_back(internal_headers: InternalHeaders) -> None:
    first = message_with({"colour": "red"})
    failed = replace(
        internal_headers.read(first, 7), failures=3, not_before=1_700_000_000.25,
        failed_at=1_699_999_990.5, arrived_at=1_699_999_980.125, expiration="60000",
    )  # fmt: skip
    properties = await internal_headers.sealed(retry_properties(first, failed), first.body)
    back = Message("", "hub.sub.1", properties, b"x")
    assert internal_headers.read(back, 99) == replace(failed, is_sealed=True)
    assert properties.headers is not None and properties.headers["colour"] == "red"
    assert first.properties.headers == {"colour": "red"}


def test_delay_queues_are_removed_from_x_death() -> None:
    ours: FieldValue = {"queue": "hub.retry.5s", "reason": "expired"}
    theirs: FieldValue = {"queue": "work", "reason": "rejected"}
    named = {f"x-{which}-death-queue": "hub.retry.5s" for which in ("first", "last")}
    message = message_with({"x-death": [ours, theirs], **named})
    headers = retry_properties(message, Envelope("i", "e", "k")).headers or {}
    assert headers["x-death"] == [theirs]
    assert not named.keys() & headers.keys()
    only_ours = message_with({"x-death": [ours], "x-first-death-queue": "work"})
    headers = retry_properties(only_ours, Envelope("i", "e", "k")).headers or {}
    assert "x-death" not in headers
    assert headers["x-first-death-queue"] == "work"


FORGED: Table = {
    "x-hub-id": "msg_8", "x-hub-topic": "us", "x-hub-exchange": "other", "x-hub-failures": 11,
    "x-hub-not-before": 1_700_000_000_000, "x-hub-failed-at": 1, "x-hub-arrived-at": 1,
    "x-hub-expiration": "5", "x-hub-subscription": "1", "x-hub-reason": "r", "x-hub-dead-at": 1,
}  # fmt: skip


@pytest.mark.parametrize("exchange", ["news", ""])
@pytest.mark.parametrize("seal", [None, "", "0" * 48, 5, "\xe9"])
async def test_headers_without_a_seal_are_ignored(
    internal_headers: InternalHeaders, exchange: str, seal: FieldValue
) -> None:
    headers = {**FORGED, "x-hub-hops": 3} | ({} if seal is None else {"x-hub-seal": seal})
    envelope = internal_headers.read(message_with(headers, exchange), 7)
    assert envelope == Envelope(internal_headers.message_id(7), exchange, "eu.fr", hops=3)


@pytest.mark.parametrize("size", [1, LARGE_BYTES])
async def test_a_seal_covers_body_and_internal_headers(
    internal_headers: InternalHeaders, size: int
) -> None:
    body = b"x" * size
    waiting = retry_properties(message_with(), Envelope("msg_1", "news", "k", failures=2))
    headers = (await internal_headers.sealed(waiting, body)).headers or {}
    changes: list[tuple[Table, bytes]] = [
        ({}, body), ({"x-mine": 1}, body), ({}, body + b"y"), ({"x-hub-failures": 1}, body),
        ({"x-hub-cc": ["a"]}, body),
    ]  # fmt: skip
    for changed, other in changes:
        message = Message("", "q", Properties(headers={**headers, **changed}), other)
        is_ours = other == body and not changed.keys() - {"x-mine"}
        assert internal_headers.read(message, 7).is_sealed is is_ours
        assert (await internal_headers.read_in_thread(message, 7)) == internal_headers.read(
            message, 7
        )


async def test_forged_headers_are_not_sealed(internal_headers: InternalHeaders) -> None:
    """Not by way of a first failure either."""
    forged = message_with({**FORGED, "x-hub-cc": ["stolen"]}, exchange="")
    failed = (internal_headers.read(forged, 7)).failed(1_700_000_000)
    headers = (await internal_headers.sealed(retry_properties(forged, failed), b"x")).headers
    back = internal_headers.read(Message("", "q", Properties(headers=headers), b"x"), 8)
    assert back == replace(failed, is_sealed=True)
    assert "x-hub-cc" not in (headers or {})


async def test_ids_survive_a_restart_and_disclose_nothing(tmp_path: Path) -> None:
    first, again, other = (InternalHeaders(tmp_path / name) for name in ("key", "key", "other"))
    ids = [first.message_id(number) for number in range(100)]
    assert ids == [again.message_id(number) for number in range(100)]
    assert not {*ids} & {other.message_id(number) for number in range(100)}
    assert ids != sorted(ids)
    # Standard Webhooks signs id.timestamp.body: an id with a "." could stand for another one.
    assert all(re.fullmatch(r"msg_[0-9a-f]{32}", one) for one in ids)
