"""Holds what came against what the model expects; tells the model the delivery tags."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from tests.conformance import frames
from tests.support.amqp import Reply

from .broker import Answer, Expected, Model, Seen
from .messages import ANY_TIME, Message, Outstanding, mark
from .operations import Operation, Seat
from .special import Offset

Came = Mapping[Seat, list[Reply]]
CONFIRMS = ("Basic.Ack", "Basic.Nack")


class Mismatch(AssertionError):
    """What came is not what the model expects."""


def need(truth: bool, *words: object) -> None:
    if not truth:
        raise Mismatch(" ".join(map(str, words))[:2000])


def step(model: Model, operation: Operation, came: Came) -> None:
    """One operation on the model; raises `Mismatch` when it can't have led to what came."""
    expected = model.apply(operation, seen_in(came), generated_in(came))
    for seat in sorted({*expected, *came}):
        compare(model, seat, expected.get(seat, Expected()), list(came.get(seat, [])))


def seen_in(came: Came) -> Seen:
    seen: Seen = {}
    for seat, replies in came.items():
        for reply in replies:
            if reply.name in ("Basic.Deliver", "Basic.GetOk"):
                tag = reply.fields.get("consumer_tag", "")
                seen.setdefault((seat, tag), deque()).append(mark(reply.body, reply.headers))
    return seen


def closed_in(came: Came) -> set[Seat]:
    """Channels that the broker closed, with their connections or alone."""
    closed = {
        seat
        for seat, replies in came.items()
        if any(reply.name in ("Channel.Close", "Connection.Close") for reply in replies)
    }
    return closed | {(seat[0], channel) for seat in closed if not seat[1] for channel in (1, 2)}


def generated_in(came: Came) -> list[str]:
    return [
        reply["queue"]
        for replies in came.values()
        for reply in replies
        if reply.name == "Queue.DeclareOk" and reply["queue"].startswith("amq.gen-")
    ]


def compare(model: Model, seat: Seat, expected: Expected, came: list[Reply]) -> None:
    _deliveries(model, seat, expected, came)
    _confirms(seat, expected, came)
    cancels = [reply["consumer_tag"] for reply in came if reply.name == "Basic.Cancel"]
    need(
        sorted(cancels) == sorted(expected.cancels),
        seat,
        "cancelled",
        cancels,
        "not",
        expected.cancels,
    )
    others = ("Basic.Deliver", "Basic.Cancel", *CONFIRMS)
    answers = [reply for reply in came if reply.name not in others]
    names = [reply.name for reply in answers]
    need(
        names == [answer.name for answer in expected.answers],
        seat, "was sent", [_shown(reply) for reply in answers], "not", expected.answers,
    )  # fmt: skip
    for reply, answer in zip(answers, expected.answers, strict=True):
        _answer(seat, reply, answer)


def _shown(reply: Reply) -> str:
    return f"{reply.name} {reply.fields}"


def _answer(seat: Seat, reply: Reply, answer: Answer) -> None:
    for name, value in answer.fields.items():
        if name == "culprit":
            index = frames.method_type(value).index
            came: Any = (reply["class_id"], reply["method_id"])
            value = divmod(index, 1 << 16)
        else:
            came = reply[name]
        fits = value.fullmatch(came) if isinstance(value, re.Pattern) else came == value
        need(bool(fits), seat, reply.name, name, "is", repr(came), "not", value)
    if answer.message is not None:
        _message(seat, reply, answer.message, answer.outstanding)


def _message(seat: Seat, reply: Reply, message: Message, entry: Outstanding | None = None) -> None:
    where = (seat, reply.name, reply.body)
    need(reply.body == message.body, *where, "is not", message.body)
    need(
        reply["exchange"] == message.exchange,
        *where,
        "exchange",
        reply["exchange"],
        "not",
        message.exchange,
    )
    need(
        reply["routing_key"] == message.keys[0],
        *where,
        "key",
        reply["routing_key"],
        "not",
        message.keys[0],
    )
    if entry is not None and not entry.unsure:
        need(reply["redelivered"] == entry.redelivered, *where, "redelivered", reply["redelivered"])
    came, properties = came_properties(reply), plain(message.properties)
    if entry is not None and entry.counts:
        properties["headers"] = {**properties.get("headers", {}), **entry.counts}
    for name, value in properties.get("headers", {}).items():
        if isinstance(value, Offset) and value.fits(came.get("headers", {}).get(name)):
            properties["headers"] = {**properties["headers"], name: came["headers"][name]}
    for death, known in zip(deaths(came), deaths(properties), strict=False):
        if known.get("time") == ANY_TIME and death.get("time"):
            death["time"] = ANY_TIME
    need(came == properties, *where, "has", came, "not", properties)


