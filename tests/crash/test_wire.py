"""The frames of the load, cut at every place."""

from __future__ import annotations

import pytest

from tests.bench import frames

from .wire import Answer, Answers, Closed, Deliveries, Form

FORM = Form(7, "x", "key", 40)


def chunks(data: bytes, size: int) -> list[bytes]:
    return [data[at : at + size] for at in range(0, len(data), size)]


def delivered(form: Form, number: int, tag: int, *, redelivered: bool = False) -> bytes:
    message = frames.Message(form.exchange, form.key, form.body(number), form.properties)
    whole = bytearray(message.delivered(tag, "c"))
    whole[7 + 4 + 2 + 8] = redelivered
    return bytes(whole)


@pytest.mark.parametrize("size", [1, 7, 64, 1_000_000])
def test_deliveries_are_put_together(size: int) -> None:
    large = Form(8, "", "k", 300_000)
    data = delivered(FORM, 1, 1) + delivered(large, 2, 2, redelivered=True)
    data += frames.frame(8, 0, b"") + frames.method(1, 60, 31, b"\x01c")
    reader = Deliveries()
    found = [one for chunk in chunks(data, size) for one in reader.feed(chunk)]
    assert [one.tag for one in found] == [1, 2]
    assert [one.redelivered for one in found] == [False, True]
    assert [one.body for one in found] == [FORM.body(1), large.body(2)]
    assert reader.others == [(60, 31)]


def test_answers_in_any_order() -> None:
    answers = Answers()
    data = frames.ack(1, 3, multiple=False) + frames.ack(1, 4, multiple=True)
    data += frames.method(1, 60, 120, b"\x00" * 7 + b"\x07\x01") + frames.ack(1, 9, multiple=False)
    found = [one for chunk in chunks(data, 10) for one in answers.feed(chunk)]
    assert found == [
        Answer(3, 3, True), Answer(1, 2, True), Answer(4, 4, True), Answer(5, 7, False),
        Answer(9, 9, True),
    ]  # fmt: skip
    assert (answers.floor, answers.count) == (7, 8)


def test_a_close_by_the_broker_is_raised() -> None:
    close = frames.method(1, 20, 40, b"\x01\x96" + frames.short("no such") + b"\x00" * 4)
    with pytest.raises(Closed, match="406 no such"):
        Answers().feed(close)
    with pytest.raises(Closed, match="406 no such"):
        Deliveries().feed(close)
