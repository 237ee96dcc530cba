"""The arguments and the arithmetic of the load generator: a wrong count would flatter or wrong a
broker."""

from __future__ import annotations

import random

import pytest
from pamqp import commands, frame, header

from .__main__ import main
from .client import BenchError
from .frames import NO_PROPERTIES, PERSISTENT, Message, SingleAcks, Stream, ack
from .scenarios.honest import task_message
from .window import Confirms


@pytest.mark.parametrize(
    ("names", "advice"),
    [
        (["keys-1,http-publish"], "called keys-1,http-publish; put spaces between names"),
        (["http-publish", "nothing*"], "called nothing[*]; --list prints the names"),
    ],
)
def test_names_that_no_scenario_has_are_refused(
    monkeypatch: pytest.MonkeyPatch, names: list[str], advice: str
) -> None:
    monkeypatch.setattr("sys.argv", ["bench", "--list", "--only", *names])
    with pytest.raises(SystemExit, match=advice):
        main()


def test_a_publish_is_what_another_codec_reads() -> None:
    data = Message("exchange", "key", b"body", PERSISTENT).published(channel=3)
    size, channel, method = frame.unmarshal(data)
    assert channel == 3
    assert isinstance(method, commands.Basic.Publish)
    assert (method.exchange, method.routing_key) == ("exchange", "key")
    _, _, head = frame.unmarshal(data[size:])
    assert isinstance(head, header.ContentHeader)
    assert (head.body_size, head.properties.delivery_mode) == (4, 2)


def test_a_task_carries_its_properties() -> None:
    data = task_message().published()
    size, _, _ = frame.unmarshal(data)
    _, _, head = frame.unmarshal(data[size:])
    assert isinstance(head, header.ContentHeader)
    assert head.properties.headers is not None
    assert head.properties.headers["task"] == "shop.tasks.add"
    assert head.properties.priority == 0


def test_a_large_body_is_cut_at_the_largest_frame() -> None:
    data = Message("", "queue", bytes(300_000), NO_PROPERTIES).published()
    lengths: list[int] = []
    while data:
        size, _, part = frame.unmarshal(data)
        lengths += [len(part.value)] if hasattr(part, "value") else []
        data = data[size:]
    assert lengths == [131_064, 131_064, 37_872]


@pytest.mark.parametrize(
    ("first", "last"),
    [(1, 1), (1, 2_000), (65_535, 65_536), (65_000, 200_000), (2**32 - 5, 2**32 + 5)],
)
def test_single_acks_are_consecutive(first: int, last: int) -> None:
    expected = b"".join(ack(7, tag, multiple=False) for tag in range(first, last + 1))
    assert SingleAcks(7).frames(first, last) == expected


@pytest.mark.parametrize("step", [2, 4])
def test_single_acks_with_a_step_leave_the_others_out(step: int) -> None:
    acks, expected, found = SingleAcks(1, step), b"", b""
    for first, last in ((1, 1), (2, 500), (501, 65_537), (65_538, 200_001)):
        expected += b"".join(
            ack(1, tag, multiple=False) for tag in range(first, last + 1) if tag % step == 0
        )
        found += acks.frames(first, last)
    assert found == expected


def test_single_acks_turn_back_to_low_tags() -> None:
    acks = SingleAcks(1)
    acks.frames(70_000, 70_001)
    assert acks.frames(5, 5) == ack(1, 5, multiple=False)


def test_confirms_count_single_and_multiple_acks_in_any_order() -> None:
    confirms = Confirms()
    data = b"".join(
        [ack(1, 5, multiple=False), ack(1, 3, multiple=True), ack(1, 4, multiple=False)]
    )
    counts = []
    for octet in data:
        confirms.feed(bytes((octet,)))
        counts.append(confirms.count)
    assert (counts[20], counts[41], counts[62]) == (1, 4, 5)


def test_confirms_of_shuffled_tags_are_each_counted_once() -> None:
    tags = list(range(1, 501))
    random.Random(1).shuffle(tags)
    confirms = Confirms()
    for tag in tags:
        confirms.feed(ack(1, tag, multiple=False))
    confirms.feed(ack(1, 500, multiple=True))
    assert confirms.count == 500


def test_anything_but_an_ack_is_an_error() -> None:
    with pytest.raises(BenchError, match="not an ack"):
        Confirms().feed(ack(1, 1, multiple=False).replace(b"\x00\x50", b"\x00\x78"))


def test_publishes_of_a_stream_have_one_size() -> None:
    short, long = (Message("", key, b"").published() for key in ("a", "bb"))
    with pytest.raises(ValueError, match="one size"):
        Stream.join([short, long])