def deaths(properties: Mapping[str, Any]) -> list[dict[str, Any]]:
    return list(properties.get("headers", {}).get("x-death", []))


def came_properties(reply: Reply) -> dict[str, Any]:
    found = {
        name: value for name, value in dict(reply.properties or {}).items() if value is not None
    }
    found.pop("cluster_id", None)
    return {name: plain(value) for name, value in found.items()}


def plain(value: Any) -> Any:
    """As it is compared: times are numbers."""
    match value:
        case datetime():
            return int(value.timestamp())
        case Mapping():
            return {name: plain(item) for name, item in value.items()}
        case list():
            return [plain(item) for item in value]
    return value


# -- deliveries


def _deliveries(model: Model, seat: Seat, expected: Expected, came: list[Reply]) -> None:
    channel = model.channels.get(seat)
    waiting = {tag: deque(entries) for tag, entries in expected.deliveries.items()}
    gets = deque(answer.outstanding for answer in expected.answers if answer.name == "Basic.GetOk")
    for reply in came:
        if reply.name not in ("Basic.Deliver", "Basic.GetOk"):
            continue
        entry = _next_entry(seat, reply, waiting, gets)
        if channel is not None:
            channel.delivered += 1
            need(
                reply["delivery_tag"] == channel.delivered,
                seat, "tag", reply["delivery_tag"], "not", channel.delivered,
            )  # fmt: skip
        entry.tag = reply["delivery_tag"]
    left = [(tag, entry.held.message.body) for tag in waiting for entry in waiting[tag]]
    need(not left, seat, "was not sent", left)
    if channel is not None:
        channel.outstanding.sort(key=lambda entry: entry.tag)
    _order(seat, came)


def _next_entry(
    seat: Seat,
    reply: Reply,
    waiting: dict[str, deque[Outstanding]],
    gets: deque[Outstanding | None],
) -> Outstanding:
    if reply.name == "Basic.GetOk":
        entry = gets.popleft() if gets else None
        assert_there(seat, reply, entry)
    else:
        own = waiting.get(reply["consumer_tag"])
        entry = own.popleft() if own else None
        assert_there(seat, reply, entry)
        assert entry is not None
        _message(seat, reply, entry.held.message, entry)
    assert entry is not None
    return entry


def assert_there(seat: Seat, reply: Reply, entry: Outstanding | None) -> None:
    need(entry is not None, seat, "was sent too much:", reply.name, reply.fields, reply.body)


def _order(seat: Seat, came: list[Reply]) -> None:
    """Nothing before consume-ok, nothing after cancel-ok."""
    for at, reply in enumerate(came):
        if reply.name in ("Basic.ConsumeOk", "Basic.CancelOk"):
            tag = reply["consumer_tag"]
            side = came[:at] if reply.name == "Basic.ConsumeOk" else came[at:]
            wrong = any(
                other.name == "Basic.Deliver" and other["consumer_tag"] == tag for other in side
            )
            need(not wrong, seat, "deliveries on the wrong side of", reply.name)


# -- confirms


def _confirms(seat: Seat, expected: Expected, came: list[Reply]) -> None:
    """Each publish has one answer, and its return comes first; a closed channel may owe some."""
    answers: dict[int, bool] = {}
    for reply in came:
        if reply.name in CONFIRMS:
            for number in _covered(reply, expected.confirms, answers):
                need(number not in answers, seat, "confirmed twice:", number)
                answers[number] = reply.name == "Basic.Ack"
    owed = {number for number in expected.confirms if number not in answers}
    need(expected.closed or not owed, seat, "not confirmed:", sorted(owed))
    for number, accepted in answers.items():
        need(
            expected.confirms.get(number) == accepted,
            seat, "confirm", number, accepted, "not", expected.confirms.get(number),
        )  # fmt: skip
    names = [reply.name for reply in came]
    if "Basic.Return" in names and expected.confirms and len(expected.confirms) == 1:
        confirms = [at for at, name in enumerate(names) if name in CONFIRMS]
        need(not confirms or names.index("Basic.Return") < confirms[0], seat, "return after ack")


def _covered(reply: Reply, known: Iterable[int], answered: Mapping[int, bool]) -> list[int]:
    tag = reply["delivery_tag"]
    if not reply["multiple"]:
        return [tag]
    return [number for number in known if number <= tag and number not in answered]
