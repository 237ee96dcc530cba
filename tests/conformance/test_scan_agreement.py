"""The fast and the cold path agree: the same bytes, cut anywhere, get the same bytes back."""

from __future__ import annotations

import struct

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from . import frames
from .sides import CHANNELS, QUEUES, Outstanding, Step, agree, begin, method, whole_frames

PROPERTIES: list[dict[str, object]] = [
    {},
    {"delivery_mode": 2},
    {"delivery_mode": 1, "content_type": "text/plain"},
    {"headers": {"h": 1, "x": "y"}, "delivery_mode": 2},
    {"headers": {"h": 2}},
    {"headers": {"CC": ["kept", "b"]}},
    {"headers": {"BCC": ["kept"], "h": 1}},
    {"correlation_id": "c", "reply_to": "r", "message_id": "m", "app_id": "caf\u00e9"},
    {"expiration": "1000", "priority": 3},
    {"timestamp": 1_700_000_000, "message_type": "t", "cluster_id": "k"},
    {"user_id": "guest"},
    {"user_id": "someone else"},
    {"expiration": "soon"},
    {"headers": {"CC": "no array"}},
]
VARIATIONS: dict[str, list[object]] = {
    "delivery_mode": [2, 1],
    "expiration": ["1000", "2000", "soon"],
    "reply_to": ["x" * 21, "amq.rabbitmq.reply-to"],
    "priority": [0, 5],
}
MOSTLY_FINE = st.sampled_from(PROPERTIES[:5] * 6 + PROPERTIES[5:-3] * 2 + PROPERTIES)
ADDRESSES = [
    ("", "a"), ("", "a"), ("", "a"), ("", "b"), ("", "read"), ("", "read"), ("", "kept"),
    ("amq.fanout", ""), ("amq.topic", "eu.fr"), ("amq.topic", "us.ny"), ("amq.direct", "k"),
    ("", "nobody"), ("", "limited"), ("amq.headers", "k"),
]  # fmt: skip
FETCHED = ("kept", "limited", "eu.fr", "us.ny", "k")
"""Keys that lead to a queue from which messages are fetched."""
SIZES = st.one_of(
    st.integers(0, 40), st.sampled_from([0, 16, 16, 1024, 4089, 5000, 9000, 70_000, 131_065]),
    st.integers(0, 200_000),
)  # fmt: skip
CHANNEL = st.sampled_from(CHANNELS)


@st.composite
def publishes(draw: st.DrawFn) -> Step:
    """One message or many alike, which may differ in their bodies' bytes."""
    channel, (exchange, key) = draw(CHANNEL), draw(st.sampled_from(ADDRESSES))
    properties, size = draw(MOSTLY_FINE), draw(SIZES)
    if key in FETCHED or "headers" in properties:
        # A read whose answers are very large is taken in two turns, not at the same place.
        size = min(size, 9000)
    count = 1 if size > 2000 else draw(st.sampled_from([1, 1, 2, 5, 20, 30, 90]))
    frame_max = draw(st.sampled_from([131_072] * 5 + [4096, 64]))
    if size > 20_000 and frame_max == 64:
        frame_max = 4096
    flags = {"mandatory": draw(st.booleans()), "immediate": draw(st.integers(0, 19)) == 0}
    bodies = (struct.pack(">I", number).rjust(size, b"x")[:size] for number in range(count))
    data = b"".join(
        frames.publish_frames(
            channel, body, properties, frame_max, exchange=exchange, routing_key=key, **flags
        )
        for body in bodies
    )
    return lambda _: data


@st.composite
def unlike(draw: st.DrawFn) -> Step:
    """Messages of one application: the same keys, other values and lengths each time."""
    channel, (exchange, key) = draw(CHANNEL), draw(st.sampled_from(ADDRESSES))
    vary = draw(st.sampled_from(["", "delivery_mode", "expiration", "reply_to", "priority"]))
    data = b""
    for number in range(draw(st.sampled_from([2, 3, 20]))):
        properties: dict[str, object] = {
            "headers": {"task": "add", "id": f"{number:032}", "retries": number},
            "delivery_mode": 2,
            "priority": 0,
            "correlation_id": f"{number:036}",
            "reply_to": f"{number:021}",
            "expiration": "1000",
        }
        values = VARIATIONS.get(vary)
        if values:
            properties[vary] = values[number % len(values)]
        body = b"x" * draw(st.sampled_from([0, 1, 30, 31, 5000]))
        data += frames.publish_frames(channel, body, properties, exchange=exchange, routing_key=key)
    return lambda _: data


@st.composite
def rerouted(draw: st.DrawFn) -> Step:
    """The same message before and after its route has changed."""
    channel = draw(CHANNEL)
    binding = {"queue": "a", "exchange": "amq.topic", "routing_key": "eu.*"}
    publish = frames.publish_frames(
        channel,
        b"body",
        {},
        exchange="amq.topic",
        routing_key="eu.fr",
        mandatory=draw(st.booleans()),
    )
    by_name = frames.publish_frames(channel, b"body", {}, routing_key="c")
    changes = [
        (publish, method(channel, "Queue.Unbind", **binding)),
        (publish, method(channel, "Queue.Bind", **binding)),
        (by_name, method(channel, "Queue.Declare", queue="c")),
        (by_name, method(channel, "Queue.Delete", queue="c")),
    ]
    data = b"".join(
        message * draw(st.integers(1, 3)) + change + message
        for message, change in draw(st.lists(st.sampled_from(changes), min_size=1, max_size=4))
    )
    return lambda _: data


@st.composite
def interleaved(draw: st.DrawFn) -> Step:
    """Contents of two channels, frame by frame in turn."""
    first, second = draw(st.permutations(CHANNELS))[:2]
    streams = []
    for channel in (first, second):
        body = b"%d" % channel * draw(st.integers(0, 300))
        exchange, key = draw(st.sampled_from(ADDRESSES))
        data = frames.publish_frames(
            channel, body, draw(MOSTLY_FINE), 64, exchange=exchange, routing_key=key
        )
        streams.append([octets for _, _, octets in whole_frames(data)])
    mixed: list[bytes] = []
    while any(streams):
        stream = draw(st.sampled_from([stream for stream in streams if stream]))
        mixed.append(stream.pop(0))
    return lambda _: b"".join(mixed)


@st.composite
def settlements(draw: st.DrawFn) -> Step:
    """Acks, nacks and rejects of what is outstanding, in rows too; rarely of an unknown tag."""
    channel, count = draw(CHANNEL), draw(st.sampled_from([1, 1, 2, 8]))
    name = draw(st.sampled_from(["Basic.Ack", "Basic.Ack", "Basic.Nack", "Basic.Reject"]))
    share = draw(st.sampled_from([0.0, 0.0, 0.5, 0.999]))
    multiples = draw(st.lists(st.booleans(), min_size=count, max_size=count))
    requeue = draw(st.booleans())
    unknown = draw(st.integers(0, 29)) == 0

    def step(outstanding: Outstanding) -> bytes:
        data = b""
        at = int(share * len(outstanding.tags[channel]))
        for multiple in multiples:
            multiple &= name != "Basic.Reject"
            tag = 999 if unknown else outstanding.take(channel, at, multiple)
            at = 0 if multiple else at
            if tag is not None:
                fields: dict[str, object] = {"delivery_tag": tag}
                if name != "Basic.Reject":
                    fields["multiple"] = multiple
                if name != "Basic.Ack":
                    fields["requeue"] = requeue
                data += method(channel, name, **fields)
        return data

    return step


@st.composite
def requests(draw: st.DrawFn) -> Step:
    """Everything else: a channel that had an error starts anew with its own close."""
    channel = draw(CHANNEL)
    queue = draw(st.sampled_from(QUEUES))
    data = draw(
        st.sampled_from(
            [
                frames.heartbeat(),
                method(channel, "Basic.Get", queue="kept"),
                method(channel, "Basic.Get", queue="limited", no_ack=True),
                method(channel, "Basic.Qos", prefetch_count=3),
                method(channel, "Basic.Qos", prefetch_count=7, global_=True),
                method(channel, "Queue.Declare", queue=queue, passive=True),
                method(channel, "Queue.Purge", queue="limited"),
                method(channel, "Channel.Flow", active=True),
                method(channel, "Queue.Unbind", queue="a", exchange="amq.topic",
                       routing_key="eu.*"),
                method(channel, "Queue.Bind", queue="a", exchange="amq.topic",
                       routing_key="eu.*"),
                frames.publish_frames(channel, b"x", exchange="absent"),
            ]
        )
    )  # fmt: skip
    return lambda _: data


@st.composite
def restarts(draw: st.DrawFn) -> Step:
    channel = draw(CHANNEL)

    def step(outstanding: Outstanding) -> bytes:
        outstanding.tags[channel] = []
        return method(channel, "Channel.Close") + begin(channel)

    return step


STEPS = st.one_of(
    publishes(), publishes(), publishes(), publishes(), unlike(), rerouted(), interleaved(),
    settlements(), settlements(), requests(), restarts(),
)  # fmt: skip
GROUPS = st.lists(st.lists(STEPS, min_size=1, max_size=6), min_size=1, max_size=5)
CUTS = st.lists(st.floats(0, 1), max_size=6)


def broken_acks(outstanding: Outstanding) -> bytes:
    """A row of acks, the last without its end octet when there is more than one."""
    tags = outstanding.tags[1]
    row = b"".join(method(1, "Basic.Ack", delivery_tag=tag) for tag in tags)
    return row[:-1] + b"\x00" if len(tags) > 1 else row


WRONG = st.sampled_from(
    [
        b"",
        frames.frame(9, 1, b"x"),
        frames.heartbeat(1),
        method(1, "Basic.Publish", exchange="absent") + method(1, "Basic.Qos"),
        frames.heartbeat()[:-1] + b"\x00",
        frames.frame(frames.HEADER, 1, frames.content_header(0)),
        method(7, "Basic.Ack", delivery_tag=1),
        frames.publish_frames(7, b"x", routing_key="a"),
        frames.publish_frames(1, b"body", routing_key="a")[:-1] + b"\x00",
        b"".join(frames.publish_frames(1, b"x" * size, routing_key="a") for size in range(1, 9))[
            :-1
        ]
        + b"\x00" * 20,
        frames.publish_frames(1, b"x", frames.Raw(b"\x80\x00\xffshort"), routing_key="a"),
        frames.publish_frames(1, b"fine", routing_key="a")
        + method(1, "Basic.Publish", routing_key="a")
        + frames.frame(frames.HEADER, 1, frames.content_header(3))
        + frames.frame(frames.BODY, 1, b"four"),
        method(0, "Connection.Close"),
    ]
)


LAST_WORDS = st.one_of(WRONG.map(lambda data: lambda _: data), st.just(broken_acks))


@settings(
    max_examples=300,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(groups=GROUPS, cuts=CUTS, last_words=LAST_WORDS)
def test_same_bytes_back(groups: list[list[Step]], cuts: list[float], last_words: Step) -> None:
    agree([*groups, [last_words]], cuts)
